"""Values that a client sent and that decoding drops or changes; their paths, and copies of an object with other values
at some paths. `api/verbs/sent_object.py` keeps them for the rules that see them.

Decoding drops empty lists and maps of fields that are omitted when empty, as storing would. The reference drops them
later, and a few of its validation rules see them.

It also changes atomic lists: a quantity gets another form, or an empty value is dropped. The reference compares such
lists as the client sent them, so the client that sends one becomes its owner.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from copy import copy
from typing import Any

from kubist.base.jsontext.json import Literal
from kubist.model.meta.object import Object
from kubist.model.meta.quantity import canonical_quantity
from kubist.model.schema.node import Field, Schema

Path = tuple[str | int, ...]
"""Field names, map keys and list indexes from the object to the value."""
ABSENT: Any = object()
"""Value of `replaced` for a field that the copy does not have."""


def parent(value: Any, path: Path) -> Any:
    """Container of the last step of a path. None if the path does not exist."""
    for step in path[:-1]:
        if isinstance(value, dict):
            value = value.get(step)
        elif isinstance(value, list) and isinstance(step, int) and step < len(value):
            value = value[step]
        else:
            return None
    return value


def replaced(obj: Object, changes: Mapping[Path, Any]) -> Object:
    """Copy of an object with other values at these paths, whose parents must exist. The copy shares every container
    in which nothing changes. Each container is copied once at most, so the work is linear in the object."""
    if not changes:
        return obj
    root = dict(obj)
    copies = {id(root)}
    for path, value in changes.items():
        inner: Any = root
        for step in path[:-1]:
            child = inner[step]
            if id(child) not in copies:
                child = inner[step] = copy(child)
                copies.add(id(child))
            inner = child
        if value is ABSENT:
            del inner[path[-1]]
        else:
            inner[path[-1]] = value
    return root


_POD_SPEC = "io.k8s.api.core.v1.PodSpec"
_TEMPLATE = ("metadata.ownerReferences", "metadata.finalizers", "metadata.managedFields")
MEANT: dict[str, tuple[str, ...]] = {
    _POD_SPEC: ("resources.claims",),
    "io.k8s.api.core.v1.EphemeralContainer": (
        *("ports", "resizePolicy", "restartPolicyRules"),
        *("resources.claims", "resources.limits", "resources.requests"),
    ),
    "io.k8s.api.core.v1.NodeStatus": ("allocatable",),
    "io.k8s.api.core.v1.PersistentVolumeClaimTemplate": _TEMPLATE,
    "io.k8s.api.autoscaling.v2.HPAScalingRules": ("policies",),
    **{
        f"io.k8s.api.resource.{version}.{kind}": names
        for version in ("v1", "v1beta1", "v1beta2")
        for kind, names in (
            ("ResourceClaimTemplateSpec", _TEMPLATE),
            ("ResourceSliceSpec", ("devices", "sharedCounters")),
        )
    },
}
"""Fields by type for which a validation rule checks whether the field was sent, not whether it has content."""
MEANT_OF_NEW = {**MEANT, _POD_SPEC: ("overhead", "resources.claims")}


_META = "io.k8s.apimachinery.pkg.apis.meta.v1."
_AS_JSON = {f"{_META}LabelSelector": (), f"{_META}ObjectMeta": ("labels",)}
"""Structs that messages show as JSON without empty values → fields that messages also show alone."""


def dropped(schema: Schema, value: Any, path: Path = (), *, in_messages: bool = False) -> Iterator[Path]:
    """Paths of empty values that decoding drops; `in_messages`: only those that messages show."""
    if schema.type == "struct" and isinstance(value, dict):
        names = _AS_JSON.get(schema.name) if in_messages else None
        for name, field in schema.fields.items():
            if names is not None and name not in names:
                continue
            item = value.get(name)
            if item:
                yield from dropped(field.schema, item, (*path, name), in_messages=in_messages)
            elif item is not None and field.omit_empty and may_be_empty(field):
                yield (*path, name)
    else:
        for step, items, item in _items(schema, value):
            yield from dropped(items, item, (*path, step), in_messages=in_messages)


def meant(schema: Schema, value: Any, fields: dict[str, tuple[str, ...]], path: Path = ()) -> Iterator[Path]:
    """Paths of dropped empty values that a validation rule checks."""
    if schema.type == "struct" and isinstance(value, dict):
        for names in fields.get(schema.name, ()):
            inner: Any = value
            for name in names.split("."):
                inner = inner.get(name) if isinstance(inner, dict) else None
            if inner == [] or inner == {}:
                yield (*path, *names.split("."))
        for name, item in value.items():
            if item and name in schema.fields:
                yield from meant(schema.fields[name].schema, item, fields, (*path, name))
    else:
        for step, items, item in _items(schema, value):
            yield from meant(items, item, fields, (*path, step))


def _items(schema: Schema, value: Any) -> Iterator[tuple[str | int, Schema, Any]]:
    items = schema.items
    if items is not None and items.type == "struct":
        if isinstance(value, dict):
            yield from ((name, items, item) for name, item in value.items())
        elif isinstance(value, list):
            yield from ((index, items, item) for index, item in enumerate(value))


def may_be_empty(field: Field) -> bool:
    return not field.pointer and (field.schema.type in ("list", "map") or field.schema.format == "byte")


def rewritten(schema: Schema, value: Any, path: Path = ()) -> Iterator[Path]:
    """Paths of the changed atomic lists in `value`, the value that was sent."""
    if schema.type == "struct" and isinstance(value, dict):
        for name, item in value.items():
            if item and name in schema.fields:
                yield from rewritten(schema.fields[name].schema, item, (*path, name))
    elif schema.items is not None and isinstance(value, dict):
        for name, item in value.items():
            yield from rewritten(schema.items, item, (*path, name))
    elif schema.items is not None and isinstance(value, list):
        if schema.list_type not in ("map", "set"):
            if any(_changes(schema.items, item) for item in value):
                yield path
        else:
            for index, item in enumerate(value):
                yield from rewritten(schema.items, item, (*path, index))


def _changes(schema: Schema, value: Any) -> bool:
    """Whether decoding changes a value."""
    if schema.format == "quantity":
        text = value.text if isinstance(value, Literal) else str(value)
        return value is None or canonical_quantity(text.strip()) != text
    if schema.type == "struct" and isinstance(value, dict):
        return any(_changes_field(field, value.get(name)) for name, field in schema.fields.items())
    if schema.items is not None and isinstance(value, (dict, list)):
        items = schema.items
        return any(_changes(items, item) for item in (value.values() if isinstance(value, dict) else value))
    return False


def _changes_field(field: Field, value: Any) -> bool:
    """Whether decoding changes the value of a field, or None if it is absent."""
    if value:
        return _changes(field.schema, value)
    if value is None:
        return field.schema.format == "quantity" and not field.pointer
    return field.omit_empty and may_be_empty(field)


def marked(schema: Schema, sent: Any, obj: Object) -> dict[Path, list[Any]]:
    """Changed lists of `obj` by path, each with one more item, so that it differs from every stored list."""
    by_path: dict[Path, list[Any]] = {}
    for path in rewritten(schema, sent):
        value = _at(parent(obj, path), path[-1])
        if isinstance(value, list):
            by_path[path] = [*value, None]
    return by_path


def _at(inner: Any, step: str | int) -> Any:
    if isinstance(inner, dict):
        return inner.get(step)
    if isinstance(inner, list) and isinstance(step, int) and step < len(inner):
        return inner[step]
    return None
