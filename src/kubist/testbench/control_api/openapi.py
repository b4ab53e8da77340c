"""OpenAPI 3 document of the control API, made from its routes: `/kubist/v1/openapi.json`."""

from __future__ import annotations

import re
from collections.abc import Iterable

from kubist.base.version import __version__
from kubist.model.meta.object import Object
from kubist.testbench.control_api.control_api import Handler, Named
from kubist.testbench.control_api.line_stream import JSON_LINES
from kubist.testbench.control_api.schemas import DURATION, closed, list_of
from kubist.testbench.faults.openapi import FAULT, FAULT_RULE
from kubist.testbench.recording.openapi import LINE_PARAMETERS, LINES, RECORDING_SCHEMAS
from kubist.testbench.snapshots import api as snapshots_api
from kubist.testbench.users.openapi import USER_BODIES, USER_RESULTS, USER_SCHEMAS
from kubist.testbench.workloads_openapi import WORKLOAD_BODIES, WORKLOAD_RESULTS, WORKLOAD_SCHEMAS

SCHEMAS: dict[str, Object] = {
    "Clock": closed(
        {
            "now": {"type": "string", "format": "date-time"},
            "frozen": {"type": "boolean"},
            "speed": {"type": "number"},
            "offset": {"type": "number", "description": "Seconds ahead of real time."},
        },
        "now",
        "frozen",
        "speed",
        "offset",
    ),
    "ClockMove": {
        "type": "object",
        "description": "At most one of now, offset and advance, and one of frozen and speed.",
        "properties": {
            "now": {"type": "string", "format": "date-time"},
            "offset": DURATION,
            "advance": DURATION,
            "frozen": {"type": "boolean"},
            "speed": {"type": "number"},
        },
        "additionalProperties": False,
    },
    "FaultRule": FAULT_RULE,
    "Fault": FAULT,
    "FaultList": list_of("Fault"),
    **RECORDING_SCHEMAS,
    **USER_SCHEMAS,
    **WORKLOAD_SCHEMAS,
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
    **USER_BODIES,
    **WORKLOAD_BODIES,
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
    **USER_RESULTS,
    **WORKLOAD_RESULTS,
    **snapshots_api.RESULTS,
}
"""Schemas of responses."""
CREATES = frozenset(
    ("faults", "recordings", "authorizers", "snapshots", "users", "serviceaccounts", "clusters")
)
"""Paths whose POST is answered with 201."""
EMPTY = frozenset((("DELETE", "authorizers/{name}"), ("DELETE", "users/{name...}")))
"""Operations that are answered with 204, without a body."""


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
    success: Object = {"description": "Success."}
    code = "204" if (method, path) in EMPTY else "201" if method == "POST" and path in CREATES else "200"
    if code != "204":
        success["content"] = _content(answer, JSON_LINES if lines else "application/json")
    operation: Object = {
        "summary": summary,
        "responses": {code: success, "default": {"description": "Error.", "content": _content("Status")}},
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
