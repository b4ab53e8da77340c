"""OpenAPI 3 document of the control API, made from its operations and their classes: `/kubist/v1/openapi.json`."""

from __future__ import annotations

import re
from collections.abc import Iterable

from kubist.base.version import __version__
from kubist.model.meta.object import Object
from kubist.testbench.clock.control import ClockMove, ClockState
from kubist.testbench.control_api.body import Field, Nested, fields_of
from kubist.testbench.control_api.control_api import Operation, Schemas
from kubist.testbench.faults.rule import FaultRule, FaultState
from kubist.testbench.recording.recording import (
    JSON_LINES,
    RecordedRequest,
    RecordingRequest,
    RecordingState,
    Watcher,
)
from kubist.testbench.snapshots.api import NewSnapshot, Snapshot
from kubist.testbench.users.authorizers import Authorizer
from kubist.testbench.users.service_accounts import NewServiceAccount, ServiceAccountRequest
from kubist.testbench.users.users import Kubeconfig, ListedUser, NewUser, UserRequest

SCHEMAS: Schemas = {
    "Clock": ClockState,
    "ClockMove": ClockMove,
    "FaultRule": FaultRule,
    "Fault": FaultState,
    "RecordingRequest": RecordingRequest,
    "Recording": RecordingState,
    "RecordedRequest": RecordedRequest,
    "Watcher": Watcher,
    "UserRequest": UserRequest,
    "NewUser": NewUser,
    "ServiceAccountRequest": ServiceAccountRequest,
    "NewServiceAccount": NewServiceAccount,
    "User": ListedUser,
    "Kubeconfig": Kubeconfig,
    "Authorizer": Authorizer,
    "NewSnapshot": NewSnapshot,
    "Snapshot": Snapshot,
}
"""Classes of bodies and responses."""
STATUS: Object = {
    "type": "object",
    "description": "Error, as in the Kubernetes API.",
    "properties": {
        "kind": {"type": "string"},
        "apiVersion": {"type": "string"},
        "metadata": {"type": "object"},
        "status": {"type": "string"},
        "message": {"type": "string"},
        "reason": {"type": "string"},
        "details": {"type": "object"},
        "code": {"type": "integer"},
    },
}
LINE_PARAMETERS: list[Object] = [
    {
        "name": "watch",
        "in": "query",
        "schema": {"type": "boolean"},
        "description": "Follows further requests.",
        "allowEmptyValue": True,
    },
    {
        "name": "after",
        "in": "query",
        "schema": {"type": "integer"},
        "description": "Only requests after the one with this id.",
    },
]
"""Query of the operations that return lines."""


def document(operations: Iterable[Operation], more: Iterable[Schemas] = ()) -> Object:
    """The document of these operations. `more`: further schemas."""
    operations = list(operations)
    classes = dict(SCHEMAS)
    for schemas in more:
        classes |= schemas
    paths: dict[str, Object] = {}
    for operation in operations:
        path = "/kubist/v1/" + operation.path.replace("...}", "}")
        paths.setdefault(path, {})[operation.method.lower()] = _operation(operation)
    return {
        "openapi": "3.0.3",
        "info": {"title": "Kubist test bench", "version": __version__},
        "paths": paths,
        "components": {
            "schemas": _schemas(classes, operations) | {"Status": STATUS},
            "securitySchemes": {"bearer": {"type": "http", "scheme": "bearer"}},
        },
        "security": [{"bearer": []}],
    }


def _operation(operation: Operation) -> Object:
    method, path = operation.method, operation.path
    success: Object = {"description": "Success."}
    if operation.code != 204:
        success["content"] = _content(
            operation.result, JSON_LINES if operation.is_lines else "application/json"
        )
    failure = {"description": "Error.", "content": _content("Status")}
    described: Object = {
        "summary": " ".join((operation.handler.__doc__ or f"{method} {path}.").split()),
        "responses": {str(operation.code): success, "default": failure},
    }
    parameters: list[Object] = [
        {"name": name, "in": "path", "required": True, "schema": {"type": "string"}}
        for name in re.findall(r"\{(\w+)", path)
    ]
    parameters += LINE_PARAMETERS if operation.is_lines else []
    if parameters:
        described["parameters"] = parameters
    if method in ("POST", "PUT"):
        described["requestBody"] = {"content": _content(operation.body)}
    return described


def _content(name: str, content_type: str = "application/json") -> Object:
    return {content_type: {"schema": _reference(name) if name else {"type": "object"}}}


def _reference(name: str) -> Object:
    return {"$ref": f"#/components/schemas/{name}"}


def _schemas(classes: Schemas, operations: Iterable[Operation]) -> dict[str, Object]:
    """Schemas of the classes, and of the lists of them that operations return."""
    names = {body: name for name, body in classes.items()}
    schemas = {name: schema_of(body, names) for name, body in classes.items()}
    for operation in operations:
        name = operation.result
        if name and name not in schemas:
            items = {"type": "array", "items": _reference(name.removesuffix("List"))}
            schemas[name] = _closed({"items": items}, ["items"])
    return schemas


def schema_of(body: type, names: dict[type, str]) -> Object:
    """Schema of a class. It refers to the classes that have a name."""
    fields = fields_of(body)
    properties = {field.json_name: _property(field, names) for field in fields}
    schema = _closed(properties, [field.json_name for field in fields if field.is_required])
    return schema | ({"description": _text(body.__doc__)} if body.__doc__ else {})


def _closed(properties: Object, required: list[str]) -> Object:
    """Object that has no other fields."""
    schema: Object = {"type": "object", "properties": properties, "additionalProperties": False}
    return schema | ({"required": required} if required else {})


def _property(field: Field, names: dict[type, str]) -> Object:
    schema = field.type.schema
    if isinstance(field.type, Nested):
        body = field.type.body
        schema = _reference(names[body]) if body in names else schema_of(body, names)
        if field.type.is_list:
            schema = {"type": "array", "items": schema}
    if field.description:
        schema = schema | {"description": field.description}
    if field.default and isinstance(field.default, (str, int)) and not isinstance(field.default, bool):
        schema = schema | {"default": field.default}
    return schema


def _text(docstring: str) -> str:
    return " ".join(docstring.split())
