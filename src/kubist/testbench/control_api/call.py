"""Requests to the control API: their body as typed fields, and errors that name the field."""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any, NoReturn

import orjson

from kubist.api.resources.context import User
from kubist.base.hints import did_you_mean
from kubist.base.http.messages import Request
from kubist.base.jsontext.json import may_repeat, parse_repeats
from kubist.base.jsontext.quoting import quoted
from kubist.model.meta import durations, fields, status, times
from kubist.model.meta.fields import FieldError
from kubist.model.meta.object import Object

GROUP = "kubist.io"
TEST_AGENT = "kubist-testing"
"""User agent of the helpers of a test. Fault rules spare it unless they name a user agent."""
FAULT_HEADER = "Kubist-Fault"
"""Header of a response that a fault rule made, with the id of the rule."""
OTHER_TYPES = frozenset(
    (
        "application/yaml",
        "application/cbor",
        "application/vnd.kubernetes.protobuf",
        "application/apply-patch+yaml",
    )
)
"""Media types of Kubernetes that this API does not read. Others are taken for JSON, such as that of `curl -d`."""
MOST_HINTS = 10
"""Number of unknown fields for which a similar name is searched."""


class Fields:
    """Fields of a JSON object. Each is read once; `done` rejects the others and everything invalid."""

    def __init__(self, kind: str, values: Mapping[str, Any], path: str = "") -> None:
        self._kind = kind
        self._left = dict(values)
        self._known: set[str] = set()
        """Names of the fields that were asked for."""
        self._path = path
        self.errors: list[FieldError] = []

    def __contains__(self, name: str) -> bool:
        """Whether a field has a value. As in Kubernetes, null is none."""
        self._known.add(name)
        return self._left.get(name) is not None

    def path(self, name: str) -> str:
        return f"{self._path}.{name}" if self._path else name

    def peek(self, name: str) -> Any:
        """Value of a field that is still to be read."""
        return self._left.get(name)

    def take(self, name: str) -> Any:
        """Value of any type; None if it is missing."""
        self._known.add(name)
        return self._left.pop(name, None)

    def _typed(self, name: str, kinds: type | tuple[type, ...], called: str) -> Any:
        value = self.take(name)
        if value is None:
            return None
        if not isinstance(value, kinds) or (isinstance(value, bool) and kinds is not bool):
            self.reject(name, value, f"must be {called}")
            return None
        return value

    def text(self, name: str, default: str = "") -> str:
        value = self._typed(name, str, "a string")
        return default if value is None else value

    def boolean(self, name: str) -> bool | None:
        value: bool | None = self._typed(name, bool, "true or false")
        return value

    def integer(self, name: str, default: int = 0, *, least: int = 0) -> int:
        value = self._typed(name, int, "a whole number")
        if value is not None and value < least:
            self.reject(name, value, f"must be at least {least}")
            return default
        return default if value is None else value

    def number(self, name: str) -> float | None:
        value: float | None = self._typed(name, (int, float), "a number")
        if value is not None and not math.isfinite(value):
            self.reject(name, value, "must be a number")
            return None
        return value

    def seconds(self, name: str) -> float | None:
        """Seconds of a duration such as `1h30m`, or of a number of seconds."""
        value = self.take(name)
        if value is None:
            return None
        if isinstance(value, (int, float)) and not isinstance(value, bool) and math.isfinite(value):
            return float(value)
        if isinstance(value, str):
            try:
                return durations.parse(value) / durations.SECOND
            except ValueError:
                pass
        self.reject(name, value, "must be a duration such as 90s or 1h30m")
        return None

    def time(self, name: str) -> float | None:
        """Seconds since 1970 of an RFC 3339 time."""
        value = self._typed(name, str, "a time such as 2030-01-01T00:00:00Z")
        if value is None:
            return None
        try:
            return float(times.parse_time(value))
        except ValueError:
            self.reject(name, value, "must be a time such as 2030-01-01T00:00:00Z")
            return None

    def texts(self, name: str) -> tuple[str, ...]:
        """Strings of a list, or one string."""
        value = self.take(name)
        if value is None:
            return ()
        found = [value] if isinstance(value, str) else value
        if not isinstance(found, list) or not all(isinstance(item, str) for item in found):
            self.reject(name, value, "must be a string or a list of strings")
            return ()
        return tuple(found)

    def below(self, name: str) -> Fields:
        """Fields of an object in this object."""
        value = self._typed(name, dict, "an object")
        return Fields(self._kind, value or {}, self.path(name))

    def reject(self, name: str, value: object, why: str) -> None:
        self.errors.append(fields.invalid(self.path(name), value, why))

    def require(self, name: str, why: str) -> None:
        self.errors.append(fields.required(self.path(name), why))

    def forbid(self, name: str, why: str) -> None:
        self.errors.append(fields.forbidden(self.path(name), why))

    def _unknown(self) -> list[FieldError]:
        names = sorted(
            name for name, value in self._left.items() if name not in self._known or value is not None
        )
        return [
            fields.forbidden(self.path(name), f"unknown field{did_you_mean(name, self._known)}")
            for name in names[:MOST_HINTS]
        ] + [fields.forbidden(self.path(name), "unknown field") for name in names[MOST_HINTS:]]

    def done(self, *parts: Fields) -> None:
        """Raises 422 if a field is unknown or invalid. `parts` are the results of `below`."""
        found = [*self.errors]
        for part in (self, *parts):
            if part is not self:
                found += part.errors
            found += part._unknown()
        if found:
            raise status.invalid(GROUP, self._kind, "", found)


@dataclass(slots=True)
class Call:
    """One request to the control API."""

    request: Request
    user: User
    query: dict[str, str]
    params: dict[str, str] = field(default_factory=dict)
    """Variable parts of the path."""

    def json(self) -> Object:
        """Object of the body; empty without a body. Raises 400 or 415 if the body is no JSON object."""
        if not self.request.body:
            return {}
        media_type = self.request.headers.get("content-type", "").partition(";")[0].strip().lower()
        if media_type in OTHER_TYPES:
            raise status.APIError(
                415, "UnsupportedMediaType", f"the body is {media_type}: send application/json"
            )
        body = self.request.body
        try:
            found = orjson.loads(body)
        except ValueError as error:
            raise status.bad_request(f"the body is not JSON: {error}") from None
        if not isinstance(found, dict):
            raise status.bad_request("the body must be a JSON object")
        if may_repeat(body, found) and (twice := _repeated(body)):
            raise status.bad_request(f"the body has the field {quoted(twice)} twice")
        return found

    def fields(self, kind: str) -> Fields:
        return Fields(kind, self.json())


def _repeated(body: bytes) -> str:
    """First field of the object that comes again; empty if there is none."""
    value, repeats = parse_repeats(body)
    seen: set[str] = set()
    for name, _ in repeats.pairs(value):
        if name in seen:
            return name
        seen.add(name)
    return ""


def conflict(message: str) -> NoReturn:
    """Raises 409 for an operation that this server cannot do in its present state."""
    raise status.APIError(409, "Conflict", message)
