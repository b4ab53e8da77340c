"""OpenAPI v3: one document per group-version, with the schemas that it refers to."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import Any

from kubist.api.discovery.openapi_parameters import place, type_of
from kubist.api.discovery.openapi_paths import TEXT, Operation, Path
from kubist.model.meta.object import Object
from kubist.model.schema.openapi import REF

Definition = Callable[[str], Object]

INFO = {"title": "Kubernetes", "version": "1.36"}
CUSTOM_INFO = {"title": "Kubernetes CRD Swagger", "version": "v0.1.0"}
SECURITY = {
    "BearerToken": {
        "type": "apiKey",
        "description": "A bearer token.",
        "name": "authorization",
        "in": "header",
    }
}


def document(paths: Iterable[Path], definition: Definition, info: Object = INFO) -> Object:
    """Document of these paths. `definition` returns the schema of a type by name."""
    items = {path.path: path_item(path, _operation, parameter) for path in paths}
    schemas: Object = {}
    names = sorted(referred(items))
    while names:
        for name in names:
            schemas[name] = definition(name)
        names = sorted({ref for name in names for ref in referred(schemas[name])} - schemas.keys())
    components: Object = {"schemas": dict(sorted(schemas.items()))} if schemas else {}
    if info is INFO:
        components["securitySchemes"] = SECURITY
    return {"openapi": "3.0.0", "info": info, "paths": dict(sorted(items.items())), "components": components}


def referred(value: Any) -> set[str]:
    """Names of the types that a part of a document refers to."""
    names: set[str] = set()
    pending = [value]
    while pending:
        value = pending.pop()
        if isinstance(value, dict):
            ref = value.get("$ref")
            if isinstance(ref, str):
                names.add(ref.rpartition("/")[2])
            pending.extend(value.values())
        elif isinstance(value, list):
            pending.extend(value)
    return names


def shared_parameters(path: Path) -> tuple[str, ...]:
    """Parameters of the path: the ones in the path itself, and the ones that all its operations have."""
    common = set.intersection(*(set(operation.parameters) for operation in path.operations))
    return tuple(sorted({*path.parameters, *common}))


def path_item(
    path: Path,
    describe_operation: Callable[[Operation, set[str]], Object],
    describe_parameter: Callable[[str], Object],
) -> Object:
    common = shared_parameters(path)
    item: Object = {
        operation.method: describe_operation(operation, set(common)) for operation in path.operations
    }
    if common:
        item["parameters"] = [describe_parameter(name) for name in common]
    return item


def parameter(name: str) -> Object:
    return {**place(name), "schema": {"type": type_of(name), "uniqueItems": True}}


def _operation(operation: Operation, common: set[str]) -> Object:
    entry: Object = {
        "tags": [operation.tag],
        "description": operation.description,
        "operationId": operation.id,
    }
    own = [name for name in sorted(operation.parameters) if name not in common]
    if own:
        entry["parameters"] = [parameter(name) for name in own]
    if operation.body:
        body: Object = {"content": _content(sorted(operation.consumes), operation.body)}
        if operation.body_required:
            body["required"] = True
        entry["requestBody"] = body
    entry["responses"] = {
        code: {"description": _MEANING[code], "content": _content(sorted(operation.produces), type)}
        for code, type in operation.responses.items()
    }
    entry["responses"]["401"] = {"description": _MEANING["401"]}
    return entry | extensions(operation)


def extensions(operation: Operation) -> Object:
    entries: Object = {}
    if operation.action:
        entries["x-kubernetes-action"] = operation.action
    if operation.kind:
        group, version, kind = operation.kind
        entries["x-kubernetes-group-version-kind"] = {"group": group, "version": version, "kind": kind}
    return entries


def _content(types: Iterable[str], type: str) -> Object:
    schema = {"type": "string"} if type == TEXT else {"$ref": REF + type}
    return {media: {"schema": schema} for media in types}


_MEANING = {"200": "OK", "201": "Created", "202": "Accepted", "401": "Unauthorized"}
