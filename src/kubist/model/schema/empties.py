"""Empty lists and maps that a client sent in fields that are omitted when empty.

Decoding drops them, as storing would. The reference drops them later, and a few of its validation rules see
them. `api/verbs/bodies/sent_object.py` keeps them for these rules.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from kubist.model.schema.node import Field, Schema
from kubist.model.schema.object_paths import Path

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
"""Structs that messages show as JSON, without empty values, but for those fields that they also show alone."""


def dropped(schema: Schema, value: Any, path: Path = (), *, in_messages: bool = False) -> Iterator[Path]:
    """Paths of empty values that decoding drops; `in_messages`: only those that messages show."""
    if schema.type == "struct" and isinstance(value, dict):
        shown = _AS_JSON.get(schema.name) if in_messages else None
        for name, field in schema.fields.items():
            if shown is not None and name not in shown:
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
