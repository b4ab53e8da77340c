"""OpenAPI v2: one document for all resources."""

from __future__ import annotations

from collections.abc import Iterable

from kubist.api.discovery.openapi_parameters import SHARED, name_of, place, type_of
from kubist.api.discovery.openapi_paths import META, TEXT, Operation, Path
from kubist.api.discovery.openapi_v3 import INFO, SECURITY, Definition, extensions, path_item, referred
from kubist.model.meta.object import Object

REF = "#/definitions/"
_BODIES = {META + "DeleteOptions": "body-2Y1dVQaQ", META + "Patch": "body-78PwaGsr"}
"""Types of shared bodies → names under which the document defines them once."""
_MEANING = {"200": "OK", "201": "Created", "202": "Accepted", "401": "Unauthorized"}


def document(paths: Iterable[Path], definition: Definition) -> Object:
    items = {path.path: path_item(path, _operation, _reference) for path in paths}
    bodies = {shared: _body(type, type.endswith("Patch")) for type, shared in _BODIES.items()}
    parameters = {f"{name_of(name)}-{ending}": parameter(name) for name, ending in SHARED.items()} | bodies
    definitions: Object = {}
    names = sorted(referred([items, bodies]) - parameters.keys())
    while names:
        for name in names:
            definitions[name] = definition(name)
        names = sorted({ref for name in names for ref in referred(definitions[name])} - definitions.keys())
    return {
        "swagger": "2.0",
        "info": INFO,
        "paths": dict(sorted(items.items())),
        "definitions": dict(sorted(definitions.items())),
        "parameters": dict(sorted(parameters.items())),
        "securityDefinitions": SECURITY,
        "security": [{"BearerToken": []}],
    }


def parameter(name: str) -> Object:
    return {"uniqueItems": True, "type": type_of(name), **place(name)}


def _reference(name: str) -> Object:
    return {"$ref": f"#/parameters/{name_of(name)}-{SHARED[name]}"} if name in SHARED else parameter(name)


def _body(type: str, required: bool) -> Object:
    body: Object = {"name": "body", "in": "body"}
    if required:
        body["required"] = True
    return {**body, "schema": {"$ref": REF + type}}


def _operation(operation: Operation, common: set[str]) -> Object:
    entry: Object = {
        "description": operation.description,
        **({"consumes": list(operation.consumes)} if operation.consumes else {}),
        "produces": list(operation.produces),
        "schemes": ["https"],
        "tags": [operation.tag],
        "operationId": operation.id,
    }
    own = [_reference(name) for name in sorted(operation.parameters) if name not in common]
    if operation.body:
        shared = _BODIES.get(operation.body)
        body = {"$ref": f"#/parameters/{shared}"} if shared else _body(operation.body, True)
        own.insert(0 if not operation.parameters or sorted(operation.parameters)[0] > "body" else 1, body)
    if own:
        entry["parameters"] = own
    entry["responses"] = {
        code: {"description": _MEANING[code], "schema": _schema(type)}
        for code, type in operation.responses.items()
    }
    entry["responses"]["401"] = {"description": _MEANING["401"]}
    return entry | extensions(operation)


def _schema(type: str) -> Object:
    return {"type": "string"} if type == TEXT else {"$ref": REF + type}
