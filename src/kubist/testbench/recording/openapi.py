"""Schemas of recordings, recorded requests and open watches."""

from __future__ import annotations

from kubist.model.meta.object import Object
from kubist.testbench.control_api.schemas import closed, count, list_of, text
from kubist.testbench.faults.openapi import REQUEST_FILTERS
from kubist.testbench.recording.recording import BYTES, ENTRIES, MOST_BYTES, MOST_ENTRIES


def _object(about: str) -> Object:
    return {"type": "object", "description": about}


_IDENTITY: Object = {
    "user": text("Name of the user, after impersonation."),
    "userAgent": text("Header User-Agent."),
    "path": text("Path of the URL."),
    "query": text("Query of the URL."),
    "group": text("API group; empty for the core group."),
    "version": text("API version."),
    "resource": text("Plural of the resource."),
    "namespace": text("Namespace; empty for cluster-scoped objects and requests across namespaces."),
    "name": text("Name of the object, also of one that was created."),
}
_LIMITS: Object = {
    "maxEntries": {"type": "integer", "minimum": 1, "maximum": MOST_ENTRIES, "default": ENTRIES},
    "maxBytes": {"type": "integer", "minimum": 1, "maximum": MOST_BYTES, "default": BYTES},
}
RECORDING_SCHEMAS: dict[str, Object] = {
    "RecordingRequest": closed({**REQUEST_FILTERS, **_LIMITS}),
    "Recording": closed(
        {
            **REQUEST_FILTERS,
            **_LIMITS,
            "id": {"type": "string"},
            "entries": count("Recorded requests.", 0),
            "bytes": count("Bytes in memory, about.", 0),
            "dropped": count("Requests that did not fit.", 0),
            "dropReason": text("Limit that was reached."),
        },
        "id",
        "entries",
        "bytes",
        "dropped",
    ),
    "RecordingList": list_of("Recording"),
    "RecordedRequest": {
        "type": "object",
        "additionalProperties": False,
        "description": "One line. A line with `dropped` and `reason` alone says that requests are missing.",
        "properties": {
            "id": count("Number of the request."),
            "time": {"type": "string", "format": "date-time", "description": "Start, by the server's clock."},
            "duration": {"type": "number", "description": "Seconds, in real time."},
            "groups": {"type": "array", "items": {"type": "string"}},
            "method": text("HTTP method."),
            "verb": text("Verb of the Kubernetes API."),
            **_IDENTITY,
            "subresource": text("Such as status or scale."),
            "contentType": text("Type of the request body."),
            "requestObject": _object("Object in the request body. Secret data and tokens are redacted."),
            "patchType": text("Type of the patch, such as application/merge-patch+json."),
            "patch": {"description": "Patch or apply configuration."},
            "status": count("HTTP status.", 100),
            "reason": text("Reason of the Status of an error."),
            "responseObject": _object("Object, list or Status of the response."),
            "before": _object("Stored object before the write."),
            "after": _object("Stored object after the write."),
            "deleted": {
                "type": "array",
                "items": {"type": "string"},
                "description": "Of a deletecollection.",
            },
            "open": {"type": "boolean", "description": "The watch or stream has not ended."},
            "closed": {"type": "boolean", "description": "The connection ended without a response."},
            "events": count("Events that a watch was sent.", 0),
            "faults": {
                "type": "array",
                "items": {
                    "type": "object",
                    "properties": {"id": text("Id of the rule.")},
                    "required": ["id"],
                },
                "description": "Fault rules that acted on the request, each with its id and actions.",
            },
            "omitted": {"type": "array", "items": {"type": "string"}, "description": "Fields too long."},
            "dropped": count("Requests that are missing here."),
        },
    },
    "Watcher": {
        "type": "object",
        "additionalProperties": False,
        "properties": {
            **_IDENTITY,
            "position": text("Resource version up to which all events were written."),
            "sent": count("Events, with bookmarks.", 0),
            "buffered": count("Bytes that the client has not read.", 0),
        },
    },
    "WatcherList": list_of("Watcher"),
}
LINES = {("GET", "recordings/{id}"), ("GET", "requests")}
"""Operations whose response is lines of JSON."""
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
