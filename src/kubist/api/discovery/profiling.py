"""/debug/pprof and /debug/flags: profiles of this process, and its log level. `--profiling=false` turns them off."""

from __future__ import annotations

import asyncio
import sys
import threading
import traceback
from collections.abc import Callable

from kubist.api.discovery.sampling import IN_USE, Sampler
from kubist.api.request import parse_query
from kubist.base.http.messages import Request, Response

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
        """CPU profile. The samples are taken in a thread, so that the event loop goes on."""
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
        given = bytes(request.body).decode("utf-8", "replace")
        level = _whole_number(given, 2**31 - 1)
        if level is None:
            text = f'strconv.ParseUint: parsing "{given[:100]}": invalid syntax\n'
            return Response(400, headers, text.encode())
        self._set_verbosity(level)
        return Response(200, headers, f"successfully set klog.logging.verbosity to {level}\n".encode())


def _seconds(request: Request) -> float:
    """Parameter `seconds`; the default if it is no positive whole number."""
    return float(_whole_number(parse_query(request.query).get("seconds", ""), LONGEST) or SECONDS)


def _whole_number(text: str, most: int) -> int | None:
    """Number of decimal digits up to a limit; None for other text. Long text is not converted."""
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
