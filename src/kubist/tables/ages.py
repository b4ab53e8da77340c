"""Times as people read them in a table: how long ago, in two or three figures, and until when that holds."""

from __future__ import annotations

from typing import Any

import orjson

from kubist.caching import bounded_cache
from kubist.meta.times import is_zero, parse_micro_time, parse_time

UNKNOWN = "<unknown>"
FOREVER = float("inf")
LONGEST = 9223372036
"""Seconds that a difference of times can have at most; what is longer counts as this."""
MINUTE, HOUR, DAY = 60, 3600, 86400


class Since:
    """A cell that says how long ago something was; `template` has a `%s` for it."""

    __slots__ = ("template", "when")

    def __init__(self, when: float, template: str = "%s") -> None:
        self.when = when
        self.template = template

    def text(self, now: float) -> tuple[str, float]:
        """The cell now, and until when it stays so."""
        shown, step = _human(now - self.when)
        return self.template % shown, _until(now, self.when, step)

    def json(self, now: float) -> tuple[bytes, float]:
        """`text` as JSON; what many cells say in one second is made once."""
        return _json(self.when, self.template, int(now) if self.when.__class__ is int else now)

    def templated(self, template: str) -> Since:
        return Since(self.when, template)


@bounded_cache(entries=1024, key_length=128)
def _json(when: float, template: str, now: float) -> tuple[bytes, float]:
    text, until = Since(when, template).text(now)
    return orjson.dumps(text), until


Cell = Any
"""A JSON value or a `Since`."""


def age(obj: dict[str, Any]) -> Cell:
    """How old an object is."""
    return since(obj["metadata"].get("creationTimestamp"))


def since(text: str | None) -> Cell:
    if not text or is_zero(when := parse_time(text)):
        return UNKNOWN
    return Since(when)


def since_micro(text: str | None) -> Cell:
    if not text:
        return UNKNOWN
    seconds, micros = parse_micro_time(text)
    return Since(seconds + micros / 1e6) if not is_zero(seconds) else UNKNOWN


def human_duration(seconds: float) -> str:
    return _human(seconds)[0]


def _until(now: float, when: float, step: int) -> float:
    """The next moment at which a text that changes every `step` seconds of age may change."""
    passed = now - when
    return when + (passed // step + 1) * step if passed >= 0 else when - 1 if passed < -2 else now + 0.5


def _human(seconds: float) -> tuple[str, int]:
    """A duration, and every how many seconds such a duration is shown differently."""
    passed = int(max(min(seconds, LONGEST), -LONGEST))
    if passed < -1:
        return "<invalid>", 1
    if passed < 0:
        return "0s", 1
    if passed < 2 * MINUTE:
        return f"{passed}s", 1
    if passed < 10 * MINUTE:
        return _two(passed, MINUTE, "m", 1, "s"), 1
    if passed < 3 * HOUR:
        return f"{passed // MINUTE}m", MINUTE
    if passed < 8 * HOUR:
        return _two(passed, HOUR, "h", MINUTE, "m"), MINUTE
    if passed < 48 * HOUR:
        return f"{passed // HOUR}h", HOUR
    if passed < 8 * DAY:
        return _two(passed, DAY, "d", HOUR, "h"), HOUR
    if passed < 2 * 365 * DAY:
        return f"{passed // DAY}d", DAY
    if passed < 8 * 365 * DAY:
        return _two(passed, 365 * DAY, "y", DAY, "d"), DAY
    return f"{passed // (365 * DAY)}y", 365 * DAY


def _two(passed: int, unit: int, name: str, part: int, part_name: str) -> str:
    whole, rest = divmod(passed, unit)
    parts = rest // part
    return f"{whole}{name}{parts}{part_name}" if parts else f"{whole}{name}"
