"""OpenAPI 3 document of the control API, made from its routes: `/kubist/v1/openapi.json`."""

from __future__ import annotations

import re
from collections.abc import Iterable

from kubist.bench import snapshots_api
from kubist.bench.control_api import Handler, Named
from kubist.bench.fault_openapi import FAULT_RULE
from kubist.bench.line_stream import JSON_LINES
from kubist.bench.recording_openapi import LINE_PARAMETERS, LINES, RECORDING_SCHEMAS
from kubist.meta.object import Object
from kubist.version import __version__

_DURATION = {"type": "string", "description": "Duration such as 90s or 1h30m, or a number of seconds."}
SCHEMAS: dict[str, Object] = {
    "Clock": {
        "type": "object",
        "properties": {
            "now": {"type": "string", "format": "date-time"},
            "frozen": {"type": "boolean"},
            "speed": {"type": "number"},
            "offset": {"type": "number", "description": "Seconds ahead of real time."},
        },
    },
    "ClockMove": {
        "type": "object",
        "description": "At most one of now, offset and advance, and one of frozen and speed.",
        "properties": {
            "now": {"type": "string", "format": "date-time"},
            "offset": _DURATION,
            "advance": _DURATION,
            "frozen": {"type": "boolean"},
            "speed": {"type": "number"},
        },
        "additionalProperties": False,
    },
    "FaultRule": FAULT_RULE,
    "Fault": {
        "allOf": [
            {"$ref": "#/components/schemas/FaultRule"},
            {
                "type": "object",
                "required": ["id", "matches", "hits"],
                "properties": {
                    "id": {"type": "string"},
                    "matches": {"type": "integer", "description": "Requests that matched."},
                    "hits": {
                        "type": "integer",
                        "description": "Requests and watches on which the rule acted.",
                    },
                },
            },
        ]
    },
    "FaultList": {
        "type": "object",
        "properties": {"items": {"type": "array", "items": {"$ref": "#/components/schemas/Fault"}}},
    },
    **RECORDING_SCHEMAS,
    "Authorizer": {
        "type": "object",
        "required": ["name", "clientConfig"],
        "properties": {
            "name": {"type": "string"},
            "clientConfig": {
                "type": "object",
                "required": ["url"],
                "properties": {
                    "url": {"type": "string", "description": "https://host[:port]/path of the webhook."},
                    "caBundle": {"type": "string", "description": "Base64 of the CA certificates in PEM."},
                },
                "additionalProperties": False,
            },
            "timeout": _DURATION,
            "failurePolicy": {"type": "string", "enum": ["Deny", "NoOpinion"]},
        },
        "additionalProperties": False,
    },
    **snapshots_api.SCHEMAS,
    "Status": {
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
    },
}
BODIES = {
    ("PUT", "clock"): "ClockMove",
    ("POST", "faults"): "FaultRule",
    ("POST", "recordings"): "RecordingRequest",
    ("POST", "authorizers"): "Authorizer",
    **snapshots_api.BODIES,
}
"""Schemas of request bodies."""
RESULTS = {
    ("GET", "clock"): "Clock",
    ("PUT", "clock"): "Clock",
    ("DELETE", "clock"): "Clock",
    ("GET", "faults"): "FaultList",
    ("POST", "faults"): "Fault",
    ("DELETE", "faults"): "FaultList",
    ("GET", "faults/{id}"): "Fault",
    ("DELETE", "faults/{id}"): "Fault",
    ("GET", "recordings"): "RecordingList",
    ("POST", "recordings"): "Recording",
    ("GET", "recordings/{id}"): "RecordedRequest",
    ("DELETE", "recordings/{id}"): "Recording",
    ("GET", "requests"): "RecordedRequest",
    ("GET", "watchers"): "WatcherList",
    ("POST", "authorizers"): "Authorizer",
    **snapshots_api.RESULTS,
}
"""Schemas of responses."""


def document(
    routes: Iterable[tuple[str, str, Handler]], more: Iterable[tuple[dict[str, Object], Named, Named]] = ()
) -> Object:
    """The document of these routes: method, path and handler. The docstring of a handler is its summary. `more`:
    further schemas, and the names of those of bodies and responses."""
    paths: dict[str, Object] = {}
    schemas, bodies, results = dict(SCHEMAS), dict(BODIES), dict(RESULTS)
    for found in more:
        schemas |= found[0]
        bodies |= found[1]
        results |= found[2]
    for method, path, handler in routes:
        shown = "/kubist/v1/" + path.replace("...}", "}")
        body, result = bodies.get((method, path)), results.get((method, path))
        paths.setdefault(shown, {})[method.lower()] = _operation(method, path, handler, body, result)
    return {
        "openapi": "3.0.3",
        "info": {"title": "Kubist test bench", "version": __version__},
        "paths": paths,
        "components": {
            "schemas": schemas,
            "securitySchemes": {"bearer": {"type": "http", "scheme": "bearer"}},
        },
        "security": [{"bearer": []}],
    }


def _operation(method: str, path: str, handler: Handler, body: str | None, answer: str | None) -> Object:
    summary = " ".join((handler.__doc__ or f"{method} {path}.").split())
    lines = (method, path) in LINES
    result = _content(answer, JSON_LINES if lines else "application/json")
    operation: Object = {
        "summary": summary,
        "responses": {
            "2XX": {"description": "Success.", "content": result},
            "default": {"description": "Error.", "content": _content("Status")},
        },
    }
    names = re.findall(r"\{(\w+)", path)
    parameters: list[Object] = [
        {"name": name, "in": "path", "required": True, "schema": {"type": "string"}} for name in names
    ]
    if parameters or lines:
        operation["parameters"] = parameters + (LINE_PARAMETERS if lines else [])
    if method in ("POST", "PUT"):
        operation["requestBody"] = {"content": _content(body)}
    return operation


def _content(schema: str | None, content_type: str = "application/json") -> Object:
    found = {"$ref": f"#/components/schemas/{schema}"} if schema else {"type": "object"}
    return {content_type: {"schema": found}}
