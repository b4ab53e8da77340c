"""Capture of the requests of clients: an application around the server's own, which the recorder of a server adds.

It takes the requests only while there is a recording.
"""

from __future__ import annotations

import asyncio
import itertools
from collections import deque
from collections.abc import Callable, Iterator
from time import perf_counter
from typing import TypeGuard

from kubist.api.application import API, READING
from kubist.api.logs import CURRENT
from kubist.api.resources.context import Context
from kubist.api.verbs.resource_request import ResourceRequest
from kubist.api.verbs.watch import Watcher
from kubist.base.http.messages import Answer, Application, HangUp, Request, Response, Stream, StreamWriter
from kubist.model.meta.object import Object
from kubist.storage.cache.entry import Change
from kubist.testbench.control_api.body import read
from kubist.testbench.control_api.control_api import conflict
from kubist.testbench.control_api.field_types import Fields
from kubist.testbench.faults.matching import RequestFilters
from kubist.testbench.faults.request import FaultRequest
from kubist.testbench.recording.recording import MOST_BYTES, Limits, Recording, RecordingRequest
from kubist.testbench.recording.request import Recorded, head_size, response_object

CONTROL = "/kubist/v1/"
"""Paths that are not recorded."""
MOST_RECORDINGS = 100
MOST_DELETED = 10_000
"""Maximum number of names of a deletecollection in a recording."""
RECENT = Limits(entries=500, size=8 << 20)
SMALL = 16 << 10
"""Maximum size in bytes of a pending request, so that all have at most `RECENT.size`."""
RECENT_SECONDS = 600.0
"""Seconds for which recent requests are kept after the last client asked for them."""
Pending = tuple[Context | None, Request, float, float, float, int]
"""Context, request, start and end by the performance counter, end by the server's clock, and status."""


class Recorder:
    """All recordings of a server, and its recent requests."""

    def __init__(self, api: API, changed: Callable[[], None]) -> None:
        self._api = api
        self._changed = changed
        """Called when the first recording starts or the last one ends."""
        self._recordings: dict[str, Recording] = {}
        self._recent: Recording | None = None
        self.since = 0
        """Resource version at the beginning of the report of a test."""
        self._begun = 0
        """Number of the last request before it."""
        self._expiry: asyncio.TimerHandle | None = None
        self._is_forever = False
        """Whether recent requests are kept until the server stops."""
        self._ids = itertools.count(1)
        self._numbers = itertools.count(1)
        self._inner: Application = api
        self._now = api.clock.now
        self._pending: deque[Pending] = deque(maxlen=RECENT.entries)
        """Recent requests that are not in `_recent` yet."""

    def __bool__(self) -> bool:
        return bool(self._recordings) or self._recent is not None

    @property
    def is_in_use(self) -> bool:
        """Whether a client reads the recorded requests. Requests that are kept only for the report of a test do not
        count."""
        return bool(self._recordings) or (self._recent is not None and not self._is_forever)

    def __iter__(self) -> Iterator[Recording]:
        return iter(list(self._recordings.values()))

    def get(self, id_: str) -> Recording | None:
        return self._recordings.get(id_)

    # Recordings

    def start(self, spec: Object) -> Recording:
        """Starts a recording. Raises 422 for invalid filters and limits, and 409 if there are too many."""
        fields = Fields("Recording", spec)
        request = read(fields, RecordingRequest)
        fields.done()
        limits = Limits(request.max_entries, request.max_bytes)
        if len(self._recordings) >= MOST_RECORDINGS:
            conflict(f"this server has {MOST_RECORDINGS} recordings, the most it can have")
        recording = Recording(str(next(self._ids)), spec, request, limits)
        self._recordings[recording.id] = recording
        self._changed()
        return recording

    def stop(self, id_: str) -> Recording | None:
        """Ends a recording and forgets it. Clients that follow it get the end of their stream."""
        recording = self._recordings.pop(id_, None)
        if recording is not None:
            recording.close()
            self._changed()
        return recording

    def recent(self, *, forever: bool = False) -> Recording:
        """The newest requests. They are kept from the first call until no client has asked for a while."""
        if self._recent is None:
            self._recent = Recording("", {}, RequestFilters(), RECENT, ring=True, refresh=self._add_pending)
            self._changed()
        self._add_pending()
        if self._expiry is not None:
            self._expiry.cancel()
            self._expiry = None
        self._is_forever = self._is_forever or forever
        if not self._is_forever:
            self._expiry = asyncio.get_running_loop().call_later(RECENT_SECONDS, self._forget_recent)
        return self._recent

    def begin_report(self) -> None:
        """Begins the report of a test. Recent requests are kept until the server stops."""
        self.since = self._api.registry.cache.revision
        self._begun = self.mark()

    def reported(self) -> list[Recorded]:
        """Recent requests since the beginning of the report."""
        return self.after(self._begun)

    def mark(self) -> int:
        """Number for `after`. Recent requests are kept until the server stops."""
        self.recent(forever=True)
        return next(self._numbers)

    def after(self, number: int) -> list[Recorded]:
        """Recent requests since `mark` returned this number."""
        return [recorded for recorded in self.recent(forever=True).entries if recorded.id > number]

    def _forget_recent(self) -> None:
        if self._recent is not None and self._recent.followers:
            self.recent()
        else:
            self._recent, self._expiry = None, None
            self._pending.clear()
            self._changed()

    def clear(self) -> None:
        """Ends all recordings, so that no client waits while the server stops."""
        if self._expiry is not None:
            self._expiry.cancel()
        for recording in (*self, *([self._recent] if self._recent is not None else ())):
            recording.close()
        self._recordings.clear()
        self._pending.clear()
        self._recent, self._expiry, self._is_forever = None, None, False
        self._changed()

    # Requests

    def around(self, application: Application) -> Application:
        """Application that records the requests to another one."""
        self._inner = application
        return self._serve if self._recordings else self._serve_lightly

    async def _serve_lightly(self, request: Request) -> Answer:
        """Keeps recent requests only. It does as little as possible, because it runs in every test with a cluster."""
        began = perf_counter()
        try:
            answer = await self._inner(request)
        except (HangUp, asyncio.CancelledError):
            self._record(request, began, 0, None)
            raise
        recent = self._recent
        if (
            answer.status >= 400
            or len(request.body) + head_size(request) > SMALL
            or type(answer) is Stream
            or recent is None
            or recent.followers
        ):
            self._record(request, began, 0, answer)
        else:
            self._pending.append((CURRENT.get(), request, began, perf_counter(), self._now(), answer.status))
        return answer

    def _add_pending(self) -> None:
        pending = self._pending
        while pending:
            ctx, request, began, ended, now, status = pending.popleft()
            if self._recent is not None and _is_recorded(ctx, request):
                recorded = Recorded(ctx, now - (ended - began), ended - began, status)
                recorded.id = next(self._numbers)
                self._recent.add(recorded, 0)

    async def _serve(self, request: Request) -> Answer:
        began, revision = perf_counter(), self._api.registry.cache.revision
        try:
            answer = await self._inner(request)
        except (HangUp, asyncio.CancelledError):
            self._record(request, began, revision, None)
            raise
        if not self._api.registry.store.local and request.method not in READING:
            await self._api.registry.cache.catch_up()  # the cache may be behind a store that servers share
        self._record(request, began, revision, answer)
        return answer

    def _record(self, request: Request, began: float, revision: int, answer: Answer | None) -> None:
        ctx = CURRENT.get()
        if not _is_recorded(ctx, request):
            return
        self._add_pending()
        seconds = perf_counter() - began
        recorded = Recorded(ctx, self._now() - seconds, seconds, answer.status if answer is not None else 0)
        recorded.id = next(self._numbers)
        recordings = self._matching(ctx) if self._recordings else []
        if recordings:
            response = answer if isinstance(answer, Response) and _is_shown(ctx, answer) else None
            recorded.keep(response, self._changes(recorded, revision, response))
        elif recorded.status >= 400 and isinstance(answer, Response):
            recorded.keep(answer, [])
        if self._recent is not None:
            recordings.append(self._recent)
        if isinstance(answer, Stream):
            self._follow_stream(answer, recorded, recordings, began)
        room = MOST_BYTES - sum(recording.size for recording in self._recordings.values())
        for recording in recordings:
            room -= recording.add(recorded, room)

    def _matching(self, ctx: Context) -> list[Recording]:
        request = FaultRequest(self._api, ctx)
        if ctx.name:
            request.name = ctx.name  # that of a created object is known without its body
        return [each for each in self._recordings.values() if each.filters.is_plausible(request)]

    def _changes(self, recorded: Recorded, revision: int, answer: Response | None) -> list[Change]:
        """Changes of the stored object that the request made; of a deletecollection, all its deletions."""
        ctx = recorded.ctx
        if ctx.request.method in READING or not isinstance(ctx, ResourceRequest) or ctx.dry_run:
            return []
        if recorded.status >= 400 or not hasattr(ctx, "resource"):
            return []
        window = reversed(self._api.registry.collection(ctx.resource).window)
        recent = itertools.takewhile(lambda change: change.revision > revision, window)
        if ctx.info.verb == "deletecollection":
            prefix = ctx.collection_prefix
            removed = (change for change in recent if change.new is None and _key(change).startswith(prefix))
            return list(itertools.islice(removed, MOST_DELETED))[::-1]
        key = ctx.resource.key(ctx.namespace, ctx.info.name or ctx.name)
        changes = [change for change in recent if _key(change) == key][::-1]
        if len(changes) > 1 and answer is not None:
            version = _version(answer)
            return [change for change in changes if change.revision == version] or changes[-1:]
        return changes

    # Streams

    def _follow_stream(
        self, stream: Stream, recorded: Recorded, recordings: list[Recording], began: float
    ) -> None:
        """Completes the record when the stream ends."""
        recorded.is_open = True
        begin, end = stream.start, stream.stopped

        def start(writer: StreamWriter) -> None:
            begin(writer)
            recorded.watcher = self._watcher(recorded.ctx)

        def stopped() -> None:
            end()
            if recorded.is_open:
                recorded.is_open = False
                recorded.seconds = perf_counter() - began
                for recording in recordings:
                    recording.tell(recorded)

        stream.start, stream.stopped = start, stopped

    def _watcher(self, ctx: Context) -> Watcher | None:
        open_ = (watcher for watchers in self._api.watchers.values() for watcher in watchers)
        return next((watcher for watcher in open_ if watcher.ctx is ctx), None)


def _is_recorded(ctx: Context | None, request: Request) -> TypeGuard[Context]:
    """Whether the context is that of the request, and the request is not one to the control API."""
    return ctx is not None and ctx.request is request and not ctx.info.path.startswith(CONTROL)


def _is_shown(ctx: Context, answer: Response) -> bool:
    """Whether a recording has the response: objects and errors, but not discovery and logs."""
    return ctx.info.is_resource or answer.status >= 400


def _key(change: Change) -> str:
    entry = change.new or change.old
    return entry.key if entry is not None else ""


def _version(answer: Response) -> int:
    """Resource version of the object in a response; 0 if it has none."""
    obj = response_object(answer)
    metadata = obj.get("metadata") if obj is not None else None
    version = metadata.get("resourceVersion", "") if isinstance(metadata, dict) else ""
    return int(version) if isinstance(version, str) and version.isdecimal() else 0
