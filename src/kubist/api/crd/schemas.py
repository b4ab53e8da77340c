"""OpenAPI schemas of a CRD: one for each version, their nested schemas, and warnings about formats."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from kubist.api.crd import definition
from kubist.model.cel.formats import recognized
from kubist.model.meta.object import Object

Props = dict[str, Any]

_ONE = ("not", "items", "additionalProperties", "additionalItems")
_SEVERAL = ("allOf", "anyOf", "oneOf")
_NAMED = ("properties", "patternProperties", "definitions", "dependencies")


def schemas(spec: Object) -> list[Props]:
    entries = [definition.schema_of(version) for version in spec.get("versions") or ()]
    return [props for props in entries if props is not None]


def walk(props: Props) -> Iterator[Props]:
    """The schema and all nested schemas, parents first."""
    left = [props]
    while left:
        props = left.pop()
        yield props
        inner: list[Any] = [
            schema for name in _NAMED if name in props for schema in (props[name] or {}).values()
        ]
        inner += [schema for name in _SEVERAL if name in props for schema in props[name] or ()]
        for name in _ONE:
            if name in props:
                schema = props[name]
                inner += schema if isinstance(schema, list) else [schema]
        left += [schema for schema in reversed(inner) if isinstance(schema, dict)]


def node_count(spec: Object) -> int:
    return sum(1 for props in schemas(spec) for _ in walk(props))


def formats_warnings(new: Object, old: Object | None) -> list[str]:
    """Warnings about unrecognized formats. On an update, only formats that the old CRD does not use."""
    known = set(_unrecognized(old["spec"])) if old is not None else set()
    return [f'unrecognized format "{name}"' for name in _unrecognized(new["spec"]) if name not in known]


def _unrecognized(spec: Object) -> list[str]:
    return [
        inner["format"]
        for props in schemas(spec)
        for inner in walk(props)
        if inner.get("format") and not recognized(inner.get("type") or "", inner["format"])
    ]
