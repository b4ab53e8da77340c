"""Validation of non-negative numbers: replicas, seconds, limits."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

from kubist.model.meta.fields import FieldError, invalid


def nonnegative(value: int | None, path: str) -> list[FieldError]:
    """Rejects a negative number. None is valid."""
    if value is None or value >= 0:
        return []
    return [invalid(path, value, "must be greater than or equal to 0")]


def nonnegative_fields(obj: dict[str, Any], path: str, names: Iterable[str]) -> list[FieldError]:
    """Errors of all named fields that are negative."""
    return [error for name in names for error in nonnegative(obj.get(name), f"{path}.{name}")]
