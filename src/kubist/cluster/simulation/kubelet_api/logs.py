"""Logs of simulated containers: their sources, and the selection of lines by the options of `kubectl logs`."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable
from dataclasses import dataclass

from kubist.api.request import truthy
from kubist.api.verbs.websockets import BASE64, is_websocket, stream_protocol
from kubist.base.http.messages import Answer, Request, Response, Stream, StreamWriter
from kubist.base.offload import away
from kubist.cluster.simulation.kubelet_api.pods import PodWatch, is_running, status_of
from kubist.model.meta.object import Object
from kubist.model.meta.status import APIError, bad_request
from kubist.model.meta.times import format_time, parse_time

LINE_NANOS = 1_000_000
"""Nanoseconds between the timestamps of two lines. The first line has the time at which the container started."""
POLL_SECONDS = 1.0
"""Seconds after which `follow` reads the log of a Python handler again."""
LONG_LOG = 1000
"""Number of new lines from which formatting them takes too long for the event loop."""
PLAIN = [(b"Content-Type", b"text/plain")]

Source = Callable[[Object], Awaitable[list[str]]]
"""Lines of a container's log so far, by the newest state of its pod."""


@dataclass(frozen=True, slots=True)
class LogOptions:
    """Options of a log request, validated already."""

    follow: bool = False
    previous: bool = False
    timestamps: bool = False
    tail: int | None = None
    since: int | None = None
    """Oldest timestamp, in nanoseconds since 1970."""
    limit: int | None = None

    @classmethod
    def of(cls, query: dict[str, str], now: float) -> LogOptions:
        since = None
        if "sinceSeconds" in query:
            since = int((now - int(query["sinceSeconds"])) * 1e9)
        elif query.get("sinceTime"):
            since = parse_time(query["sinceTime"]) * 10**9
        return cls(
            truthy(query.get("follow")),
            truthy(query.get("previous")),
            truthy(query.get("timestamps")),
            int(query["tailLines"]) if "tailLines" in query else None,
            since,
            int(query["limitBytes"]) if "limitBytes" in query else None,
        )


def started(pod: Object, container: str, *, previous: bool) -> int:
    """Time at which the container of the log started, in nanoseconds since 1970. Raises APIError with the kubelet's
    message if there is no log."""
    name = pod["metadata"]["name"]
    status = status_of(pod, container)
    what = f'container "{container}" in pod "{name}"'
    if status is None:
        raise bad_request(f"{what} is not available")
    state, last = status.get("state") or {}, (status.get("lastState") or {}).get("terminated")
    if previous:
        if last is None:
            raise bad_request(f"previous terminated {what} not found")
        run_state = last
    elif "running" in state or "terminated" in state:
        run_state = state.get("running") or state.get("terminated") or {}
    elif last is not None:
        run_state = last
    else:
        raise _waiting(what, state.get("waiting"))
    text = run_state.get("startedAt") or pod["metadata"]["creationTimestamp"]
    return parse_time(text) * 10**9


def _waiting(what: str, waiting: Object | None) -> APIError:
    if waiting is None:
        return bad_request(f"{what} is waiting to start - no logs yet")
    reason = waiting.get("reason", "")
    texts = {
        "ErrImagePull": "image can't be pulled",
        "ImagePullBackOff": "trying and failing to pull image",
    }
    return bad_request(f"{what} is waiting to start: {texts.get(reason, reason)}")


class Log:
    """Lines of a log, selected and formatted by the options."""

    def __init__(self, options: LogOptions, began: int) -> None:
        self._options = options
        self._began = began
        self._next = 0
        self._left = options.limit
        self._first = True

    @property
    def is_full(self) -> bool:
        """Whether limitBytes is reached."""
        return self._left == 0

    async def text(self, lines: list[str]) -> bytes:
        """Text of the lines that are new since the last call. Many lines are formatted in a worker thread."""
        return await away(len(lines) - self._next > LONG_LOG, self.more, lines)

    def more(self, lines: list[str]) -> bytes:
        """Text of the lines that are new since the last call."""
        options, start = self._options, self._next
        if self._first and options.tail is not None:
            start = max(len(lines) - options.tail, 0)
        self._first = False
        self._next = max(self._next, len(lines))
        parts = []
        for place in range(start, len(lines)):
            stamp = self._began + place * LINE_NANOS
            if options.since is not None and stamp < options.since:
                continue
            prefix = f"{timestamp(stamp)} " if options.timestamps else ""
            parts.append(f"{prefix}{lines[place]}\n")
        text = "".join(parts).encode(errors="replace")
        if self._left is not None:
            text = text[: self._left]
            self._left -= len(text)
        return text


def timestamp(nanos: int) -> str:
    """Time with nanoseconds, as a kubelet writes it."""
    seconds, rest = divmod(nanos, 10**9)
    return f"{format_time(seconds)[:-1]}.{rest:09d}Z"


class Follower:
    """Log stream that continues until the container ends."""

    def __init__(
        self, pod: Object, container: str, log: Log, source: Source, pods: PodWatch, *, polls: bool
    ) -> None:
        self._pod: Object | None = pod
        self._container = container
        self._log = log
        self._source = source
        self._polls = polls
        self._restarts = _instance(pod, container)
        self._news = asyncio.Event()
        self._stop = pods.follow(pod, self._changed)
        self._task: asyncio.Task[None] | None = None

    def stream(self, protocol: str) -> Stream:
        return _stream(self._start, self._stopped, protocol)

    def _changed(self, pod: Object | None) -> None:
        self._pod = pod
        self._news.set()

    def _start(self, writer: StreamWriter) -> None:
        self._task = asyncio.ensure_future(self._run(writer))

    def _stopped(self) -> None:
        self._stop()
        if self._task is not None:
            self._task.cancel()

    async def _run(self, writer: StreamWriter) -> None:
        try:
            while not writer.closed:
                self._news.clear()
                pod = self._pod
                if pod is None:
                    return
                writer.write(await self._log.text(await self._source(pod)))
                same = _instance(pod, self._container) == self._restarts
                if self._log.is_full or not same or not is_running(pod, self._container):
                    return
                try:
                    await asyncio.wait_for(self._news.wait(), POLL_SECONDS if self._polls else None)
                except TimeoutError:
                    continue
        finally:
            writer.close()


def _instance(pod: Object, container: str) -> int:
    """Number of the container's run."""
    status = status_of(pod, container)
    return 0 if status is None else int(status.get("restartCount", 0))


async def answer(
    request: Request,
    pod: Object,
    container: str,
    options: LogOptions,
    source: Source,
    pods: PodWatch,
    *,
    polls: bool,
) -> Answer:
    """Response to a log request: the whole text, a stream that follows the log, or one of them as a WebSocket."""
    log = Log(options, started(pod, container, previous=options.previous))
    protocol = stream_protocol(request) if is_websocket(request) else ""
    if isinstance(protocol, Response):
        return protocol
    if options.follow and not options.previous:
        return Follower(pod, container, log, source, pods, polls=polls).stream(protocol)
    text = await log.text(await source(pod))
    if not is_websocket(request):
        return Response(200, list(PLAIN), text)

    def send(writer: StreamWriter) -> None:
        writer.write(text)
        writer.close()

    return _stream(send, lambda: None, protocol)


def _stream(start: Callable[[StreamWriter], None], stopped: Callable[[], None], protocol: str) -> Stream:
    is_text = protocol == BASE64
    return Stream(200, list(PLAIN), start, stopped, protocol, text_messages=is_text, byte_stream=True)
