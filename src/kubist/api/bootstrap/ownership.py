"""managedFields of bootstrap objects, computed without schemas because these objects have few shapes."""

from __future__ import annotations

from typing import Any

from kubist.model.meta.object import Object

_ALWAYS_THERE = frozenset(("spec", "priorityLevelConfiguration"))
"""Structs that are always present. Managers own only their fields, not the structs."""
_ATOMIC = frozenset(("roleRef",))
_NOT_OWNED = frozenset(("apiVersion", "kind", "metadata", "status"))
_METADATA = ("annotations", "labels")


def owned(obj: Object, now: str, manager: str = "kube-apiserver", *, skip: tuple[str, ...] = ()) -> Object:
    """`obj` with `manager` as owner of all its fields except status and `skip` (dotted paths)."""
    fields = {
        f"f:{name}": _fields(name, value, name, skip)
        for name, value in obj.items()
        if name not in _NOT_OWNED and value is not None and name not in skip
    }
    metadata = obj["metadata"]
    said = {f"f:{n}": _fields(n, metadata[n], f"metadata.{n}", skip) for n in _METADATA if n in metadata}
    if said:
        fields["f:metadata"] = said
    entry = {
        "manager": manager,
        "operation": "Update",
        "apiVersion": obj["apiVersion"],
        "time": now,
        "fieldsType": "FieldsV1",
        "fieldsV1": dict(sorted(fields.items())),
    }
    metadata["managedFields"] = [entry]
    return obj


def _fields(name: str, value: Any, path: str, skip: tuple[str, ...]) -> Object:
    if name in _ATOMIC:
        return {}
    if isinstance(value, dict):
        inside = {
            f"f:{key}": _fields(key, item, f"{path}.{key}", skip)
            for key, item in sorted(value.items())
            if f"{path}.{key}" not in skip
        }
        return inside if name in _ALWAYS_THERE else {".": {}, **inside}
    if path == "spec.ports":  # Service ports are owned item by item, other lists as a whole.
        found: Object = {".": {}}
        for item in value:
            key = f'k:{{"port":{item["port"]},"protocol":"{item["protocol"]}"}}'
            found[key] = {".": {}, **{f"f:{field}": {} for field in sorted(item)}}
        return found
    return {}
