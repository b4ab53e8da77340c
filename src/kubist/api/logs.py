"""Log lines as text or JSON. Lines of a request carry its audit ID, verb, path and user.

No query, header or body of a request is ever logged. A disabled line costs one comparison.
"""

from __future__ import annotations

import contextvars
import logging
import sys
import time
from datetime import UTC, datetime
from typing import TYPE_CHECKING, Any

import orjson

from kubist.base.caching import BoundedCache

if TYPE_CHECKING:
    from kubist.api.resources.context import Context

FORMATS = ("text", "json")
ACCESS_VERBOSITY = 3
SLOW_SECONDS = 1.0
"""Seconds after which a request is always logged."""

access = logging.getLogger("kubist.access")
server = logging.getLogger("kubist")
access.setLevel(logging.WARNING)

CURRENT: contextvars.ContextVar[Context | None] = contextvars.ContextVar("kubist-request", default=None)
"""Current request. Tasks that it starts inherit it until the request is answered."""


def setup(verbosity: int, form: str = "text") -> None:
    """Logs to standard error, one line per record.

    Verbosity 0: warnings; 1: information; 3: every request; 4: everything.
    """
    handler = logging.StreamHandler(sys.stderr)
    handler.setFormatter(JsonFormatter() if form == "json" else TextFormatter())
    logging.basicConfig(handlers=[handler])
    set_verbosity(verbosity)


def set_verbosity(verbosity: int) -> None:
    """Changes the verbosity of the log."""
    level = logging.DEBUG if verbosity >= 4 else logging.INFO if verbosity >= 1 else logging.WARNING
    logging.getLogger().setLevel(level)
    access.setLevel(logging.INFO if verbosity >= ACCESS_VERBOSITY else logging.WARNING)


def answered(ctx: Context, status: int, seconds: float, *, slow: bool) -> None:
    """Logs a request: as a warning if it was slow, otherwise as information. `seconds`: time until it ended."""
    access.log(
        logging.WARNING if slow else logging.INFO,
        "slow request" if slow else "request",
        extra={"request": ctx, "status": status, "duration": seconds},
    )


def request_fields(record: logging.LogRecord) -> dict[str, Any]:
    """Request fields of a log record. Empty if it belongs to no request."""
    ctx: Context | None = getattr(record, "request", None)
    if ctx is None:
        ctx = CURRENT.get()
        if ctx is None or ctx.is_answered:
            return {}
    fields: dict[str, Any] = {
        "auditID": ctx.audit_id,
        "verb": ctx.verb,
        "path": ctx.api.config.url_prefix + ctx.request.path,
        "user": ctx.user.name,
    }
    if hasattr(record, "status"):
        fields["status"] = record.status
        fields["duration"] = round(getattr(record, "duration", 0.0), 6)
    return fields


class TextFormatter(logging.Formatter):
    """`time level logger: message key=value …`, with the level as one letter."""

    default_msec_format = "%s.%03d"

    def __init__(self) -> None:
        super().__init__("%(asctime)s %(levelname).1s %(name)s: %(message)s")

    def formatMessage(self, record: logging.LogRecord) -> str:
        line = super().formatMessage(record)
        for name, value in request_fields(record).items():
            line += f" {name}={value if isinstance(value, (int, float)) else _quoted(str(value))}"
        if line.isprintable():
            return line
        return "".join(char if char.isprintable() else repr(char)[1:-1] for char in line)


class JsonFormatter(logging.Formatter):
    """One JSON object per line: time, level, logger, message, request fields and exception."""

    def format(self, record: logging.LogRecord) -> str:
        line = {
            "time": datetime.fromtimestamp(record.created, UTC).isoformat(timespec="microseconds"),
            "level": record.levelname.lower(),
            "logger": record.name,
            "message": record.getMessage(),
            **request_fields(record),
        }
        if record.exc_info:
            line["exception"] = self.formatException(record.exc_info)
        return orjson.dumps(line, default=str).decode()


def _quoted(text: str) -> str:
    """Value of a field. Quotes are escaped, because a path could otherwise add fields to its line."""
    if text and " " not in text and '"' not in text:
        return text
    return '"' + text.replace("\\", "\\\\").replace('"', '\\"') + '"'


LONGEST_TEXT = 256
"""Number of leading characters by which `Seldom` distinguishes texts."""


class Seldom:
    """Limits each text to one line every `seconds`, so that an outage does not fill the disk."""

    def __init__(self, seconds: float = 5.0, texts: int = 256) -> None:
        self._seconds = seconds
        self._said: BoundedCache[str, float] = BoundedCache(entries=texts, key_length=LONGEST_TEXT)

    def may(self, text: str) -> bool:
        now, text = time.monotonic(), text[:LONGEST_TEXT]
        if now - self._said.get(text, -self._seconds) < self._seconds:
            return False
        self._said[text] = now
        return True
