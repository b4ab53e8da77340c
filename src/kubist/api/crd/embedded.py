"""Embedded resources (`x-kubernetes-embedded-resource`): objects with their own kind, apiVersion and metadata
inside a custom resource."""

from __future__ import annotations

from typing import Any

from kubist.api.crd.metadata import typed_metadata
from kubist.base.jsontext.errors import DecodeError
from kubist.model.meta import fields, names, objectmeta
from kubist.model.meta.fields import FieldError
from kubist.model.schema.node import Schema

Errors = list[FieldError]


def coerce(schema: Schema, value: Any, *, lenient: bool = False, root: bool = False) -> list[str]:
    """Checks the types of kind, apiVersion and metadata of embedded resources, and drops unknown metadata
    fields. Returns the dropped paths, sorted. `lenient` drops mistyped fields instead of raising DecodeError.
    `root`: `value` itself is a resource."""
    unknown: list[str] = []
    _coerce(schema, value, "", lenient, unknown, root)
    return sorted(unknown)


def _coerce(schema: Schema, value: Any, path: str, lenient: bool, unknown: list[str], resource: bool) -> None:
    if isinstance(value, dict):
        if resource:
            _coerce_resource(value, path, lenient, unknown)
        for key, inner in value.items():
            if not isinstance(inner, (dict, list)):
                continue
            node = _child(schema, key)
            if node is not None:
                at = f"{path}.{key}" if path else key
                _coerce(node, inner, at, lenient, unknown, node.embedded_resource)
    elif isinstance(value, list) and schema.items is not None:
        items = schema.items
        for index, item in enumerate(value):
            if isinstance(item, (dict, list)):
                _coerce(items, item, f"{path}[{index}]", lenient, unknown, items.embedded_resource)


def _child(schema: Schema, key: str) -> Schema | None:
    field = schema.fields.get(key)
    if field is not None:
        return field.schema
    return schema.items if schema.additional else None


def _coerce_resource(value: dict[str, Any], path: str, lenient: bool, unknown: list[str]) -> None:
    for name in ("apiVersion", "kind"):
        if name in value and not isinstance(value[name], str):
            if not lenient:
                raise DecodeError(str(fields.invalid(_at(path, name), value[name], "must be a string")))
            del value[name]
    if "metadata" in value:
        try:
            value["metadata"], dropped = typed_metadata(value["metadata"], lenient=lenient)
        except DecodeError as error:
            if not lenient:
                where = _at(path, "metadata")
                raise DecodeError(str(fields.invalid(where, value["metadata"], str(error)))) from None
            return
        unknown += [_at(path, name) for name in dropped]


def _at(path: str, name: str) -> str:
    return f"{path}.{name}" if path else name


def validate(schema: Schema, value: Any, path: str = "", *, root: bool = False) -> Errors:
    """Validates kind, apiVersion and metadata of the embedded resources in a value."""
    errors: Errors = []
    _validate(schema, value, path, errors, root)
    return errors


def _validate(schema: Schema, value: Any, path: str, errors: Errors, resource: bool) -> None:
    if isinstance(value, dict):
        if resource:
            errors += _validate_resource(value, path)
        for key, inner in value.items():
            if not isinstance(inner, (dict, list)):
                continue
            field = schema.fields.get(key)
            if field is not None:
                _validate(field.schema, inner, _at(path, key), errors, field.schema.embedded_resource)
            elif schema.additional and schema.items is not None:
                _validate(schema.items, inner, f"{path}[{key}]", errors, schema.items.embedded_resource)
    elif isinstance(value, list) and schema.items is not None:
        for index, item in enumerate(value):
            if isinstance(item, (dict, list)):
                where = f"{path}[{index}]"
                _validate(schema.items, item, where, errors, schema.items.embedded_resource)


def _validate_resource(value: dict[str, Any], path: str) -> Errors:
    errors = [fields.required(_at(path, name)) for name in ("apiVersion", "kind") if name not in value]
    for key, item in value.items():
        at = _at(path, key)
        if key == "apiVersion":
            if not item:
                errors.append(fields.invalid(at, item, "must not be empty"))
            elif item.count("/") > 1:
                errors.append(fields.invalid(at, item, f"unexpected GroupVersion string: {item}"))
        elif key == "kind":
            if not item:
                errors.append(fields.invalid(at, item, "must not be empty"))
            elif wrong := names.dns_1035_label(item.lower()):
                why = "may have mixed case, but should otherwise match: " + ",".join(wrong)
                errors.append(fields.invalid(at, item, why))
        elif key == "metadata":
            meta = {**item, "name": item.get("name") or "fakename"}
            errors += objectmeta.validate_create(
                meta,
                namespaced=bool(meta.get("namespace")),
                validate_name=names.path_segment,
                path=at,
                qualified_finalizers=False,
            )
    return errors
