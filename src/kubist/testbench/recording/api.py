"""Operations on recordings, recent requests and open watches over HTTP.

`/kubist/v1/recordings`, `/kubist/v1/requests` and `/kubist/v1/watchers`.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING

from kubist.api.application import API
from kubist.api.verbs.watch import Watcher
from kubist.base.http.messages import Stream
from kubist.base.jsontext.quoting import quoted
from kubist.model.meta import status
from kubist.model.meta.object import Object
from kubist.testbench.control_api.control_api import Call, ControlAPI, Operation, conflict
from kubist.testbench.control_api.field_types import GROUP

if TYPE_CHECKING:
    from kubist.testbench.recording.capture import Recorder
    from kubist.testbench.recording.recording import Recording

MOST_FOLLOWERS = 100
"""Maximum number of clients that follow one recording."""


class RecordingsAPI:
    """Routes of recordings."""

    def __init__(self, api: API, recorder: Callable[[], Recorder]) -> None:
        self._api = api
        self._recorder = recorder

    def register(self, control: ControlAPI) -> None:
        control.add(
            Operation("GET", "recordings", self._list, result="RecordingList"),
            Operation(
                "POST", "recordings", self._start, body="RecordingRequest", result="Recording", code=201
            ),
            Operation("GET", "recordings/{id}", self._read, result="RecordedRequest", is_lines=True),
            Operation("DELETE", "recordings/{id}", self._stop, result="Recording"),
            Operation("GET", "requests", self._recent, result="RecordedRequest", is_lines=True),
            Operation("GET", "watchers", self._watchers, result="WatcherList"),
        )

    async def _list(self, _: Call) -> Object:
        """All recordings, with their filters, limits and sizes."""
        return {"items": [recording.state() for recording in self._recorder()]}

    async def _start(self, call: Call) -> Object:
        """Starts a recording of all requests that match its filters."""
        return self._recorder().start(call.json()).state()

    async def _read(self, call: Call) -> Stream:
        """Reads the recorded requests as lines of JSON, also while the recording runs; with `watch` follows it."""
        recording = self._recorder().get(call.params["id"])
        if recording is None:
            raise status.not_found(GROUP, "recordings", call.params["id"])
        return _lines(call, recording)

    async def _stop(self, call: Call) -> Object:
        """Stops a recording and forgets it. Returns its sizes."""
        recording = self._recorder().stop(call.params["id"])
        if recording is None:
            raise status.not_found(GROUP, "recordings", call.params["id"])
        return recording.state()

    async def _recent(self, call: Call) -> Stream:
        """Reads recent requests as lines of JSON, without responses; with `watch` follows further ones.

        They are kept from the first call on, until nobody asks for ten minutes.
        """
        _check(call)
        return _lines(call, self._recorder().recent())

    async def _watchers(self, _: Call) -> Object:
        """Open watches: user, position, events sent, bytes that the client has not read."""
        open_ = [watcher for watchers in self._api.watchers.values() for watcher in watchers]
        states = sorted(map(_watch_state, open_), key=lambda state: (state["path"], state["user"]))
        return {"items": states}


def _lines(call: Call, recording: Recording) -> Stream:
    # Saves start-up time: few servers are asked for lines.
    from kubist.testbench.recording.recording import LineStream

    watches, after = _check(call)
    if watches and len(recording.followers) >= MOST_FOLLOWERS:
        conflict(f"{MOST_FOLLOWERS} clients follow these requests, the most there can be")
    return LineStream(recording.follow(after) if watches else recording.lines(after)).answer()


def _check(call: Call) -> tuple[bool, int]:
    """`watch` and `after` of the query. Raises 400 if one is invalid."""
    watch, after = call.query.get("watch", "false"), call.query.get("after", "0")
    if watch not in ("", "true", "false", "1", "0"):
        raise status.bad_request(f"query parameter watch: {quoted(watch)} must be true or false")
    if not after.isdecimal() or len(after) > 15:
        raise status.bad_request(f"query parameter after: {quoted(after)} must be the id of a request")
    for name in call.query:
        if name not in ("watch", "after"):
            raise status.bad_request(f"query parameter {quoted(name)} is unknown; use watch or after")
    return watch in ("", "true", "1"), int(after)


def _watch_state(watcher: Watcher) -> Object:
    ctx = watcher.ctx
    info = ctx.info
    return {
        "user": ctx.user.name,
        "userAgent": ctx.request.headers.get("user-agent", ""),
        "path": info.path,
        "query": ctx.request.query,
        "group": info.group,
        "version": info.version,
        "resource": info.resource,
        "namespace": info.namespace,
        "name": info.name,
        "position": str(watcher.written_version()),
        "sent": watcher.sent,
        "buffered": watcher.writer.buffered if watcher.writer is not None else 0,
    }
