"""Validates that a schema is structural: every value has a type, and junctors (allOf, anyOf, oneOf, not) add
conditions but no fields.

The errors are sorted, as in kube-apiserver.
"""

from __future__ import annotations

from typing import Any

from kubist.model.cel import regex
from kubist.model.meta import fields
from kubist.model.meta.fields import FieldError

Props = dict[str, Any]
Errors = list[FieldError]

INT_OR_STRING = [{"type": "integer"}, {"type": "string"}]
UNSUPPORTED = {
    "id": "id",
    "$schema": "schema",
    "$ref": "$ref",
    "patternProperties": "patternProperties",
    "dependencies": "dependencies",
    "additionalItems": "additionalItems",
    "definitions": "definitions",
}
"""Keywords that a structural schema cannot have, with their names in messages."""
_FORBIDDEN_IN_JUNCTORS = (
    ("type", "must be empty to be structural"),
    ("additionalProperties", "must be undefined to be structural"),
    ("default", "must be undefined to be structural"),
    ("title", "must be empty to be structural"),
    ("description", "must be empty to be structural"),
    ("nullable", "must be false to be structural"),
    ("x-kubernetes-preserve-unknown-fields", "must be false to be structural"),
    ("x-kubernetes-embedded-resource", "must be false to be structural"),
    ("x-kubernetes-int-or-string", "must be false to be structural"),
    ("x-kubernetes-list-map-keys", "must be empty to be structural"),
    ("x-kubernetes-list-type", "must be undefined to be structural"),
    ("x-kubernetes-map-type", "must be undefined to be structural"),
    ("x-kubernetes-validations", "must be empty to be structural"),
)
_UNDEFINED = ("additionalProperties", "default", "x-kubernetes-list-type", "x-kubernetes-map-type")
"""Keywords of `_FORBIDDEN_IN_JUNCTORS` that are rejected even with an empty value."""
_LEVELS = {
    "root": "must not be empty at the root",
    "item": "must not be empty for specified array items",
    "field": "must not be empty for specified object fields",
}


def unsupported(props: Props) -> str:
    """Message about the first keyword that a structural schema cannot represent; empty if there is none."""
    for keyword, name in UNSUPPORTED.items():
        if props.get(keyword):
            return f"OpenAPIV3Schema '{name}' is not supported"
    if props.get("x-kubernetes-preserve-unknown-fields") is False:
        return "'x-kubernetes-preserve-unknown-fields' must be true or undefined"
    items = props.get("items")
    if isinstance(items, list):
        return "OpenAPIV3Schema 'items' must be a schema, but is an array"
    inner = [
        *(props.get("properties") or {}).values(),
        items,
        props.get("additionalProperties"),
        props.get("not"),
    ]
    for name in ("allOf", "anyOf", "oneOf"):
        inner += props.get(name) or ()
    for child in inner:
        if isinstance(child, dict) and (problem := unsupported(child)):
            return problem
    return ""


def validate_structural(props: Props, path: str) -> Errors:
    """Errors of a schema that is not structural."""
    errors = _invariants(props, "root", path) + _completeness(props, props, path, path)
    return sorted(errors, key=str)


def _invariants(props: Props, level: str, path: str) -> Errors:
    errors: Errors = []
    kind = props.get("type") or ""
    properties = props.get("properties") or {}
    items, additional = props.get("items"), props.get("additionalProperties")
    embedded = bool(props.get("x-kubernetes-embedded-resource"))
    preserves = bool(props.get("x-kubernetes-preserve-unknown-fields"))
    int_or_string = bool(props.get("x-kubernetes-int-or-string"))
    if kind == "array" and items is None:
        errors.append(fields.required(f"{path}.items", "must be specified"))
    if isinstance(items, dict):
        errors += _invariants(items, "item", f"{path}.items")
    for name, inner in properties.items():
        errors += _invariants(inner, "field", f"{path}.properties[{name}]")
    if additional is not None:
        if level == "root":
            errors.append(fields.forbidden(f"{path}.additionalProperties", "must not be used at the root"))
        if isinstance(additional, dict):
            errors += _invariants(additional, "field", f"{path}.additionalProperties")
    if int_or_string:
        for keyword, is_set in (
            ("x-kubernetes-preserve-unknown-fields", preserves),
            ("x-kubernetes-embedded-resource", embedded),
        ):
            if is_set:
                why = "must be false if x-kubernetes-int-or-string is true"
                errors.append(fields.invalid(f"{path}.{keyword}", True, why))
    all_of = props.get("allOf") or []
    errors += _junctors(
        props,
        path,
        skip_any_of=props.get("anyOf") == INT_OR_STRING,
        skip_first=bool(all_of) and all_of[0].get("anyOf") == INT_OR_STRING,
    )
    if embedded and kind != "object":
        why = "must be object if x-kubernetes-embedded-resource is true"
        where = f"{path}.type"
        errors.append(fields.invalid(where, kind, why) if kind else fields.required(where, why))
    elif not kind and not int_or_string and not preserves:
        errors.append(fields.required(f"{path}.type", _LEVELS[level]))
    if embedded and additional is not None:
        why = "must not be used if x-kubernetes-embedded-resource is set"
        errors.append(fields.forbidden(f"{path}.additionalProperties", why))
    if level == "root" and kind and kind != "object":
        errors.append(fields.invalid(f"{path}.type", kind, "must be object at the root"))
    errors += _resource_fields(properties, level, embedded, path)
    if embedded and not preserves and not properties:
        why = (
            "must not be empty if x-kubernetes-embedded-resource is true without "
            "x-kubernetes-preserve-unknown-fields"
        )
        errors.append(fields.required(f"{path}.properties", why))
    return errors


def _resource_fields(properties: Props, level: str, embedded: bool, path: str) -> Errors:
    """kind and apiVersion must be strings; metadata must be an object, at the root restricted to name and
    generateName."""
    errors: Errors = []
    resource = level == "root" or embedded
    for name in ("kind", "apiVersion"):
        schema = properties.get(name)
        if schema is not None and resource and schema.get("type") != "string":
            where = f"{path}.properties[{name}].type"
            errors.append(fields.invalid(where, schema.get("type", ""), "must be string"))
    metadata = properties.get("metadata")
    if metadata is None:
        return errors
    where = f"{path}.properties[metadata]"
    if resource and metadata.get("type") != "object":
        errors.append(fields.invalid(f"{where}.type", metadata.get("type", ""), "must be object"))
    if level == "root" and not _names_only(metadata):
        why = (
            "must not specify anything other than name and generateName, but metadata is implicitly specified"
        )
        errors.append(fields.forbidden(where, why))
    return errors


def _names_only(metadata: Props) -> bool:
    rest = {key: value for key, value in metadata.items() if key not in ("type", "default")}
    named = rest.get("properties") or {}
    if named.keys() <= {"name", "generateName"}:
        rest.pop("properties", None)
    return not any(value not in (None, [], {}, "", False) for value in rest.values())


def _junctors(props: Props, path: str, *, skip_any_of: bool = False, skip_first: bool = False) -> Errors:
    errors: Errors = []
    if not skip_any_of:
        for index, inner in enumerate(props.get("anyOf") or ()):
            errors += _nested(inner, f"{path}.anyOf[{index}]")
    for index, inner in enumerate(props.get("allOf") or ()):
        errors += _nested(inner, f"{path}.allOf[{index}]", skip_any_of=skip_first and index == 0)
    for index, inner in enumerate(props.get("oneOf") or ()):
        errors += _nested(inner, f"{path}.oneOf[{index}]")
    if props.get("not") is not None:
        errors += _nested(props["not"], f"{path}.not")
    if pattern := props.get("pattern"):
        try:
            regex.compile_aside(pattern)
        except regex.RegexError as error:
            why = f"must be a valid regular expression, but isn't: {error}"
            errors.append(fields.invalid(f"{path}.pattern", pattern, why))
    return errors


def _nested(props: Props, path: str, *, skip_any_of: bool = False) -> Errors:
    """A schema inside a junctor must not set types, defaults or descriptions, only value restrictions."""
    errors = _junctors(props, path, skip_any_of=skip_any_of)
    if isinstance(props.get("items"), dict):
        errors += _nested(props["items"], f"{path}.items")
    properties = props.get("properties") or {}
    for name, inner in properties.items():
        errors += _nested(inner, f"{path}.properties[{name}]")
    for keyword, why in _FORBIDDEN_IN_JUNCTORS:
        value = props.get(keyword)
        if value or (keyword in _UNDEFINED and value is not None and value is not False):
            errors.append(fields.forbidden(f"{path}.{keyword}", why))
    if "metadata" in properties:
        why = "must not be specified in a nested context"
        errors.append(fields.forbidden(f"{path}.properties[metadata]", why))
    return errors


def _completeness(props: Props, structure: Props, at: str, path: str) -> Errors:
    """Fields named in junctors must also be specified outside of junctors."""
    errors: Errors = []
    inner = [(props["not"], f"{path}.not")] if props.get("not") is not None else []
    for name in ("allOf", "anyOf", "oneOf"):
        inner += [(schema, f"{path}.{name}[{index}]") for index, schema in enumerate(props.get(name) or ())]
    for schema, where in inner:
        errors += _nested_completeness(schema, structure, at, where)
    return errors


def _nested_completeness(props: Props, structure: Props | None, at: str, path: str) -> Errors:
    if structure is None:
        return [fields.required(at, f"because it is defined in {path}")]
    errors = _completeness(props, structure, at, path)
    if isinstance(props.get("items"), dict):
        items = structure.get("items")
        element = items if isinstance(items, dict) else None
        errors += _nested_completeness(props["items"], element, f"{at}.items", f"{path}.items")
    known = structure.get("properties") or {}
    for name, inner in (props.get("properties") or {}).items():
        where, there = f"{path}.properties[{name}]", f"{at}.properties[{name}]"
        if name in known:
            errors += _nested_completeness(inner, known[name], there, where)
        else:
            errors.append(fields.required(there, f"because it is defined in {where}"))
    return errors
