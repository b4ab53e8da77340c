"""`Schema` nodes from the schema of a CRD, for pruning, defaulting and server-side apply.

Struct nodes build their fields on first use, so an unused CRD costs little.
"""

from __future__ import annotations

from typing import Any, Literal

from kubist.model.schema.catalog import by_name
from kubist.model.schema.node import UNSET, Field, Schema, Type

Props = dict[str, Any]

OBJECT_META = "io.k8s.apimachinery.pkg.apis.meta.v1.ObjectMeta"
_SCALARS: dict[str, Type] = {
    "string": "string",
    "integer": "integer",
    "number": "number",
    "boolean": "boolean",
}


def structural(props: Props | None) -> Schema:
    """Schema for pruning and defaulting: without kind, apiVersion and metadata."""
    return _node(props or {}, whole=False)


def applied(props: Props | None) -> Schema:
    """Schema for apply and patches: with kind, apiVersion and metadata, at the root and in embedded resources."""
    return _node({**(props or {}), "x-kubernetes-embedded-resource": True}, whole=True)


def _resource_fields() -> dict[str, Field]:
    return {
        "apiVersion": Field("apiVersion", Schema("string")),
        "kind": Field("kind", Schema("string")),
        "metadata": Field("metadata", by_name(OBJECT_META)),
    }


def _node(props: Props, *, whole: bool) -> Schema:
    kind = props.get("type", "")
    embedded = bool(props.get("x-kubernetes-embedded-resource"))
    additional = props.get("additionalProperties")
    properties = props.get("properties")
    extra = additional if isinstance(additional, dict) else None
    takes_others = additional is not None
    type_: Type = "any"
    items: Schema | None = None
    fields: Any = None
    if kind == "array":
        type_ = "list"
        element = props.get("items")
        items = _node(element, whole=whole) if isinstance(element, dict) else None
    elif kind == "object" or properties or takes_others or embedded:
        items = _node(extra, whole=whole) if extra is not None else None
        if takes_others and not properties and not embedded:
            type_ = "map"
        else:
            type_ = "struct"

            def fields() -> dict[str, Field]:
                required = props.get("required") or ()
                made = {
                    name: Field(name, _node(inner, whole=whole), required=name in required)
                    for name, inner in (properties or {}).items()
                }
                return made | _resource_fields() if whole and embedded else made
    elif kind in _SCALARS:
        type_ = _SCALARS[kind]
    return Schema(
        type_,
        format="int-or-string" if _int_or_string(props) else "",
        fields=fields,
        items=items,
        list_type=_list_type(props),
        map_keys=tuple(props.get("x-kubernetes-list-map-keys") or ()),
        map_type=props.get("x-kubernetes-map-type") or "",
        default=props["default"] if props.get("default") is not None else UNSET,
        nullable=bool(props.get("nullable")),
        preserve_unknown=bool(props.get("x-kubernetes-preserve-unknown-fields")),
        embedded_resource=embedded,
        int_or_string=_int_or_string(props),
        additional=takes_others,
    )


def _int_or_string(props: Props) -> bool:
    return bool(props.get("x-kubernetes-int-or-string"))


def _list_type(props: Props) -> Literal["", "atomic", "set", "map"]:
    list_type = props.get("x-kubernetes-list-type")
    return list_type if list_type in ("atomic", "set", "map") else ""
