"""Validation of a slice's device: attributes, capacities, taints, consumed counters and node selection."""

from __future__ import annotations

import re

from kubist.api.kinds.core.podspec.affinity import validate_node_selector
from kubist.api.kinds.resource.capacity import validate_request_policy
from kubist.api.kinds.resource.common import (
    each,
    validate_binding_conditions,
    validate_label,
    validate_qualified_name,
    validate_subdomain,
    validate_taint,
)
from kubist.api.resources.strategy import Errors
from kubist.model.meta import fields
from kubist.model.meta.object import Object

_MAX_KEY = 63 + 1 + 32
_LISTS = ("bools", "ints", "strings", "versions")
_NUMBER = r"(0|[1-9]\d*)"
_PRERELEASE = r"(0|[1-9]\d*|\d*[a-zA-Z-][0-9a-zA-Z-]*)"
_BUILD = "[0-9a-zA-Z-]+"
_is_version = re.compile(
    rf"{_NUMBER}\.{_NUMBER}\.{_NUMBER}(-{_PRERELEASE}(\.{_PRERELEASE})*)?(\+{_BUILD}(\.{_BUILD})*)?", re.ASCII
).fullmatch
_ONLY_PER_DEVICE = (
    "`nodeName`, `nodeSelector` and `allNodes` can only be set if `perDeviceNodeSelection` is set to true in "
    "the ResourceSlice spec"
)
_ONE_CHOICE = (
    "exactly one of `nodeName`, `nodeSelector`, or `allNodes` is required when `perDeviceNodeSelection` is "
    "set to true in the ResourceSlice spec"
)


def drop_disabled(spec: Object, old: Object) -> None:
    """Drops list attributes and node resource mappings, because their feature gates are off, unless the old object
    uses them."""
    before = old.get("devices") or []
    lists = any(name in a for d in before for a in (d.get("attributes") or {}).values() for name in _LISTS)
    mappings = any(device.get("nodeAllocatableResourceMappings") for device in before)
    for device in spec.get("devices") or ():
        if not mappings:
            device.pop("nodeAllocatableResourceMappings", None)
        for attribute in () if lists else (device.get("attributes") or {}).values():
            for name in _LISTS:
                attribute.pop(name, None)


def validate_device(device: Object, old: Object | None, path: str, per_device: bool) -> Errors:
    errors = validate_label(device.get("name", ""), f"{path}.name")
    attributes, capacities = device.get("attributes") or {}, device.get("capacity") or {}
    total = len(attributes) + len(capacities)
    if total > 32:
        why = "the total number of attributes and capacities must not exceed 32"
        errors.append(fields.invalid(path, total, why))
    if len(attributes) > 48:
        why = "the total number of attribute values must not exceed 48"
        errors.append(fields.invalid(path, len(attributes), why))
    for name, attribute in attributes.items():
        errors += validate_qualified_name(name, f"{path}.attributes")
        errors += _validate_attribute(attribute, f"{path}.attributes[{_shortened(name, _MAX_KEY)}]")
    shared = device.get("allowMultipleAllocations") or False
    for name, capacity in capacities.items():
        errors += validate_qualified_name(name, f"{path}.capacity")
        place = f"{path}.capacity[{_shortened(name, _MAX_KEY)}].requestPolicy"
        policy = capacity.get("requestPolicy")
        if policy is not None and shared:
            errors += validate_request_policy(policy, capacity.get("value", "0"), place)
        elif policy is not None:
            errors.append(fields.forbidden(place, "allowMultipleAllocations must be true"))
    if old is None or old.get("taints") != device.get("taints"):
        errors += each(device.get("taints"), 16, f"{path}.taints", validate_taint)
    errors += each(
        device.get("consumesCounters"),
        2,
        f"{path}.consumesCounters",
        _validate_consumption,
        lambda consumption: consumption.get("counterSet", ""),
    )
    errors += _validate_nodes(device, path, per_device)
    return errors + validate_binding_conditions(device, path)


def _shortened(key: str, limit: int) -> str:
    """Key as error paths show it. The middle of a long key is replaced by `...`."""
    if len(key) <= limit:
        return key
    remaining = limit - 3
    return f"{key[: (remaining + 1) // 2]}...{key[len(key) - remaining // 2 :]}"


def _validate_attribute(attribute: Object, path: str) -> Errors:
    errors: Errors = []
    text, version = attribute.get("string"), attribute.get("version")
    if text is not None and len(text.encode()) > 64:
        errors.append(fields.too_long(f"{path}.string", 64))
    if version is not None and not _is_version(version):
        why = "must be a string compatible with semver.org spec 2.0.0"
        errors.append(fields.invalid(f"{path}.version", version, why))
    if version is not None and len(version.encode()) > 64:
        errors.append(fields.too_long(f"{path}.version", 64))
    if len([value for value in attribute.values() if value is not None]) != 1:
        shown = attribute or ""
        errors.append(fields.invalid(path, shown, "exactly one value must be specified"))
    return errors


def _validate_consumption(consumption: Object, path: str) -> Errors:
    name = consumption.get("counterSet", "")
    errors = validate_label(name, f"{path}.counterSet") if name else [fields.required(f"{path}.counterSet")]
    return errors + validate_counters(consumption.get("counters"), f"{path}.counters")


def validate_counters(counters: Object | None, path: str) -> Errors:
    if not counters:
        return [fields.required(path)]
    if len(counters) > 32:
        return [fields.too_many(path, len(counters), 32)]
    return [error for name in counters for error in validate_label(name, path)]


def validate_node_choice(
    obj: Object, path: str, *, empty_name: str, one_term: bool = False
) -> tuple[Errors, list[str]]:
    """Errors of nodeName, nodeSelector and allNodes, and the names of those that are set."""
    errors: Errors = []
    chosen = []
    name, selector, every = obj.get("nodeName"), obj.get("nodeSelector"), obj.get("allNodes")
    if name:
        chosen.append("nodeName")
        errors += validate_subdomain(name, f"{path}.nodeName")
    elif name is not None:
        errors.append(fields.invalid(f"{path}.nodeName", name, empty_name))
    if selector is not None:
        chosen.append("nodeSelector")
        errors += validate_node_selector(selector, f"{path}.nodeSelector")
        terms = selector.get("nodeSelectorTerms") or []
        if one_term and len(terms) != 1:
            why = "must have exactly one node selector term"
            errors.append(fields.invalid(f"{path}.nodeSelector.nodeSelectorTerms", terms, why))
    if every:
        chosen.append("allNodes")
    elif every is not None:
        errors.append(fields.invalid(f"{path}.allNodes", every, "must be either unset or set to true"))
    return errors, chosen


def _validate_nodes(device: Object, path: str, per_device: bool) -> Errors:
    if not per_device:
        if any(device.get(name) is not None for name in ("nodeName", "nodeSelector", "allNodes")):
            return [fields.invalid(path, None, _ONLY_PER_DEVICE)]
        return []
    errors, chosen = validate_node_choice(device, path, empty_name="must not be empty")
    if not chosen:
        errors.append(fields.required(path, _ONE_CHOICE))
    elif len(chosen) > 1:
        shown = f"{{{', '.join(f'`{name}`' for name in chosen)}}}"
        errors.append(fields.invalid(path, shown, _ONE_CHOICE))
    return errors
