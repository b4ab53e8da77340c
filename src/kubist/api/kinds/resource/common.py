"""Validation of names, lists and opaque parameters, shared by the kinds of resource.k8s.io."""

from __future__ import annotations

import re
from collections.abc import Callable, Hashable, Sequence
from typing import Any, TypeVar

import orjson

from kubist.api.kinds.shared.values import repeats
from kubist.api.kinds.storage.common import validate_driver_name
from kubist.api.resources.strategy import Errors
from kubist.model.meta import fields, names
from kubist.model.meta.labels import validate_label_name
from kubist.model.meta.object import Object

T = TypeVar("T")
PARAMETERS_LIMIT = 10 * 1024
_MAX_ID = 32
_TAINT_EFFECTS = ("NoExecute", "NoSchedule", "None")
_is_uuid = re.compile("[0-9a-f]{8}(-[0-9a-f]{4}){3}-[0-9a-f]{12}").fullmatch


def each(
    items: Sequence[T] | None,
    limit: int,
    path: str,
    check: Callable[[T, str], Errors],
    key: Callable[[T], Hashable] | None = None,
) -> Errors:
    """Errors of a list's items. With `key`, items must differ in it. A list longer than `limit` is not validated
    further; -1 is no limit."""
    items = items or ()
    if 0 <= limit < len(items):
        return [fields.too_many(path, len(items), limit)]
    errors: Errors = []
    for index, item in enumerate(items):
        errors += check(item, f"{path}[{index}]")
    seen = set()
    for index, item in enumerate(items if key else ()):
        value = key(item) if key else None
        if value in seen:
            errors.append(fields.duplicate(f"{path}[{index}]", value))
        seen.add(value)
    return errors


def validate_label(name: str, path: str) -> Errors:
    return [fields.invalid(path, name, message) for message in names.dns_label(name)]


def validate_subdomain(name: str, path: str) -> Errors:
    return [fields.invalid(path, name, message) for message in names.dns_subdomain(name)]


def validate_pool_name(name: str, path: str) -> Errors:
    """Validates a pool name: DNS subdomains separated by slashes."""
    if not name:
        return [fields.required(path)]
    errors = [fields.too_long(path, 253)] if len(name) > 253 else []
    return errors + [error for part in name.split("/") for error in validate_subdomain(part, path)]


def validate_qualified_name(name: str, path: str) -> Errors:
    """Validates the name of an attribute or capacity, with or without a domain."""
    parts = name.split("/")
    if len(parts) == 1:
        return _validate_identifier(name, path)
    if len(parts) > 2:
        return []
    domain, identifier = parts
    errors = validate_driver_name(domain, path) if domain else []
    if not domain:
        errors.append(fields.invalid(path, "", "the domain must not be empty"))
    if not identifier:
        return [*errors, fields.invalid(path, "", "the name must not be empty")]
    return errors + _validate_identifier(identifier, path)


def validate_full_name(name: str, path: str) -> Errors:
    """Validates a qualified name that must have a domain."""
    errors = validate_qualified_name(name, path)
    if "/" not in name:
        why = "a fully qualified name must be a domain and a name separated by a slash"
        errors.append(fields.invalid(path, name, why))
    return errors


def _validate_identifier(name: str, path: str) -> Errors:
    errors = [fields.too_long(path, _MAX_ID)] if len(name) > _MAX_ID else []
    return errors + [fields.invalid(path, name, message) for message in names.c_identifier(name)]


def validate_share_id(uid: str | None, path: str) -> Errors:
    if uid is None or _is_uuid(uid):
        return []
    why = (
        "uid must be in RFC 4122 normalized form, `xxxxxxxx-xxxx-xxxx-xxxx-xxxxxxxxxxxx` with lowercase "
        "hexadecimal characters"
    )
    return [fields.invalid(path, uid, why)]


def validate_raw(value: Any, path: str, *, stored: bool = False) -> Errors:
    """Validates opaque driver parameters: a JSON object of at most 10 KiB. With `stored` the size is not checked."""
    if value is None:
        return [fields.required(path)]
    if not stored and len(orjson.dumps(value)) > PARAMETERS_LIMIT:
        return [fields.too_long(path, PARAMETERS_LIMIT)]
    if not isinstance(value, dict):
        return [fields.invalid(path, "<value omitted>", "must be a valid JSON object")]
    return []


def validate_configuration(config: Object, path: str, *, stored: bool = False) -> Errors:
    opaque = config.get("opaque")
    if opaque is None:
        return [fields.required(f"{path}.opaque")]
    errors = validate_driver_name(opaque.get("driver", ""), f"{path}.opaque.driver")
    return errors + validate_raw(opaque.get("parameters"), f"{path}.opaque.parameters", stored=stored)


def validate_binding_conditions(obj: Object, path: str) -> Errors:
    """Validates bindingConditions and bindingFailureConditions: both or neither, and no condition in both."""
    conditions = obj.get("bindingConditions") or []
    failures = obj.get("bindingFailureConditions") or []
    errors = each(conditions, 4, f"{path}.bindingConditions", validate_label_name)
    errors += each(failures, 4, f"{path}.bindingFailureConditions", validate_label_name)
    errors += [
        fields.duplicate(f"{path}.bindingConditions[{index}]", conditions[index])
        for index in repeats(conditions)
    ]
    repeated, shared = frozenset(repeats(failures)), frozenset(conditions)
    for index, condition in enumerate(failures):
        place = f"{path}.bindingFailureConditions[{index}]"
        if index in repeated:
            errors.append(fields.duplicate(place, condition))
        if condition in shared:
            why = "bindingFailureConditions must not overlap with bindingConditions"
            errors.append(fields.invalid(place, condition, why))
    if failures and not conditions:
        why = "bindingConditions are required to use bindingFailureConditions"
        errors.append(fields.invalid(f"{path}.bindingConditions", conditions, why))
    if conditions and not failures:
        why = "bindingFailureConditions are required to use bindingConditions"
        errors.append(fields.invalid(f"{path}.bindingFailureConditions", failures, why))
    return errors


def validate_taint(taint: Object, path: str) -> Errors:
    errors = validate_label_name(taint.get("key", ""), f"{path}.key")
    value, effect = taint.get("value", ""), taint.get("effect", "")
    errors += [fields.invalid(f"{path}.value", value, message) for message in names.label_value(value)]
    if not effect:
        errors.append(fields.required(f"{path}.effect"))
    elif effect not in _TAINT_EFFECTS:
        errors.append(fields.not_supported(f"{path}.effect", effect, _TAINT_EFFECTS))
    return errors


def validate_toleration(toleration: Object, path: str) -> Errors:
    key, value = toleration.get("key", ""), toleration.get("value", "")
    errors = validate_label_name(key, f"{path}.key") if key else []
    match toleration.get("operator", ""):
        case "Exists":
            if value:
                why = "must be empty for operator `Exists`"
                errors.append(fields.invalid(f"{path}.value", value, why))
        case "Equal":
            errors += [fields.invalid(f"{path}.value", value, m) for m in names.label_value(value)]
        case "":
            errors.append(fields.required(f"{path}.operator"))
        case operator:
            errors.append(fields.not_supported(f"{path}.operator", operator, ("Equal", "Exists")))
    effect = toleration.get("effect", "")
    if effect and effect not in _TAINT_EFFECTS:
        errors.append(fields.not_supported(f"{path}.effect", effect, _TAINT_EFFECTS))
    return errors
