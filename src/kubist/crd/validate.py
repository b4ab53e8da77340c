"""tmp"""

from __future__ import annotations

from typing import Any


def validate_definition(new: Any, old: Any) -> list[Any]:
    return []


def validate_names(names: Any, path: str) -> list[Any]:
    return []


def formats_warnings(new: Any, old: Any) -> list[str]:
    return []
