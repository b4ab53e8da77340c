"""Ages in table cells: a duration in two or three figures, and the time until which the text is valid."""

from __future__ import annotations

from typing import Any

import orjson

from kubist.base.caching import bounded_cache
from kubist.model.meta.durations import human_duration_and_step
from kubist.model.meta.times import is_zero, parse_micro_time, parse_time

UNKNOWN = "<unknown>"
FOREVER = float("inf")


class Since:
    """Cell that shows the time since `when`. `template` has a `%s` for it."""

    __slots__ = ("template", "when")

    def __init__(self, when: float, template: str = "%s") -> None:
        self.when = when
        self.template = template

    def text(self, now: float) -> tuple[str, float]:
        """Text of the cell now, and the time until which it is valid."""
        duration, step = human_duration_and_step(now - self.when)
        return self.template % duration, _until(now, self.when, step)

    def json(self, now: float) -> tuple[bytes, float]:
        """JSON of `text`. Cells with the same values in one second share the result."""
        return _json(self.when, self.template, int(now) if self.when.__class__ is int else now)

    def templated(self, template: str) -> Since:
        return Since(self.when, template)


@bounded_cache(entries=1024, key_length=128)
def _json(when: float, template: str, now: float) -> tuple[bytes, float]:
    text, until = Since(when, template).text(now)
    return orjson.dumps(text), until


Cell = Any
"""JSON value or `Since`."""


def age(obj: dict[str, Any]) -> Cell:
    """Age of an object."""
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


def _until(now: float, when: float, step: int) -> float:
    """Time at which a text that changes every `step` seconds of age changes next."""
    seconds = now - when
    return when + (seconds // step + 1) * step if seconds >= 0 else when - 1 if seconds < -2 else now + 0.5
