"""JSON merge patch (RFC 7386): maps merge, null deletes, other values replace. Works on plain JSON."""

from __future__ import annotations

from typing import Any

from kubist.base.jsontext.json import json_type
from kubist.model.patch.errors import MalformedPatch
from kubist.model.patch.values import equal


def check(document: Any, *, checked: bool = True) -> None:
    """Rejects documents that are not merge patches. `checked`: field validation is not Ignore."""
    if isinstance(document, dict):
        return
    if document is None:
        raise MalformedPatch("Invalid JSON Patch")
    if checked:
        what = f"cannot unmarshal {json_type(document)} into Go value of type map[string]interface {{}}"
        raise MalformedPatch(f"error decoding patch: json: {what}")
    if not isinstance(document, list):
        raise MalformedPatch("Invalid JSON Patch")


def apply(document: Any, patch: Any) -> Any:
    """`document` merged with `patch`. Arguments are not modified. The result shares untouched parts and sorts
    the keys of touched maps."""
    if not isinstance(patch, dict) or not isinstance(document, dict):
        return _without_nulls(patch)
    merged = document.copy()
    for key, value in patch.items():
        if value is None:
            merged.pop(key, None)
        elif isinstance(value, dict) and isinstance(current := merged.get(key), dict):
            merged[key] = apply(current, value)
        else:
            merged[key] = _without_nulls(value)
    return dict(sorted(merged.items()))


def _without_nulls(value: Any) -> Any:
    if isinstance(value, dict):
        return {key: _without_nulls(item) for key, item in sorted(value.items()) if item is not None}
    if isinstance(value, list):
        return [_without_nulls(item) for item in value]
    return value


def diff(old: dict[str, Any], new: dict[str, Any]) -> dict[str, Any]:
    """Smallest merge patch from `old` to `new`. Neither may contain nulls."""
    patch: dict[str, Any] = {key: None for key in old if key not in new}
    for key, value in new.items():
        current = old.get(key)
        if isinstance(value, dict) and isinstance(current, dict):
            if inner := diff(current, value):
                patch[key] = inner
        elif key not in old or not equal(current, value):
            patch[key] = value
    return patch
