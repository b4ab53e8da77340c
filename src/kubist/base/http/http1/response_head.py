"""Head of an HTTP/1.1 response as bytes. Constant parts are built once."""

from __future__ import annotations

import time
from http import HTTPStatus

from kubist.base.http.messages import Headers

_STATUS_LINES = {
    status.value: f"HTTP/1.1 {status.value} {status.phrase}\r\n".encode() for status in HTTPStatus
}
BODILESS = frozenset({204, 304})


_DAYS = ("Mon", "Tue", "Wed", "Thu", "Fri", "Sat", "Sun")
_MONTHS = ("Jan", "Feb", "Mar", "Apr", "May", "Jun", "Jul", "Aug", "Sep", "Oct", "Nov", "Dec")


def date_line() -> bytes:
    now = time.gmtime()
    day = f"{_DAYS[now.tm_wday]}, {now.tm_mday:02} {_MONTHS[now.tm_mon - 1]} {now.tm_year}"
    return f"Date: {day} {now.tm_hour:02}:{now.tm_min:02}:{now.tm_sec:02} GMT\r\n".encode()


def head(status: int, headers: Headers, *rest: bytes) -> bytes:
    """Status line, `headers`, then the encoded lines in `rest`. The last of these ends the head."""
    lines = b"".join([b"%b: %b\r\n" % header for header in headers])
    if lines.count(b"\n") != len(headers):
        lines = b"".join([b"%b: %b\r\n" % (_one_line(name), _one_line(value)) for name, value in headers])
    status_line = _STATUS_LINES.get(status) or b"HTTP/1.1 %d Status\r\n" % status
    return b"".join((status_line, lines, *rest))


def _one_line(text: bytes) -> bytes:
    return b" ".join(text.split(b"\r")).replace(b"\n", b" ")
