"""One version of a custom resource: decoding, defaulting, pruning and validation of its objects.

Built from a CRD when it is served; compiled on first use; immutable.
"""

from __future__ import annotations

import functools
from typing import Any

import orjson

from kubist.api.crd import definition, embedded, node
from kubist.api.crd.metadata import typed_metadata
from kubist.api.crd.rules.objects import Rules, compile_rules
from kubist.api.crd.validation.schema import Validator, compile_schema
from kubist.model.meta import fields, status
from kubist.model.meta.fields import FieldError
from kubist.model.meta.numerals import odd_number, rounded
from kubist.model.meta.object import Object
from kubist.model.schema.node import Schema
from kubist.model.schema.structural import Fill, compile_defaults, drop_nulls, prune


class Version:
    """A version of a CRD, served or not."""

    def __init__(self, crd: Object, spec: Object) -> None:
        self.group: str = crd["spec"]["group"]
        self.name: str = spec["name"]
        self.kind: str = crd["status"]["acceptedNames"]["kind"]
        self.api_version = f"{self.group}/{self.name}"
        self.served = bool(spec.get("served"))
        self.storage = bool(spec.get("storage"))
        self.spec = spec
        self.props: Object | None = definition.schema_of(spec)
        self.preserves = bool(crd["spec"].get("preserveUnknownFields"))
        """`spec.preserveUnknownFields: true`, which only CRDs from v1beta1 have: no field is pruned."""
        subresources = definition.subresources_of(spec)
        self.status = "status" in subresources
        self.scale: Object | None = subresources.get("scale")

    @functools.cached_property
    def structural(self) -> Schema:
        return node.structural(self.props)

    @functools.cached_property
    def applied(self) -> Schema:
        if self.preserves:
            return node.applied({**(self.props or {}), "x-kubernetes-preserve-unknown-fields": True})
        return node.applied(self.props)

    @functools.cached_property
    def validator(self) -> Validator | None:
        return compile_schema(self.props) if self.props is not None else None

    @functools.cached_property
    def status_validator(self) -> Validator | None:
        status = ((self.props or {}).get("properties") or {}).get("status")
        return compile_schema(status) if status is not None else None

    @functools.cached_property
    def rules(self) -> Rules | None:
        return compile_rules(self.props, root=True) if self.props is not None else None

    @functools.cached_property
    def _keywords(self) -> frozenset[str]:
        """Keywords that occur anywhere in the schema. If a keyword is absent, its walk over the object is skipped."""
        keywords: set[str] = set()
        _collect_keywords(self.props or {}, keywords)
        return frozenset(keywords)

    @functools.cached_property
    def _fill(self) -> Fill | None:
        return compile_defaults(self.structural) if "default" in self._keywords else None

    @property
    def embeds(self) -> bool:
        return "x-kubernetes-embedded-resource" in self._keywords

    def coerce(self, obj: Object, *, lenient: bool = False) -> list[str]:
        """Makes an object fit the schema, in place: decodes metadata, drops unknown fields and forbidden
        nulls. Returns the dropped paths. `lenient` also drops mistyped metadata fields instead of raising
        DecodeError."""
        unknown: list[str] = []
        if "metadata" in obj:
            obj["metadata"], complaints = typed_metadata(obj["metadata"], lenient=lenient)
            unknown += complaints
        if not self.preserves:
            unknown += prune(self.structural, obj)
            if b"null" in orjson.dumps(obj):
                drop_nulls(self.structural, obj)
        if self.embeds:
            unknown += embedded.coerce(self.structural, obj, lenient=lenient)
        return unknown

    def decode(self, value: Object) -> tuple[Object, list[str]]:
        """Decodes an object from a client. Returns the pruned object, and a complaint for each unknown field."""
        kind = value.get("kind", self.kind)
        if kind != self.kind:
            metadata = value.get("metadata")
            name = metadata.get("name", "") if isinstance(metadata, dict) else ""
            error = fields.invalid("kind", kind, f"must be {self.kind}")
            raise status.invalid(self.group, kind, name if isinstance(name, str) else "", [error])
        value = dict(_exact(value))  # a patch without changes passes the live object itself
        unknown = self.coerce(value)
        return self.with_type_first(value, value.get("metadata")), [
            f'unknown field "{path}"' for path in unknown
        ]

    def adopt(self, merged: Object) -> Object:
        """Completes an object that server-side apply merged. Only unknown metadata fields are dropped."""
        merged = _exact(merged)
        if self.embeds:
            embedded.coerce(self.structural, merged)
        return self.with_type_first(merged, typed_metadata(merged.get("metadata"))[0])

    def with_type_first(self, value: Object, metadata: Any) -> Object:
        """The object with kind, apiVersion and metadata first, which is the field order of stored objects."""
        frame = {"kind": self.kind, "apiVersion": self.api_version, "metadata": metadata or {}}
        return frame | {key: inner for key, inner in value.items() if key not in frame}

    def default(self, obj: Object) -> None:
        if self._fill is not None:
            self._fill(obj)

    def validate_lists(self, new: Object, old: Object | None) -> list[FieldError]:
        """Errors of lists that are sets or maps, unless the old object has such errors too."""
        if "x-kubernetes-list-type" not in self._keywords:
            return []
        errors = _validate_lists(self.structural, new)
        return [] if errors and old is not None and _validate_lists(self.structural, old) else errors

    def validate_embedded(self, obj: Object) -> list[FieldError]:
        return embedded.validate(self.structural, obj) if self.embeds else []


def _collect_keywords(props: Object, keywords: set[str]) -> None:
    """Collects the keywords of a schema and of its nested value schemas."""
    keywords.update(props)
    for inner in (props.get("properties") or {}).values():
        _collect_keywords(inner, keywords)
    for name in ("items", "additionalProperties"):
        if isinstance(props.get(name), dict):
            _collect_keywords(props[name], keywords)


def _exact(value: Object) -> Object:
    """The value with numbers rounded as typed decoding rounds them."""
    return rounded(value) if odd_number(orjson.dumps(value, default=str)) else value


Errors = list[FieldError]
_SCALARS = ("string", "integer", "number", "boolean")


def _validate_lists(schema: Schema, value: Any, path: str = "") -> Errors:
    """Duplicates: one error for each duplicated value, at the index of its second occurrence."""
    errors: Errors = []
    _collect_duplicates(schema, value, path, errors)
    return errors


def _collect_duplicates(schema: Schema, value: Any, path: str, errors: Errors) -> None:
    if isinstance(value, dict):
        for key, inner in value.items():
            if not isinstance(inner, (dict, list)):
                continue
            field = schema.fields.get(key)
            if field is not None:
                _collect_duplicates(field.schema, inner, f"{path}.{key}" if path else key, errors)
            elif schema.additional and schema.items is not None:
                _collect_duplicates(schema.items, inner, f"{path}[{key}]", errors)
    elif isinstance(value, list):
        if schema.list_type == "set":
            _unique(value, value, path, errors)
        elif schema.list_type == "map":
            _unique_keys(schema.map_keys, value, path, errors)
        if schema.items is not None and schema.items.type not in _SCALARS:
            for index, item in enumerate(value):
                if isinstance(item, (dict, list)):
                    _collect_duplicates(schema.items, item, f"{path}[{index}]", errors)


def _unique(values: list[Any], items: list[Any], path: str, errors: Errors) -> None:
    if set(map(type, values)) == {str} and len(set(values)) == len(values):
        return
    seen: dict[bytes, int] = {}
    for index, value in enumerate(values):
        key = orjson.dumps(value, option=orjson.OPT_SORT_KEYS)
        times = seen.get(key, 0)
        seen[key] = times + 1
        if times == 1:
            errors.append(fields.duplicate(f"{path}[{index}]", items[index]))


def _unique_keys(keys: tuple[str, ...], value: list[Any], path: str, errors: Errors) -> None:
    for index, item in enumerate(value):
        if item is not None and not isinstance(item, dict):
            why = "must be an object for an array of list-type map"
            errors.append(fields.invalid(f"{path}[{index}]", item, why))
            return
    if len(value) > 1:
        if len(keys) == 1:
            only = [item.get(keys[0]) if item else None for item in value]
            if set(map(type, only)) == {str} and len(set(only)) == len(only):
                return
        named = [{key: item[key] for key in keys if key in item} if item else {} for item in value]
        _unique(named, named, path, errors)
