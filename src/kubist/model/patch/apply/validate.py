"""Checks that a configuration fits its type well enough to be applied. The kind's validation runs later."""

from __future__ import annotations

from typing import Any

from kubist.model.patch.apply import paths
from kubist.model.patch.apply.typed import BadValue, ListType, MapType, Type
from kubist.model.patch.values import format_value, go_syntax, go_type


def problems(kind: Type, value: Any, *, duplicates: bool = False) -> str:
    """Error messages with their paths. Empty if the value is valid. `duplicates`: duplicate list items are allowed."""
    notes: list[tuple[str, str]] = []
    _check(kind, value, "", notes)
    lines = [f"{path}: {text}" for path, text in notes if not (duplicates and text.startswith(_DUPLICATE))]
    return lines[0] if len(lines) == 1 else "\n  ".join(["errors:", *lines]) if lines else ""


_DUPLICATE = "duplicate entries for key "


def _check(kind: Type, value: Any, path: str, notes: list[tuple[str, str]]) -> None:
    if value is None:
        return
    if isinstance(value, dict) and kind.map is not None:
        _check_map(kind.map, value, path, notes)
    elif isinstance(value, list) and kind.list is not None:
        _check_list(kind.list, value, path, notes)
    elif kind.map is not None and (not kind.scalar or isinstance(value, (dict, list))):
        notes.append((path, f"expected map, got &{{{format_value(value)}}}"))
    elif kind.scalar:
        _check_scalar(kind.scalar, value, path, notes)
    else:
        notes.append((path, f"expected list, got &{{{format_value(value)}}}"))


_SCALARS: dict[str, tuple[type, ...]] = {
    "string": (str,),
    "numeric": (int, float),
    "boolean": (bool,),
    "untyped": (str, int, float, bool),
}


def _check_scalar(scalar: str, value: Any, path: str, notes: list[tuple[str, str]]) -> None:
    if isinstance(value, _SCALARS[scalar]) and not (scalar == "numeric" and isinstance(value, bool)):
        return
    match scalar:
        case "string":
            notes.append((path, f"expected string, got &value.valueUnstructured{{Value:{go_syntax(value)}}}"))
        case "numeric":
            notes.append((path, f"expected numeric (int or float), got {go_type(value)}"))
        case "boolean":
            notes.append((path, f"expected boolean, got &{{{format_value(value)}}}"))
        case _:
            notes.append((path, f"expected any scalar, got &{{{format_value(value)}}}"))


_TEXTS = ("string", "untyped")
"""Scalar types that accept every string."""


def _check_map(split: MapType, value: dict[str, Any], path: str, notes: list[tuple[str, str]]) -> None:
    fields, other = split.fields, split.element
    for key, inner in value.items():
        field = fields.get(key)
        kind = field[1] if field is not None else other
        if kind is None:
            notes.append((f"{path}.{key}", "field not declared in schema"))
            return
        if not (type(inner) is str and kind.scalar in _TEXTS):
            _check(kind, inner, f"{path}.{key}", notes)


def _check_list(items: ListType, values: list[Any], path: str, notes: list[tuple[str, str]]) -> None:
    seen: set[str] = set()
    for index, item in enumerate(values):
        element = f"i:{index}"
        if not items.atomic:
            try:
                element = items.name(item)
            except BadValue as bad:
                notes.append((path, f"element {index}: {bad}"))
                return
            if element in seen:
                notes.append((path, _DUPLICATE + paths.format_path([element])))
            seen.add(element)
        if not (type(item) is str and items.element.scalar in _TEXTS):
            _check(items.element, item, f"{path}{paths.format_path([element])}", notes)
