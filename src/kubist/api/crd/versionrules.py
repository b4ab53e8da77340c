"""Validates the fields of a CRD version other than its schema's structure: root keywords, printer columns,
subresources, deprecation, selectable fields."""

from __future__ import annotations

from typing import Any

from kubist.api.crd import definition, fieldpath
from kubist.api.resources.strategy import Errors
from kubist.model.meta import fields
from kubist.model.meta.object import Object
from kubist.model.schema.internals import go_names, internal_form

Props = dict[str, Any]

MAX_SELECTABLE_FIELDS = 8
COLUMN_TYPES = ("boolean", "date", "integer", "number", "string")
COLUMN_FORMATS = ("byte", "date", "date-time", "double", "float", "int32", "int64", "password")
_PROPS = "apiextensions.JSONSchemaProps"
ROOT_KEYWORDS = (
    "description",
    "type",
    "format",
    "title",
    "maximum",
    "exclusiveMaximum",
    "minimum",
    "exclusiveMinimum",
    "maxLength",
    "minLength",
    "pattern",
    "maxItems",
    "minItems",
    "uniqueItems",
    "multipleOf",
    "required",
    "items",
    "properties",
    "externalDocs",
    "example",
    "x-kubernetes-preserve-unknown-fields",
    "x-kubernetes-validations",
)
"""Keywords allowed at the root of a schema with a status subresource."""
POINTERS = frozenset(
    (
        "default",
        "example",
        "additionalProperties",
        "additionalItems",
        "maxProperties",
        "minProperties",
        "not",
        "x-kubernetes-list-type",
        "x-kubernetes-map-type",
        "x-kubernetes-preserve-unknown-fields",
    )
)
"""Keywords that count as present even with a zero value (false, 0, an empty object), because the reference's
field is a pointer."""


def deprecation_problems(version: Object) -> list[str]:
    warning = version.get("deprecationWarning")
    if warning is None:
        return []
    if not version.get("deprecated"):
        return ["can only be set for deprecated versions"]
    errors = []
    if len(warning.encode()) > 256:
        errors.append("must be <= 256 characters long")
    if not warning:
        errors.append("must not be an empty string")
    position = next((index for index, char in enumerate(warning) if not char.isprintable()), None)
    if position is not None:
        at = len(warning[:position].encode())
        errors.append(
            f"must only contain printable UTF-8 characters; non-printable character found at index {at}"
        )
    return errors


def validate_root(props: Props, path: str, status: bool) -> Errors:
    errors: Errors = []
    if status:
        for keyword, value in props.items():
            if value is None or (keyword not in POINTERS and value in ("", [], {}, False)):
                continue
            if keyword == "type":
                if value != "object":
                    why = (
                        'only "object" is allowed as the type at the root of the schema if the status subresource '
                        "is enabled"
                    )
                    errors.append(fields.invalid(f"{path}.type", value, why))
                    break
            elif keyword not in ROOT_KEYWORDS:
                allowed = " ".join(go_names(_PROPS, ROOT_KEYWORDS))
                why = f"only [{allowed}] fields are allowed at the root of the schema if the status subresource "
                errors.append(fields.invalid(path, internal_form(_PROPS, props), why + "is enabled"))
                break
    if props.get("nullable"):
        errors.append(fields.forbidden(f"{path}.nullable", "nullable cannot be true at the root"))
    return errors


def _simple_path(text: str, path: str) -> Errors:
    if not text.startswith("."):
        return [fields.invalid(path, text, "must be a simple json path starting with .")]
    return []


def validate_subresources(version: Object, path: str) -> Errors:
    scale = definition.subresources_of(version).get("scale")
    if scale is None:
        return []
    errors: Errors = []
    rules = (
        ("specReplicasPath", (".spec.",), "should be a json path under .spec"),
        ("statusReplicasPath", (".status.",), "should be a json path under .status"),
        ("labelSelectorPath", (".spec.", ".status."), "should be a json path under either .spec or .status"),
    )
    for name, prefixes, why in rules:
        given, where = scale.get(name) or "", f"{path}.scale.{name}"
        if not given:
            if name != "labelSelectorPath":
                errors.append(fields.required(where))
            continue
        wrong = _simple_path(given, where)
        if wrong:
            errors += wrong
        elif not given.startswith(prefixes):
            errors.append(fields.invalid(where, given, why))
    return errors


def validate_columns(version: Object, path: str) -> Errors:
    errors: Errors = []
    for index, column in enumerate(version.get("additionalPrinterColumns") or ()):
        at = f"{path}[{index}]"
        kind, format_, json_path = column.get("type"), column.get("format"), column.get("jsonPath")
        if not column.get("name"):
            errors.append(fields.required(f"{at}.name"))
        why = f"must be one of {','.join(COLUMN_TYPES)}"
        if not kind:
            errors.append(fields.required(f"{at}.type", why))
        elif kind not in COLUMN_TYPES:
            errors.append(fields.invalid(f"{at}.type", kind, why))
        if format_ and format_ not in COLUMN_FORMATS:
            errors.append(
                fields.invalid(f"{at}.format", format_, f"must be one of {','.join(COLUMN_FORMATS)}")
            )
        if not json_path:
            errors.append(fields.required(f"{at}.JSONPath"))
        else:
            errors += _simple_path(json_path, f"{at}.JSONPath")
    return errors


def validate_selectable(version: Object, path: str, before: Object) -> Errors:
    """Validates selectableFields. `before` is the version before the update, or empty."""
    chosen = version.get("selectableFields") or ()
    props = definition.schema_of(version)
    if not chosen:
        return []
    if props is None:
        return [
            fields.invalid(path, "", "may only be set when `version.schema.openAPIV3Schema` is not included")
        ]
    errors: Errors = []
    seen: set[str] = set()
    for index, field in enumerate(chosen):
        where, text = f"{path}[{index}].jsonPath", field.get("jsonPath") or ""
        if not text:
            errors.append(fields.required(where))
            continue
        try:
            spelled, found = fieldpath.resolve(text, props, arrays=False)
        except fieldpath.BadPath as error:
            errors.append(fields.invalid(where, text, f"is an invalid path: {error}"))
            continue
        if spelled.partition(".")[0] == "metadata":
            errors.append(fields.invalid(where, text, "must not point to fields in metadata"))
        if (found or {}).get("type") not in ("string", "boolean", "integer"):
            why = (
                "must point to a field of type string, boolean or integer. Enum string fields and strings with "
                "formats are allowed."
            )
            errors.append(fields.invalid(where, text, why))
        if spelled in seen:
            errors.append(fields.duplicate(where, text))
        seen.add(spelled)
    if len(seen) > MAX_SELECTABLE_FIELDS and not _had_too_many(version, before):
        errors.append(fields.too_many(path, len(seen), MAX_SELECTABLE_FIELDS))
    return errors


def _had_too_many(version: Object, before: Object) -> bool:
    held = before.get("selectableFields") or []
    return len(held) > MAX_SELECTABLE_FIELDS and held == version.get("selectableFields")
