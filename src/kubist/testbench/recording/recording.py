"""Recording: requests that were recorded, within limits, and the clients that follow it."""

from __future__ import annotations

import asyncio
import logging
from collections import deque
from collections.abc import AsyncIterator, Callable, Iterable
from dataclasses import dataclass
from typing import Annotated, Any

import orjson

from kubist.base.http.messages import Stream, StreamWriter
from kubist.base.offload import LONG, away
from kubist.model.meta.object import Object
from kubist.testbench.control_api.body import Body
from kubist.testbench.control_api.field_types import Count, FieldType, Time, integer
from kubist.testbench.faults.matching import RequestFilters
from kubist.testbench.recording.request import Recorded

ENTRIES, MOST_ENTRIES = 10_000, 100_000
BYTES, MOST_BYTES = 64 << 20, 256 << 20
MOST_WAITING = 10_000
WAITING_BYTES = 16 << 20
"""Requests and bytes that may wait for one client that follows a recording. Further ones are dropped."""


@dataclass(slots=True, frozen=True)
class Limits:
    """Maximum number of requests and bytes of a recording."""

    entries: int = ENTRIES
    size: int = BYTES


class _MostEntries(Body):
    max_entries: Annotated[int, integer(1, MOST_ENTRIES)] = ENTRIES
    max_bytes: Annotated[int, integer(1, MOST_BYTES)] = BYTES


class RecordingRequest(RequestFilters, _MostEntries):
    pass


class Recording:
    """Requests that match the filters, in the order of their responses.

    A recording that is full drops further requests and counts them. A ring drops its oldest instead, and counts
    nothing.
    """

    def __init__(
        self,
        id_: str,
        spec: Object,
        filters: RequestFilters,
        limits: Limits,
        *,
        ring: bool = False,
        refresh: Callable[[], None] = lambda: None,
    ) -> None:
        """`refresh` adds the requests that are not added yet."""
        self.id = id_
        self._spec = spec
        self.filters = filters
        self.limits = limits
        self._ring = ring
        self._refresh = refresh
        self.entries: deque[Recorded] = deque()
        self.size = 0
        self.dropped = 0
        self._why = ""
        self.followers: set[Follower] = set()

    def state(self) -> Object:
        state: Object = {"id": self.id, **self._spec}
        state |= {"entries": len(self.entries), "bytes": self.size, "dropped": self.dropped}
        return state | ({"dropReason": self._why} if self._why else {})

    def add(self, recorded: Recorded, server_room: int) -> int:
        """Adds a request, or drops it if it does not fit. Returns the number of bytes that it takes."""
        limits = self.limits
        before = self.size
        if self._ring:
            while self.entries and (
                len(self.entries) >= limits.entries or self.size + recorded.size > limits.size
            ):
                self.size -= self.entries.popleft().size
        elif len(self.entries) >= limits.entries:
            return self._drop(f"the limit maxEntries of {limits.entries} requests was reached")
        elif self.size + recorded.size > limits.size:
            return self._drop(f"the limit maxBytes of {limits.size} bytes was reached")
        elif recorded.size > server_room:
            return self._drop(f"all recordings of the server have {MOST_BYTES} bytes, the most they can have")
        self.entries.append(recorded)
        self.size += recorded.size
        self.tell(recorded)
        return self.size - before

    def _drop(self, why: str) -> int:
        self.dropped += 1
        self._why = why
        return 0

    def tell(self, recorded: Recorded) -> None:
        """Sends a request, or the end of a stream, to the clients that follow."""
        for follower in self.followers:
            follower.take(recorded)

    def close(self) -> None:
        for follower in list(self.followers):
            follower.end()

    async def lines(self, after: int = 0) -> AsyncIterator[bytes]:
        """Lines of all requests so far, after the one with this id."""
        for recorded in self._after(after):
            yield await render(recorded)
        if self.dropped:
            yield dropped_line(self.dropped, self._why)

    async def follow(self, after: int = 0) -> AsyncIterator[bytes]:
        """Lines of all requests so far, then of each further one. A stream has a second line when it ends."""
        follower = Follower(self._after(after))
        self.followers.add(follower)
        try:
            async for line in follower.lines():
                yield line
            if self.dropped:
                yield dropped_line(self.dropped, self._why)
        finally:
            self.followers.discard(follower)

    def _after(self, id_: int) -> list[Recorded]:
        self._refresh()
        return [recorded for recorded in self.entries if recorded.id > id_]


class Follower:
    """Requests that wait for a client to read them."""

    def __init__(self, first: Iterable[Recorded]) -> None:
        self._waiting = deque(first)
        self._size = 0
        self._dropped = 0
        self._ended = False
        self._news = asyncio.Event()

    def take(self, recorded: Recorded) -> None:
        if len(self._waiting) >= MOST_WAITING or self._size + recorded.size > WAITING_BYTES:
            self._dropped += 1
        else:
            self._waiting.append(recorded)
            self._size += recorded.size
        self._news.set()

    def end(self) -> None:
        """Ends `lines` after the requests that wait."""
        self._ended = True
        self._news.set()

    async def lines(self) -> AsyncIterator[bytes]:
        while True:
            while self._waiting:
                recorded = self._waiting.popleft()
                self._size = max(0, self._size - recorded.size)
                yield await render(recorded)
            if self._dropped:
                yield dropped_line(self._dropped, "the client reads too slowly")
                self._dropped = 0
            if self._ended:
                return
            self._news.clear()
            await self._news.wait()


async def render(recorded: Recorded) -> bytes:
    """Line of a request. A long one is made in a worker thread."""
    return await away(recorded.size > LONG, recorded.line)


def dropped_line(count: int, why: str) -> bytes:
    """Line that reports missing requests."""
    return orjson.dumps({"dropped": count, "reason": why}, option=orjson.OPT_APPEND_NEWLINE)


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


log = logging.getLogger("kubist.bench")

JSON_LINES = "application/jsonl"
AT_ONCE = 256 << 10
"""Bytes that are written before the client must have read them."""


class LineStream:
    """Writes lines to one client."""

    def __init__(self, lines: AsyncIterator[bytes]) -> None:
        self._lines = lines
        self._task: asyncio.Task[None] | None = None

    def answer(self) -> Stream:
        return Stream(200, [(b"Content-Type", JSON_LINES.encode())], self._start, self._stopped)

    def _start(self, writer: StreamWriter) -> None:
        self._task = asyncio.get_running_loop().create_task(self._write(writer))

    def _stopped(self) -> None:
        if self._task is not None and self._task is not asyncio.current_task():
            self._task.cancel()

    async def _write(self, writer: StreamWriter) -> None:
        size = 0
        try:
            async for line in self._lines:
                writer.write(line)
                size += len(line)
                if size >= AT_ONCE:
                    await _read(writer)
                    size = 0
        except Exception:
            log.exception("a stream of lines failed")
            writer.abort()
        else:
            writer.close()


async def _read(writer: StreamWriter) -> None:
    """Waits until the client has read the written data."""
    room = asyncio.Event()
    writer.on_room = room.set
    await room.wait()
