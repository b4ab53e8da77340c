"""Log lines: as text or as JSON, and while a request is under way with what tells it from the others.

Nothing of a request but its verb, path, user and audit id is ever logged: no query, header or body. What is not
logged costs one comparison.
"""

from __future__ import annotations

import contextvars
import logging
import sys
import time
from datetime import UTC, datetime
from typing import TYPE_CHECKING, Any

import orjson

from kubist.caching import BoundedCache

if TYPE_CHECKING:
    from kubist.filters.handler_chain import Passage

FORMATS = ("text", "json")
ACCESS_VERBOSITY = 3
SLOW_SECONDS = 1.0
"""What a request may take before it gets a line in any case."""

access = logging.getLogger("kubist.access")
access.setLevel(logging.WARNING)

CURRENT: contextvars.ContextVar[Passage | None] = contextvars.ContextVar("kubist-request", default=None)
"""The request under way here. Tasks that it starts inherit it, and belong to it until it is answered."""


def setup(verbosity: int, form: str = "text") -> None:
    """Log to standard error, one line a record: warnings, from 1 on what happens, from 3 on every request, from
    4 on everything."""
    level = logging.DEBUG if verbosity >= 4 else logging.INFO if verbosity >= 1 else logging.WARNING
    handler = logging.StreamHandler(sys.stderr)
    handler.setFormatter(JsonFormatter() if form == "json" else TextFormatter())
    logging.basicConfig(level=level, handlers=[handler])
    access.setLevel(logging.INFO if verbosity >= ACCESS_VERBOSITY else logging.WARNING)


def answered(passage: Passage, status: int, seconds: float) -> None:
    """A line for a request, if it is to have one: all of them are asked for, or it took long."""
    slow = seconds > SLOW_SECONDS
    access.log(
        logging.WARNING if slow else logging.INFO,
        "slow request" if slow else "request",
        extra={"passage": passage, "status": status, "duration": seconds},
    )


def request_fields(record: logging.LogRecord) -> dict[str, Any]:
    """What a line says about its request: nothing if it belongs to none."""
    passage: Passage | None = getattr(record, "passage", None)
    if passage is None:
        passage = CURRENT.get()
        if passage is None or passage.done:
            return {}
    info = passage.info
    fields: dict[str, Any] = {
        "auditID": passage.identify(),
        "verb": info.verb if info is not None else passage.request.method,
        "path": passage.request.path,
        "user": passage.user,
    }
    if hasattr(record, "status"):
        fields["status"] = record.status
        fields["duration"] = round(getattr(record, "duration", 0.0), 6)
    return fields


class TextFormatter(logging.Formatter):
    """`time level logger: message key=value …`, the level as one letter."""

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
    """One object a line: time, level, logger, message, then the request, then the trace of an exception."""

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
    return text if text and " " not in text and '"' not in text else f'"{text}"'


LONGEST_TEXT = 256
"""Characters by which `Seldom` tells texts apart."""


class Seldom:
    """Lets a line through once in so many seconds for each text, so that an outage does not fill the disk."""

    def __init__(self, seconds: float = 5.0, texts: int = 256) -> None:
        self._seconds = seconds
        self._said: BoundedCache[str, float] = BoundedCache(entries=texts, key_length=LONGEST_TEXT)

    def may(self, text: str) -> bool:
        now, text = time.monotonic(), text[:LONGEST_TEXT]
        if now - self._said.get(text, -self._seconds) < self._seconds:
            return False
        self._said[text] = now
        return True
