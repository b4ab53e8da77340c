"""/debug/pprof and /debug/flags: profiles of this process, and its log level. `--profiling=false` turns them off. A CPU
profile is made by sampling, in the format of pprof."""

from __future__ import annotations

import asyncio
import gzip
import sys
import threading
import time
import traceback
from collections.abc import Callable
from types import CodeType, FrameType

from kubist.api.request import parse_query
from kubist.base.http.messages import Request, Response
from kubist.model.codec.protobuf_wire import BYTES, VARINT, delimited, tag, varint

PREFIX = "/debug/pprof/"
PROFILES = {
    "goroutine": "Stacks of all tasks and threads. They are the goroutines of a Python program.",
    "profile": "CPU profile. The parameter seconds sets its duration. Read the file with go tool pprof.",
    "symbol": "Answers that the profiles have their symbols.",
    "threadcreate": "Stacks of all threads.",
}
SECONDS = 30.0
"""Duration of a profile without the parameter `seconds`."""
LONGEST = 3600
"""Maximum of the parameter `seconds`."""
_NOSNIFF = (b"X-Content-Type-Options", b"nosniff")
_TEXT = (b"Content-Type", b"text/plain; charset=utf-8")
_HTML = (b"Content-Type", b"text/html; charset=utf-8")
_FLAGS = """\
<html>
<head>
<title>/debug/flags/</title>
</head>
<body>
/debug/flags/<br>
<br>
flags:<br>
<table>
<tr>v<br>
</table>
<br>
full flags configurable<br>
</body>
</html>
"""


class Profiling:
    """Handlers of one server. `set_verbosity` changes its log level."""

    def __init__(self, set_verbosity: Callable[[int], None]) -> None:
        self._set_verbosity = set_verbosity

    async def answer(self, request: Request, path: str) -> Response | None:
        """Response for a path; None if it is not one of these paths."""
        if path == PREFIX.rstrip("/"):
            headers = [_HTML, (b"Location", PREFIX.encode())]
            return Response(302, headers, f'<a href="{PREFIX}">Found</a>.\n\n'.encode())
        if path in ("/debug/flags", "/debug/flags/"):
            return Response(200, [_HTML], _FLAGS.encode())
        if path == "/debug/flags/v":
            return self._verbosity(request)
        if not path.startswith(PREFIX):
            return None
        match path[len(PREFIX) :]:
            case "":
                return Response(200, [_HTML, _NOSNIFF], _index().encode())
            case "profile":
                return await self._profile(request)
            case "symbol":
                return Response(200, [_TEXT, _NOSNIFF], b"num_symbols: 1\n")
            case "goroutine":
                return Response(200, [_TEXT, _NOSNIFF], (_tasks() + _threads()).encode())
            case "threadcreate":
                return Response(200, [_TEXT, _NOSNIFF], _threads().encode())
        return Response(404, [_TEXT, _NOSNIFF, (b"X-Go-Pprof", b"1")], b"Unknown profile\n")

    async def _profile(self, request: Request) -> Response:
        """CPU profile. A thread takes the samples, so that the event loop keeps running."""
        if not IN_USE.acquire(blocking=False):
            text = b"Could not enable CPU profiling: cpu profiling already in use\n"
            return Response(500, [_TEXT, _NOSNIFF, (b"X-Go-Pprof", b"1")], text)
        sampler = Sampler()
        try:
            await asyncio.sleep(_seconds(request))
            body = await asyncio.to_thread(sampler.profile)
        finally:
            sampler.stop()
        headers = [
            (b"Content-Type", b"application/octet-stream"),
            (b"Content-Disposition", b'attachment; filename="profile"'),
            _NOSNIFF,
        ]
        return Response(200, headers, body)

    def _verbosity(self, request: Request) -> Response:
        headers = [(b"Content-Type", b"text/plain"), _NOSNIFF]
        if request.method != "PUT":
            return Response(406, headers, b"unsupported http method\n")
        body_text = bytes(request.body).decode("utf-8", "replace")
        level = _whole_number(body_text, 2**31 - 1)
        if level is None:
            text = f'strconv.ParseUint: parsing "{body_text[:100]}": invalid syntax\n'
            return Response(400, headers, text.encode())
        self._set_verbosity(level)
        return Response(200, headers, f"successfully set klog.logging.verbosity to {level}\n".encode())


def _seconds(request: Request) -> float:
    """Parameter `seconds`; the default if it is not a positive whole number."""
    return float(_whole_number(parse_query(request.query).get("seconds", ""), LONGEST) or SECONDS)


def _whole_number(text: str, most: int) -> int | None:
    """Value of decimal digits, up to a limit; None for other text. Long text is not converted."""
    if not (text.isdecimal() and text.isascii() and len(text) <= len(str(most))):
        return None
    return number if (number := int(text)) <= most else None


def _threads() -> str:
    """Stacks of all threads."""
    names = {thread.ident: thread.name for thread in threading.enumerate()}
    parts = []
    for number, frame in sys._current_frames().items():
        stack = "".join(traceback.format_stack(frame))
        parts.append(f"thread {number} [{names.get(number, 'unknown')}]:\n{stack}\n")
    return "".join(parts)


def _tasks() -> str:
    """Stacks of all tasks of the event loop."""
    parts = []
    for task in asyncio.all_tasks():
        frames = task.get_stack()
        stack = "".join(traceback.format_stack(frames[-1], limit=64)) if frames else ""
        parts.append(f"task {task.get_name()} [{'done' if task.done() else 'waiting'}]:\n{stack}\n")
    return "".join(parts)


def _index() -> str:
    threads = threading.active_count()
    counts = {"goroutine": len(asyncio.all_tasks()) + threads, "threadcreate": threads}
    rows = "".join(
        f"<tr><td>{counts.get(name, 0)}</td><td><a href='{name}?debug=1'>{name}</a></td></tr>\n"
        for name in PROFILES
    )
    listed = "".join(
        f"<li><div class=profile-name>{name}: </div> {text}</li>\n" for name, text in PROFILES.items()
    )
    return f"""\
<html>
<head>
<title>/debug/pprof/</title>
<style>
.profile-name{{
	display:inline-block;
	width:6rem;
}}
</style>
</head>
<body>
/debug/pprof/
<br>
Types of profiles available:
<table>
<thead><td>Count</td><td>Profile</td></thead>
{rows}</table>
<a href="goroutine?debug=2">full goroutine stack dump</a>
<br>
<p>
Profile Descriptions:
<ul>
{listed}</ul>
</p>
</body>
</html>
"""


INTERVAL = 0.01
"""Seconds between two samples."""
SWITCH = 1e-5
"""Switch interval in seconds. With the default interval, a sample would wait until the event loop is idle."""
DEPTH = 128
"""Maximum number of frames of a stack."""

IN_USE = threading.Lock()
"""Held by the sampler of this process. Servers of one process share its threads and its switch interval."""

Stack = tuple[tuple[CodeType, int], ...]
"""Code and line of each frame, the innermost first."""


class Sampler:
    """Samples the stacks of all other threads from its own thread, weighted by the CPU time that each has used.

    The caller must have acquired `IN_USE`. The sampler releases it when it ends."""

    def __init__(self) -> None:
        self.samples: dict[Stack, list[int]] = {}
        """Stack → number of samples, nanoseconds of CPU time."""
        self._began = time.time_ns()
        self._stop = threading.Event()
        self._used: dict[int, int] = {}
        self._thread = threading.Thread(target=self._run, name="kubist-profile", daemon=True)
        self._thread.start()

    def stop(self) -> None:
        self._stop.set()

    def profile(self) -> bytes:
        """Ends the sampling and returns the profile, compressed."""
        self.stop()
        self._thread.join()
        return gzip.compress(encoded(self.samples, self._began, time.time_ns() - self._began), mtime=0)

    def _run(self) -> None:
        usual = sys.getswitchinterval()
        sys.setswitchinterval(SWITCH)
        try:
            while not self._stop.wait(INTERVAL):
                self._sample()
        finally:
            sys.setswitchinterval(usual)
            IN_USE.release()

    def _sample(self) -> None:
        own = threading.get_ident()
        for thread, frame in sys._current_frames().items():
            if thread == own:
                continue
            used = _cpu_time(thread)
            before = self._used.get(thread, used)
            self._used[thread] = used
            if used > before:
                entry = self.samples.setdefault(_stack(frame), [0, 0])
                entry[0] += 1
                entry[1] += used - before


def _cpu_time(thread: int) -> int:
    """CPU time of a thread in nanoseconds; the monotonic time on systems without this clock."""
    try:
        return time.clock_gettime_ns(time.pthread_getcpuclockid(thread))
    except (AttributeError, OSError):
        return time.monotonic_ns()


def _stack(frame: FrameType | None) -> Stack:
    frames: list[tuple[CodeType, int]] = []
    while frame is not None and len(frames) < DEPTH:
        frames.append((frame.f_code, frame.f_lineno or 0))
        frame = frame.f_back
    return tuple(frames)


def encoded(samples: dict[Stack, list[int]], began: int, nanoseconds: int) -> bytes:
    """Profile message of pprof. https://github.com/google/pprof/blob/main/proto/profile.proto defines the field
    numbers."""
    strings: dict[str, int] = {"": 0}
    functions: dict[CodeType, int] = {}
    locations: dict[tuple[CodeType, int], int] = {}

    def text(value: str) -> int:
        return strings.setdefault(value, len(strings))

    def value_type(kind: str, unit: str) -> bytes:
        return _number(1, text(kind)) + _number(2, text(unit))

    out = [_message(1, value_type("samples", "count")), _message(1, value_type("cpu", "nanoseconds"))]
    for stack, (count, cpu) in samples.items():
        for code, line in stack:
            functions.setdefault(code, len(functions) + 1)
            locations.setdefault((code, line), len(locations) + 1)
        ids = b"".join(varint(locations[frame]) for frame in stack)
        out.append(_message(2, _message(1, ids) + _message(2, varint(count) + varint(cpu))))
    for (code, line), number in locations.items():
        where = _number(1, functions[code]) + _number(2, line)
        out.append(_message(4, _number(1, number) + _message(4, where)))
    for code, number in functions.items():
        name = text(code.co_qualname)
        names = _number(2, name) + _number(3, name) + _number(4, text(code.co_filename))
        out.append(_message(5, _number(1, number) + names + _number(5, code.co_firstlineno)))
    out.append(_number(9, began) + _number(10, nanoseconds))
    out.append(_message(11, value_type("cpu", "nanoseconds")) + _number(12, round(INTERVAL * 10**9)))
    return b"".join([*out, *(_message(6, value.encode()) for value in strings)])


def _number(field: int, value: int) -> bytes:
    return tag(field, VARINT) + varint(value)


def _message(field: int, value: bytes) -> bytes:
    return delimited(tag(field, BYTES), value)
