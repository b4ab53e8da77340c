"""Fields of recordings, recorded requests and open watches in responses."""

from __future__ import annotations

from typing import Annotated, Any

from kubist.model.meta.object import Object
from kubist.testbench.control_api.body import Body
from kubist.testbench.control_api.field_types import Count, FieldType, Time, integer
from kubist.testbench.recording.recording import RecordingRequest

_ID = {"type": "string", "description": "Id of the rule."}
FAULTS = FieldType(
    {"type": "array", "items": {"type": "object", "properties": {"id": _ID}, "required": ["id"]}}
)


class RecordingState(RecordingRequest):
    id: str
    entries: Annotated[Count, "Recorded requests."]
    bytes: Annotated[Count, "Bytes in memory, about."]
    dropped: Annotated[Count, "Requests that did not fit."]
    drop_reason: Annotated[str | None, "Limit that was reached."]


class _Identity(Body, total=False):
    user: Annotated[str, "Name of the user, after impersonation."]
    user_agent: Annotated[str, "Header User-Agent."]
    path: Annotated[str, "Path of the URL."]
    query: Annotated[str, "Query of the URL."]
    group: Annotated[str, "API group; empty for the core group."]
    version: Annotated[str, "API version."]
    resource: Annotated[str, "Plural of the resource."]
    namespace: Annotated[str, "Namespace; empty for cluster-scoped objects and requests across namespaces."]
    name: Annotated[str, "Name of the object, also of one that was created."]


class RecordedRequest(_Identity, total=False):
    """One line. A line with `dropped` and `reason` alone says that requests are missing."""

    id: Annotated[int, integer(1), "Number of the request."]
    time: Annotated[Time, "Start, by the server's clock."]
    duration: Annotated[float, "Seconds, in real time."]
    groups: tuple[str, ...]
    method: Annotated[str, "HTTP method."]
    verb: Annotated[str, "Verb of the Kubernetes API."]
    subresource: Annotated[str, "Such as status or scale."]
    content_type: Annotated[str, "Type of the request body."]
    request_object: Annotated[Object, "Object in the request body. Secret data and tokens are redacted."]
    patch_type: Annotated[str, "Type of the patch, such as application/merge-patch+json."]
    patch: Annotated[Any, "Patch or apply configuration."]
    status: Annotated[int, integer(100), "HTTP status."]
    reason: Annotated[str, "Reason of the Status of an error."]
    response_object: Annotated[Object, "Object, list or Status of the response."]
    before: Annotated[Object, "Stored object before the write."]
    after: Annotated[Object, "Stored object after the write."]
    deleted: Annotated[tuple[str, ...], "Of a deletecollection."]
    open: Annotated[bool, "The watch or stream has not ended."]
    closed: Annotated[bool, "The connection ended without a response."]
    events: Annotated[Count, "Events that a watch was sent."]
    faults: Annotated[
        list[Object], FAULTS, "Fault rules that acted on the request, each with its id and actions."
    ]
    omitted: Annotated[tuple[str, ...], "Fields too long."]
    dropped: Annotated[int, integer(1), "Requests that are missing here."]


class Watcher(_Identity, total=False):
    position: Annotated[str, "Resource version up to which all events were written."]
    sent: Annotated[Count, "Events, with bookmarks."]
    buffered: Annotated[Count, "Bytes that the client has not read."]
