"""Field errors of validation, with the path of the field. They become the causes of an Invalid Status.

Paths are plain strings (`spec.containers[0].image`). The caller that descends into a field builds them.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Any

import orjson

from kubist.base.jsontext.quoting import quoted

FITTING = 1 << 18
"""Limit in bytes for errors that each show a whole list, because the response would grow with the square of the
list."""


@dataclass(slots=True, frozen=True)
class FieldError:
    """One cause of an Invalid Status. `reason` is the machine-readable reason, `body` the message without the
    field."""

    reason: str
    field: str
    body: str

    def __str__(self) -> str:
        return f"{self.field}: {self.body}"

    def cause(self) -> dict[str, str]:
        cause = {"reason": self.reason, "message": self.body, "field": self.field}
        return cause if self.field else {"reason": self.reason, "message": self.body}


def _format_value(value: Any) -> str:
    """Bad value in the form of error messages: strings quoted, numbers bare, other values as compact JSON."""
    if value is None:
        return "null"
    if value is True or value is False:
        return "true" if value else "false"
    if isinstance(value, str):
        return quoted(value)
    if isinstance(value, (int, float)):
        return str(value)
    text = orjson.dumps(value).decode()
    if "<" in text or ">" in text or "&" in text:
        text = text.replace("<", "\\u003c").replace(">", "\\u003e").replace("&", "\\u0026")
    return text


def invalid(field: str, value: Any, detail: str) -> FieldError:
    message = f"Invalid value: {_format_value(value)}"
    return FieldError("FieldValueInvalid", field, f"{message}: {detail}" if detail else message)


def required(field: str, detail: str = "") -> FieldError:
    return FieldError(
        "FieldValueRequired", field, f"Required value: {detail}" if detail else "Required value"
    )


def forbidden(field: str, detail: str = "") -> FieldError:
    return FieldError("FieldValueForbidden", field, f"Forbidden: {detail}" if detail else "Forbidden")


def duplicate(field: str, value: Any) -> FieldError:
    return FieldError("FieldValueDuplicate", field, f"Duplicate value: {_format_value(value)}")


def not_found(field: str, value: Any) -> FieldError:
    return FieldError("FieldValueNotFound", field, f"Not found: {_format_value(value)}")


def not_supported(field: str, value: Any, valid: Sequence[str]) -> FieldError:
    body = f"Unsupported value: {_format_value(value)}"
    if valid:
        body += ": supported values: " + ", ".join(quoted(v) for v in valid)
    return FieldError("FieldValueNotSupported", field, body)


def too_long(field: str, limit: int) -> FieldError:
    what = (
        f"may not be more than {limit} byte{'' if limit == 1 else 's'}" if limit >= 0 else "value is too long"
    )
    return FieldError("FieldValueTooLong", field, f"Too long: {what}")


def too_many(field: str, actual: int, limit: int) -> FieldError:
    what = (
        f"must have at most {limit} item{'' if limit == 1 else 's'}" if limit >= 0 else "has too many items"
    )
    prefix = f"{actual}: " if actual >= 0 else ""
    return FieldError("FieldValueTooMany", field, f"Too many: {prefix}{what}")


def internal(field: str, detail: str) -> FieldError:
    return FieldError("InternalError", field, f"Internal error: {detail}")


def fitting(errors: Iterable[FieldError], limit: int = FITTING) -> list[FieldError]:
    """First errors up to `limit` bytes. For rules that show a whole list in every error."""
    result: list[FieldError] = []
    size = 0
    for error in errors:
        result.append(error)
        size += len(error.body)
        if size > limit:
            break
    return result


def summary(errors: Iterable[FieldError]) -> str:
    """All errors in one line, without duplicates, in order. Several errors are in brackets."""
    unique = list(dict.fromkeys(str(error) for error in errors))
    return unique[0] if len(unique) == 1 else f"[{', '.join(unique)}]"
