"""Validates the fields of a CRD version other than its schema's structure: root keywords, printer columns,
subresources, deprecation, selectable fields; and the conversion between versions."""

from __future__ import annotations

from typing import Any

from kubist.api.crd import definition, field_path
from kubist.api.crd.webhook import REVIEW_VERSIONS, valid_ca_bundle
from kubist.api.resources.strategy import Errors
from kubist.api.webhooks.client_config import validate_service, validate_url
from kubist.model.meta import fields, names
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
"""Keywords that count as present even with a zero value (false, 0, an empty object), because kube-apiserver's field is
a pointer."""


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
        json_path, where = scale.get(name) or "", f"{path}.scale.{name}"
        if not json_path:
            if name != "labelSelectorPath":
                errors.append(fields.required(where))
            continue
        wrong = _simple_path(json_path, where)
        if wrong:
            errors += wrong
        elif not json_path.startswith(prefixes):
            errors.append(fields.invalid(where, json_path, why))
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
            spelled, schema = field_path.resolve(text, props, arrays=False)
        except field_path.BadPath as error:
            errors.append(fields.invalid(where, text, f"is an invalid path: {error}"))
            continue
        if spelled.partition(".")[0] == "metadata":
            errors.append(fields.invalid(where, text, "must not point to fields in metadata"))
        if (schema or {}).get("type") not in ("string", "boolean", "integer"):
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
    old_fields = before.get("selectableFields") or []
    return len(old_fields) > MAX_SELECTABLE_FIELDS and old_fields == version.get("selectableFields")


def _webhook(crd: Object | None) -> Object:
    conversion = crd["spec"].get("conversion") if crd is not None else None
    return (conversion or {}).get("webhook") or {}


def validate_conversion(conversion: Object, old: Object | None) -> Errors:
    """Validates the conversion of a CRD. `old` is the CRD before an update, or None."""
    path = "spec.conversion"
    strategy = conversion.get("strategy") or ""
    webhook = conversion.get("webhook")
    if not strategy:
        return [fields.required(f"{path}.strategy")]
    errors: Errors = []
    if strategy not in ("None", "Webhook"):
        errors.append(fields.not_supported(f"{path}.strategy", strategy, ("None", "Webhook")))
    client = (webhook or {}).get("clientConfig")
    versions = (webhook or {}).get("conversionReviewVersions") or []
    where = f"{path}.webhookClientConfig"
    if strategy != "Webhook":
        why = "should not be set when strategy is not set to Webhook"
        if client is not None:
            errors.append(fields.forbidden(where, why))
        if versions:
            errors.append(fields.forbidden(f"{path}.conversionReviewVersions", why))
        return errors
    if client is None:
        errors.append(fields.required(where, "required when strategy is set to Webhook"))
    else:
        url, service = client.get("url"), client.get("service")
        if (url is None) == (service is None):
            errors.append(fields.required(where, "exactly one of url or service is required"))
        elif url is not None:
            errors += validate_url(url, f"{where}.url")
        else:
            errors += validate_service(service, f"{where}.service")
        bundle = client.get("caBundle")
        if bundle and not _tolerates_ca_bundle(old) and not valid_ca_bundle(bundle):
            why = "unable to load root certificates: unable to parse bytes as PEM block"
            errors.append(fields.invalid(f"{where}.caBundle", bundle, why))
    return errors + _review_versions(versions, f"{path}.conversionReviewVersions", _webhook(old))


def _tolerates_ca_bundle(old: Object | None) -> bool:
    """Whether an invalid caBundle is accepted: before the CRD is established, which an invalid caBundle prevents, or if
    the old CRD already has an invalid caBundle."""
    if old is None or not definition.established(old):
        return True
    before: str = (_webhook(old).get("clientConfig") or {}).get("caBundle") or ""
    return bool(before) and not valid_ca_bundle(before)


def _review_versions(versions: list[str], path: str, webhook_before: Object) -> Errors:
    if not versions:
        return [fields.required(path)]
    errors: Errors = []
    seen: set[str] = set()
    for index, version in enumerate(versions):
        if version in seen:
            errors.append(fields.invalid(f"{path}[{index}]", version, "duplicate version"))
            continue
        seen.add(version)
        errors += [fields.invalid(f"{path}[{index}]", version, why) for why in names.dns_1035_label(version)]
    before = webhook_before.get("conversionReviewVersions")
    required = not before or any(version in REVIEW_VERSIONS for version in before)
    if required and not any(version in REVIEW_VERSIONS for version in versions):
        why = f"must include at least one of {', '.join(REVIEW_VERSIONS)}"
        errors.append(fields.invalid(path, versions, why))
    return errors
