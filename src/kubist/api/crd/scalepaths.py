"""Values of the scale subresource of a custom resource: replicas and selector at the paths that the CRD names."""

from __future__ import annotations

from typing import Any

from kubist.api.crd.version import Version
from kubist.api.resources.strategy import Errors
from kubist.model.meta import fields, status
from kubist.model.meta.object import Object
from kubist.model.patch.values import go_type, shown

MAX_REPLICAS = (1 << 31) - 1


def scale_spec_errors(version: Version, obj: Object) -> Errors:
    return _replica_errors(obj, version.scale["specReplicasPath"]) if version.scale is not None else []


def scale_status_errors(version: Version, obj: Object) -> Errors:
    if version.scale is None:
        return []
    errors = _replica_errors(obj, version.scale["statusReplicasPath"])
    selector = version.scale.get("labelSelectorPath")
    if selector:
        try:
            _found(obj, selector, str)
        except _Unfit as error:
            errors.append(fields.invalid(selector, "", str(error)))
    return errors


def _replica_errors(obj: Object, path: str) -> Errors:
    try:
        count = _found(obj, path, int)
    except _Unfit as error:
        return [fields.invalid(path, 0, str(error))]
    if count is None:
        return []
    if count < 0:
        return [fields.invalid(path, count, "should be a non-negative integer")]
    if count > MAX_REPLICAS:
        return [fields.invalid(path, count, f"should be less than or equal to {MAX_REPLICAS}")]
    return []


def scale_values(scale: Object, obj: Object) -> tuple[int | None, int, str]:
    """spec.replicas (None if absent), status.replicas (0 if absent) and the label selector ("" if absent).
    Raises a 500 error if a value has the wrong type."""
    try:
        wanted = _found(obj, scale["specReplicasPath"], int)
        held = _found(obj, scale["statusReplicasPath"], int)
        path = scale.get("labelSelectorPath")
        selector = _found(obj, path, str) if path else None
    except _Unfit as error:
        raise status.plain_error(str(error)) from None
    return None if wanted is None else _int32(wanted), _int32(held or 0), selector or ""


def _int32(value: int) -> int:
    return (value + (1 << 31)) % (1 << 32) - (1 << 31)


class _Unfit(Exception):
    """The value at a path has the wrong type."""


_TYPES = {dict: "map[string]interface{}", int: "int64", str: "string"}


def _found(obj: Object, path: str, kind: type) -> Any:
    """The value at a path, or None if the path does not exist. Raises `_Unfit` unless its type is exactly `kind`."""
    parts = path.removeprefix(".").split(".")
    found: Any = obj
    for depth, part in enumerate(parts, 1):
        if found is None:
            return None
        _expect(found, dict, parts[:depth])
        if part not in found:
            return None
        found = found[part]
    _expect(found, kind, parts)
    return found


def _expect(value: Any, kind: type, parts: list[str]) -> None:
    if type(value) is not kind:
        what = "<nil>" if value is None else go_type(value)
        where = "." + ".".join(parts)
        raise _Unfit(f"{where} accessor error: {shown(value)} is of the type {what}, expected {_TYPES[kind]}")
