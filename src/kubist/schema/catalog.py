"""The built-in types: `schema_for` a kind, `by_name` of any. Opened on first use, structs built on theirs.

The data is `catalog.json`, made by `tools/make_catalog.py`, whose docstring explains its shape.
"""

from __future__ import annotations

from collections.abc import Iterable
from functools import cache
from pathlib import Path
from typing import Any

import orjson

from kubist.schema.node import UNSET, Field, Schema

_SCALARS: dict[str, tuple[Any, str]] = {
    "string": ("string", ""),
    "boolean": ("boolean", ""),
    "int32": ("integer", "int32"),
    "int64": ("integer", "int64"),
    "double": ("number", "double"),
    "byte": ("string", "byte"),
    "any": ("any", ""),
}

_ALIASES = {("policy", "v1beta1", "Eviction"): ("policy", "v1", "Eviction")}
"""Bodies that the server takes in a version in which it serves nothing."""

_EVERYWHERE = ("DeleteOptions", "WatchEvent")
"""Kinds that every group and version has."""


@cache
def _data() -> dict[str, Any]:
    loaded: dict[str, Any] = orjson.loads((Path(__file__).parent / "catalog.json").read_bytes())
    return loaded


def schema_for(group: str, version: str, kind: str) -> Schema:
    """The schema of a kind; `KeyError` for one that is not built in."""
    group, version, kind = _ALIASES.get((group, version, kind), (group, version, kind))
    if kind in _EVERYWHERE:
        group, version = "", "v1"
    return by_name(_data()["kinds"][f"{group}/{version}/{kind}"])


def kinds() -> Iterable[str]:
    """All kinds as `group/version/kind`."""
    names: dict[str, str] = _data()["kinds"]
    return names


@cache
def retired() -> dict[str, list[str]]:
    """Kinds by `group/version` that bodies may name although the server does not serve them."""
    loaded: dict[str, list[str]] = orjson.loads((Path(__file__).parent / "retired.json").read_bytes())
    return loaded


def is_builtin(group: str, version: str, kind: str) -> bool:
    return f"{group}/{version}/{kind}" in _data()["kinds"]


def names() -> list[str]:
    """All types by their OpenAPI name."""
    return [*_data()["leaves"], *_data()["types"]]


@cache
def by_name(name: str) -> Schema:
    """A type by its OpenAPI name, such as `io.k8s.api.core.v1.Pod`."""
    data = _data()
    if leaf := data["leaves"].get(name):
        return Schema(leaf[0], name=name, format=leaf[1], extras=leaf[2])
    record = data["types"].get(name) or data["embedded"][name]
    message, _, embeds, extras = record
    return Schema(
        "struct",
        name=name,
        fields=lambda: _fields(record[1]),
        map_type=extras.get("x-kubernetes-map-type", ""),
        proto=message,
        embeds=tuple(Field(go, by_name(inner), number=number) for go, number, inner in embeds),
        extras=extras,
    )


def _fields(records: list[list[Any]]) -> dict[str, Field]:
    return {record[0]: _field(*record) for record in records}


def _field(name: str, flags: str, number: int, type: str, attributes: dict[str, Any] | None = None) -> Field:
    attributes = attributes or {}
    return Field(
        name,
        _node(type, attributes),
        pointer="p" in flags,
        omit_empty="o" in flags,
        omit_zero="z" in flags,
        required="r" in flags,
        number=number,
        embedded=attributes.get("via", ""),
    )


def _node(type: str, attributes: dict[str, Any]) -> Schema:
    changes: dict[str, Any] = {}
    if "default" in attributes:
        changes["default"] = attributes["default"]
    if "enum" in attributes:
        changes["enum"] = tuple(attributes["enum"])
    if "go" in attributes:
        changes["go_type"] = attributes["go"]
    if "list" in attributes:
        changes["list_type"] = attributes["list"]
    if "map" in attributes:
        changes["map_type"] = attributes["map"]
    if "merge" in attributes:
        changes["merge_key"] = attributes["merge"]
    if "strategy" in attributes:
        changes["patch_strategies"] = tuple(attributes["strategy"].split(","))
    if type[0] == "#":
        named = by_name(type[1:])
        return named.referred(**changes) if changes else named
    if type[0] in "[{":
        return Schema(
            "list" if type[0] == "[" else "map",
            items=_item(type, attributes),
            map_keys=tuple(attributes.get("keys", ())),
            proto=attributes.get("message", ""),
            **changes,
        )
    if not changes:
        return _scalar(type)
    word, format = _SCALARS[type]
    return Schema(word, format=format, **changes)


def _item(type: str, attributes: dict[str, Any]) -> Schema:
    inner = dict(attributes.get("items", {}))
    _, _, go = attributes.get("go", "").partition("]")
    if go:
        inner["go"] = go
    return _node(type[1:], inner)


@cache
def _scalar(type: str) -> Schema:
    word, format = _SCALARS[type]
    return Schema(word, format=format, default=UNSET)
