"""Rules of names, taints, tolerations and opaque parameters, shared by the kinds of resource.k8s.io."""

from __future__ import annotations

import re
from typing import Any

import orjson

from kubist.api.kinds.shared.rules import (
    Rule,
    Stop,
    field,
    items,
    label_value,
    max_length,
    must,
    not_null,
    nullable,
    one_of,
    optional,
    qualified_name,
    required,
    struct,
    subdomain,
    text,
)
from kubist.api.kinds.shared.values import repeats
from kubist.api.kinds.storage.common import validate_driver_name
from kubist.api.resources.strategy import Errors
from kubist.model.meta import fields, names
from kubist.model.meta.object import Object

PARAMETERS_LIMIT = 10 * 1024


def driver_name(name: str | None, path: str) -> Errors:
    return validate_driver_name(name or "", path)


def _subdomains(name: str, path: str) -> Errors:
    return [error for part in name.split("/") for error in subdomain(part, path)]


pool_name = struct(required, max_length(253), _subdomains)
_identifier = struct(max_length(32), text(names.c_identifier))


def attribute_name(name: str, path: str) -> Errors:
    """The name of an attribute or capacity, with or without a domain."""
    parts = name.split("/")
    if len(parts) == 1:
        return _identifier(name, path)
    if len(parts) > 2:
        return []
    domain, identifier = parts
    errors = validate_driver_name(domain, path) if domain else []
    if not domain:
        errors.append(fields.invalid(path, "", "the domain must not be empty"))
    if not identifier:
        return [*errors, fields.invalid(path, "", "the name must not be empty")]
    return errors + _identifier(identifier, path)


def full_name(name: str, path: str) -> Errors:
    """The name of an attribute, which must have a domain."""
    errors = attribute_name(name, path)
    if "/" not in name:
        why = "a fully qualified name must be a domain and a name separated by a slash"
        errors.append(fields.invalid(path, name, why))
    return errors


share_id = struct(
    nullable,
    must(
        re.compile("[0-9a-f]{8}(-[0-9a-f]{4}){3}-[0-9a-f]{12}").fullmatch,
        "uid must be in RFC 4122 normalized form, `xxxxxxxx-xxxx-xxxx-xxxx-xxxxxxxxxxxx` with lowercase "
        "hexadecimal characters",
    ),
)


def _small(value: Any, path: str) -> Errors:
    size = len(orjson.dumps(value))
    return Stop([fields.too_long(path, PARAMETERS_LIMIT)]) if size > PARAMETERS_LIMIT else []


def _json_object(value: Any, path: str) -> Errors:
    why = "must be a valid JSON object"
    return [] if isinstance(value, dict) else [fields.invalid(path, "<value omitted>", why)]


raw = struct(_small, _json_object)
"""Opaque driver parameters: a JSON object of at most 10 KiB."""


def _configuration(*parameters: Rule) -> Rule:
    opaque = struct(field("driver", driver_name), field("parameters", not_null, *parameters))
    return field("opaque", not_null, opaque)


CONFIGURATION = _configuration(raw)
STORED_CONFIGURATION = _configuration(_json_object)
"""Rules of an already stored configuration. Its size is not checked again."""


def _binding_conditions(obj: Object, path: str) -> Errors:
    """Both lists or neither have conditions, and no condition is in both."""
    conditions = obj.get("bindingConditions") or []
    failures = obj.get("bindingFailureConditions") or []
    errors = [
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


BINDING_CONDITIONS = struct(
    items("bindingConditions", qualified_name, most=4),
    items("bindingFailureConditions", qualified_name, most=4),
    _binding_conditions,
)
_taint_effect = one_of("NoExecute", "NoSchedule", "None")
TAINT = struct(
    field("key", qualified_name),
    field("value", label_value),
    field("effect", required, _taint_effect),
)


def _toleration_value(toleration: Object, path: str) -> Errors:
    value = toleration.get("value", "")
    if toleration.get("operator") == "Equal":
        return label_value(value, f"{path}.value")
    if value and toleration.get("operator") == "Exists":
        return [fields.invalid(f"{path}.value", value, "must be empty for operator `Exists`")]
    return []


TOLERATION = struct(
    field("key", optional, qualified_name),
    field("operator", required, one_of("Equal", "Exists")),
    _toleration_value,
    field("effect", optional, _taint_effect),
)
