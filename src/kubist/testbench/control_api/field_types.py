"""Fields of a JSON object in a request, and the types that read and describe them."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from typing import Annotated, Any

from kubist.base.hints import did_you_mean
from kubist.model.meta import durations, status, times
from kubist.model.meta.fields import FieldError, forbidden, invalid, required
from kubist.model.meta.object import Object

GROUP = "kubist.io"
MOST_HINTS = 10
"""Maximum number of unknown fields for which a similar name is suggested."""


class Invalid(ValueError):
    """Problems of a value. `value` replaces the value itself in the error."""

    def __init__(self, *problems: str, value: object = None) -> None:
        super().__init__(*problems)
        self.problems = problems
        self.value = value


class Fields:
    """Fields of a JSON object. Each is read once; `done` rejects the others and everything invalid."""

    def __init__(self, kind: str, values: Mapping[str, Any], path: str = "") -> None:
        self._kind = kind
        self._left = dict(values)
        self._known: set[str] = set()
        """Names of the fields that exist."""
        self._path = path
        self._below: list[Fields] = []
        self.errors: list[FieldError] = []

    def __contains__(self, name: str) -> bool:
        """Whether a field has a value. As in Kubernetes, null is none."""
        self._known.add(name)
        return self._left.get(name) is not None

    def path(self, name: str) -> str:
        return f"{self._path}.{name}" if self._path else name

    def peek(self, name: str) -> Any:
        """Value of a field that has not been read yet."""
        return self._left.get(name)

    def take(self, name: str) -> Any:
        """Value of any type; None if it is missing."""
        self._known.add(name)
        return self._left.pop(name, None)

    def convert(self, name: str, value: Any, convert: Callable[[Any], Any], default: Any) -> Any:
        """Converted value. A ValueError rejects it."""
        try:
            return convert(value)
        except Invalid as error:
            for problem in error.problems:
                self.reject(name, value if error.value is None else error.value, problem)
        except ValueError as error:
            self.reject(name, value, str(error))
        return default

    def below(self, name: str) -> Fields:
        """Fields of an object in this object."""
        below = Fields(self._kind, OBJECT.read(self, name, {}), self.path(name))
        self._below.append(below)
        return below

    def reject(self, name: str, value: object, why: str) -> None:
        self.errors.append(invalid(self.path(name), value, why))

    def require(self, name: str, why: str) -> None:
        self.errors.append(required(self.path(name), why))

    def forbid(self, name: str, why: str) -> None:
        self.errors.append(forbidden(self.path(name), why))

    def _unknown(self) -> list[FieldError]:
        names = sorted(
            name for name, value in self._left.items() if name not in self._known or value is not None
        )
        return [
            forbidden(self.path(name), f"unknown field{did_you_mean(name, self._known)}")
            for name in names[:MOST_HINTS]
        ] + [forbidden(self.path(name), "unknown field") for name in names[MOST_HINTS:]]

    def done(self) -> None:
        """Raises 422 if a field is unknown or invalid."""
        errors = self._errors()
        if errors:
            raise status.invalid(GROUP, self._kind, "", errors)

    def _errors(self) -> list[FieldError]:
        return [
            *self.errors,
            *self._unknown(),
            *(error for below in self._below for error in below._errors()),
        ]


@dataclass(eq=False)
class FieldType:
    """Type of a field: reads its value, and describes it by a schema."""

    schema: Object
    kinds: type | tuple[type, ...] = object
    """Python types of JSON values."""
    called: str = ""
    """Name of the type in errors."""
    convert: Callable[[Any], Any] | None = None
    """Converts the JSON value. A ValueError rejects it."""
    absent: Any = None
    """Placeholder for a value that is missing or of another type."""

    def read(self, fields: Fields, name: str, default: Any) -> Any:
        """Value of a field; the default if it is missing or invalid."""
        value = fields.take(name)
        is_bool = isinstance(value, bool) and self.kinds not in (bool, object)
        if value is not None and (is_bool or not isinstance(value, self.kinds)):
            fields.reject(name, value, f"must be {self.called}")
            value = None
        if value is None:
            value = self.absent
        if value is None:
            return default
        return fields.convert(name, value, self.convert, default) if self.convert is not None else value


def text(problems: Callable[[str], Iterable[str]], absent: str | None = None, **schema: Any) -> FieldType:
    """String. `problems` returns what is wrong with one."""

    def check(value: str) -> str:
        if errors := list(problems(value)):
            raise Invalid(*errors)
        return value

    return FieldType({"type": "string"} | schema, str, "a string", check, absent)


def short_text(longest: int, *, excerpt: int = 50, may_be_empty: bool = False) -> FieldType:
    """String of a limited length. The error of a longer one shows an excerpt."""

    def check(value: str) -> Iterable[str]:
        if not value and not may_be_empty:
            yield "must not be empty"
        if len(value) > longest:
            raise Invalid(f"must have at most {longest} characters", value=value[:excerpt])

    return text(check)


def parsed(parse: Callable[[str], Any], longest: int = 1 << 30) -> FieldType:
    """String that is parsed unless it is empty."""

    def read(value: str) -> Any:
        if len(value) > longest:
            raise Invalid(f"must have at most {longest} characters", value=value[:50])
        return parse(value) if value else None

    return FieldType({"type": "string"}, str, "a string", read)


def choice(*choices: str) -> FieldType:
    """One of a few strings."""

    def check(value: str) -> str:
        if value not in choices:
            raise ValueError(f"must be {' or '.join(choices)}")
        return value

    return FieldType({"type": "string", "enum": list(choices)}, str, "a string", check)


def integer(least: int = 0, most: int | None = None) -> FieldType:
    """Whole number."""

    def check(value: int) -> int:
        if value < least:
            raise ValueError(f"must be at least {least}")
        if most is not None and value > most:
            raise ValueError(f"must be at most {most}")
        return value

    bounds = {"minimum": least} | ({} if most is None else {"maximum": most})
    return FieldType({"type": "integer"} | bounds, int, "a whole number", check)


def _yes(value: bool) -> bool:
    if not value:
        raise ValueError("must be true: omit the field instead")
    return value


def _finite(value: float) -> float:
    if not math.isfinite(value):
        raise ValueError("must be a number")
    return value


def _share(value: float) -> float:
    if not 0 < _finite(value) <= 1:
        raise ValueError("must be greater than 0 and at most 1")
    return value


def seconds(longest: float = math.inf, bounds: str = "", about: str = "") -> FieldType:
    """Seconds of a duration such as `1h30m`, or of a number of seconds. `bounds` is the error for a duration that is
    not positive or exceeds `longest`."""

    def read(value: Any) -> float:
        length = read_seconds(value)
        if bounds and not 0 < length <= longest:
            raise ValueError(bounds)
        return length

    about = about or "Duration such as 90s or 1h30m, or a number of seconds."
    return FieldType({"oneOf": [{"type": "string"}, {"type": "number"}], "description": about}, convert=read)


def read_seconds(value: Any) -> float:
    if isinstance(value, (int, float)) and not isinstance(value, bool) and math.isfinite(value):
        return float(value)
    try:
        return durations.parse(value if isinstance(value, str) else "") / durations.SECOND
    except ValueError:
        raise ValueError("must be a duration such as 90s or 1h30m") from None


def _moment(value: str) -> float:
    try:
        return float(times.parse_time(value))
    except ValueError:
        raise ValueError(f"must be {_A_TIME}") from None


def texts_of(value: Any) -> tuple[str, ...]:
    texts = [value] if isinstance(value, str) else value
    if not isinstance(texts, list) or not all(isinstance(text, str) for text in texts):
        raise ValueError("must be a string or a list of strings")
    return tuple(texts)


def objects(called: str) -> FieldType:
    """List of objects."""

    def check(value: Any) -> list[Object]:
        if not isinstance(value, list) or not all(isinstance(each, dict) for each in value):
            raise ValueError(f"must be a list of {called}")
        return value

    return FieldType({"type": "array", "items": {"type": "object"}}, convert=check)


_A_TIME = "a time such as 2030-01-01T00:00:00Z"
ANY = FieldType({})
OBJECT = FieldType({"type": "object"}, dict, "an object")
TEXT = FieldType({"type": "string"}, str, "a string")
TEXTS = FieldType({"type": "array", "items": {"type": "string"}}, convert=texts_of)
BOOLEAN = FieldType({"type": "boolean"}, bool, "true or false")
YES = FieldType({"type": "boolean", "enum": [True]}, bool, "true or false", _yes)
NUMBER = FieldType({"type": "number"}, (int, float), "a number", _finite)
SHARE = FieldType({"type": "number", "maximum": 1}, (int, float), "a number", _share)
Time = Annotated[float, FieldType({"type": "string", "format": "date-time"}, str, _A_TIME, _moment)]
Duration = Annotated[float, seconds()]
Count = Annotated[int, integer()]
