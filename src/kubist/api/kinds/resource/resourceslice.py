"""ResourceSlice: devices that a driver offers, on one node or on several."""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping

from kubist.api.kinds.core.podspec.affinity import validate_node_selector
from kubist.api.kinds.resource.common import (
    BINDING_CONDITIONS,
    TAINT,
    attribute_name,
    driver_name,
    pool_name,
)
from kubist.api.kinds.shared.rules import (
    Rule,
    at_least,
    each,
    field,
    items,
    keys,
    label,
    max_bytes,
    must,
    nullable,
    optional,
    required,
    struct,
    subdomain,
    unchanged,
)
from kubist.api.resources.context import Context
from kubist.api.resources.strategy import Errors, Strategy
from kubist.base.jsontext.quoting import quoted
from kubist.model.meta import fields, times
from kubist.model.meta.object import Object
from kubist.model.meta.objectmeta import raise_generation
from kubist.model.meta.quantity import Quantity, parse_quantity

_MAX_KEY = 63 + 1 + 32
_CHOICES = ("nodeName", "nodeSelector", "allNodes", "perDeviceNodeSelection")
_MAX_VALUES = 10
_LISTS = ("bools", "ints", "strings", "versions")
_NUMBER = r"(0|[1-9]\d*)"
_PRERELEASE = r"(0|[1-9]\d*|\d*[a-zA-Z-][0-9a-zA-Z-]*)"
_BUILD = "[0-9a-zA-Z-]+"
_is_version = re.compile(
    rf"{_NUMBER}\.{_NUMBER}\.{_NUMBER}(-{_PRERELEASE}(\.{_PRERELEASE})*)?(\+{_BUILD}(\.{_BUILD})*)?", re.ASCII
).fullmatch
_EMPTY_NAME = "must be either unset or set to a non-empty string"
_ONLY_PER_DEVICE = (
    "`nodeName`, `nodeSelector` and `allNodes` can only be set if `perDeviceNodeSelection` is set to true in "
    "the ResourceSlice spec"
)
_ONE_CHOICE = (
    "exactly one of `nodeName`, `nodeSelector`, or `allNodes` is required when `perDeviceNodeSelection` is "
    "set to true in the ResourceSlice spec"
)


class ResourceSliceStrategy(Strategy):
    returns_deleted = True
    generation_fields = ("spec",)
    namespace_selectable = False
    field_labels: Mapping[str, str] = {"spec.nodeName": "spec.nodeName", "spec.driver": "spec.driver"}

    def default(self, obj: Object) -> None:
        for device in (obj.get("spec") or {}).get("devices") or ():
            for taint in device.get("taints") or ():
                if not taint.get("timeAdded"):
                    taint["timeAdded"] = times.now()

    def prepare(self, ctx: Context, new: Object, old: Object | None) -> None:
        """Increments the generation even if only dropped fields changed."""
        if old is not None and new.get("spec") != old.get("spec"):
            raise_generation(new, old)
        _drop_disabled(new.get("spec") or {}, (old or {}).get("spec") or {})

    def validate(self, ctx: Context, new: Object, old: Object | None) -> Errors:
        return _validate(new.get("spec") or {}, (old.get("spec") or {}) if old is not None else None)

    def warnings(self, ctx: Context, new: Object, old: Object | None) -> Iterable[str]:
        driver = (new.get("spec") or {}).get("driver", "")
        if driver == driver.lower():
            return ()
        return (
            f"spec.driver: driver names should be lowercase; {quoted(driver)} contains uppercase characters",
        )


def _drop_disabled(spec: Object, old: Object) -> None:
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


def _validate(spec: Object, old: Object | None) -> Errors:
    devices = spec.get("devices") or ()
    is_advanced = any(device.get("taints") or device.get("consumesCounters") for device in devices)
    rules = struct(
        field("driver", driver_name),
        field("pool", _POOL),
        *([] if old is None else _unchanged(old)),
        _SLICE_NODES,
        _validate_content,
        items("devices", _device_rules(spec, old or {}), most=64 if is_advanced else 128, unique="name"),
        items("sharedCounters", _COUNTER_SET, most=8, unique="name"),
    )
    return rules(spec, "spec")


def _unchanged(old: Object) -> list[Rule]:
    pool_name_before = (old.get("pool") or {}).get("name")
    return [
        field("pool", field("name", unchanged(pool_name_before, "string"))),
        field("driver", unchanged(old.get("driver"), "string")),
        field("nodeName", unchanged(old.get("nodeName"))),
    ]


def _validate_content(spec: Object, path: str) -> Errors:
    if spec.get("devices") is None or spec.get("sharedCounters") is None:
        return []
    return [fields.invalid(path, "", "only one of `sharedCounters` or `devices` is allowed")]


def _device_rules(spec: Object, old: Object) -> Rule:
    """Rules of a device. Its taints are checked if they changed."""
    known = {device.get("name", ""): device for device in old.get("devices") or ()}
    taints = items("taints", TAINT, most=16)

    def validate_taints(device: Object, path: str) -> Errors:
        before = known.get(device.get("name", ""))
        is_unchanged = before is not None and before.get("taints") == device.get("taints")
        return [] if is_unchanged else taints(device, path)

    return struct(
        field("name", label),
        _validate_totals,
        _validate_attributes,
        _validate_capacities,
        validate_taints,
        items("consumesCounters", _CONSUMPTION, most=2, unique="counterSet"),
        _DEVICE_NODES if spec.get("perDeviceNodeSelection") else _validate_no_nodes,
        BINDING_CONDITIONS,
    )


def _validate_totals(device: Object, path: str) -> Errors:
    attributes = len(device.get("attributes") or ())
    total = attributes + len(device.get("capacity") or ())
    errors: Errors = []
    if total > 32:
        why = "the total number of attributes and capacities must not exceed 32"
        errors.append(fields.invalid(path, total, why))
    if attributes > 48:
        why = "the total number of attribute values must not exceed 48"
        errors.append(fields.invalid(path, attributes, why))
    return errors


def _validate_attributes(device: Object, path: str) -> Errors:
    errors: Errors = []
    for name, attribute in (device.get("attributes") or {}).items():
        errors += attribute_name(name, f"{path}.attributes")
        errors += _ATTRIBUTE(attribute, f"{path}.attributes[{_shortened(name, _MAX_KEY)}]")
    return errors


def _validate_capacities(device: Object, path: str) -> Errors:
    errors: Errors = []
    for name, capacity in (device.get("capacity") or {}).items():
        errors += attribute_name(name, f"{path}.capacity")
        place = f"{path}.capacity[{_shortened(name, _MAX_KEY)}].requestPolicy"
        policy = capacity.get("requestPolicy")
        if policy is not None and device.get("allowMultipleAllocations"):
            errors += _validate_request_policy(policy, capacity.get("value", "0"), place)
        elif policy is not None:
            errors.append(fields.forbidden(place, "allowMultipleAllocations must be true"))
    return errors


def _shortened(key: str, limit: int) -> str:
    """Key as shown in error paths. `...` replaces the middle of a long key."""
    if len(key) <= limit:
        return key
    remaining = limit - 3
    return f"{key[: (remaining + 1) // 2]}...{key[len(key) - remaining // 2 :]}"


def _validate_one_value(attribute: Object, path: str) -> Errors:
    if len([value for value in attribute.values() if value is not None]) == 1:
        return []
    return [fields.invalid(path, attribute or "", "exactly one value must be specified")]


def _validate_one_term(selector: Object, path: str) -> Errors:
    terms = selector.get("nodeSelectorTerms") or []
    if len(terms) == 1:
        return []
    return [fields.invalid(f"{path}.nodeSelectorTerms", terms, "must have exactly one node selector term")]


def _exactly_one(names: tuple[str, ...], why: str, several: str = "") -> Rule:
    """Requires exactly one of the fields to be set, and neither empty nor false. The message for more than one ends
    with `several`."""

    def validate(obj: Object, path: str) -> Errors:
        choices = [f"`{name}`" for name in names if obj.get(name) not in (None, "", False)]
        if not choices:
            return [fields.required(path, why)]
        text = f"{{{', '.join(choices)}}}"
        return [fields.invalid(path, text, why + several)] if len(choices) > 1 else []

    return validate


def _validate_no_nodes(device: Object, path: str) -> Errors:
    has_nodes = any(device.get(name) is not None for name in ("nodeName", "nodeSelector", "allNodes"))
    return [fields.invalid(path, None, _ONLY_PER_DEVICE)] if has_nodes else []


_version = must(_is_version, "must be a string compatible with semver.org spec 2.0.0")
_is_true = must(bool, "must be either unset or set to true")
_POOL = struct(
    field("name", pool_name),
    field("resourceSliceCount", at_least(1, "must be greater than zero")),
    field("generation", at_least(0, "must be greater than or equal to zero")),
)
_ATTRIBUTE = struct(
    field("string", max_bytes(64)),
    field("version", nullable, _version, max_bytes(64)),
    _validate_one_value,
)
_COUNTERS = keys("counters", label, most=32)
_CONSUMPTION = struct(field("counterSet", required, label), _COUNTERS)
_COUNTER_SET = struct(field("name", required, label), _COUNTERS)
_DEVICE_NODES = struct(
    field("nodeName", nullable, must(bool, "must not be empty"), optional, subdomain),
    field("nodeSelector", nullable, validate_node_selector),
    field("allNodes", nullable, _is_true),
    _exactly_one(_CHOICES[:3], _ONE_CHOICE),
)
_SLICE_NODES = struct(
    field("nodeName", nullable, must(bool, _EMPTY_NAME), optional, subdomain),
    field("nodeSelector", nullable, validate_node_selector, _validate_one_term),
    field("allNodes", nullable, _is_true),
    field("perDeviceNodeSelection", nullable, _is_true),
    _exactly_one(
        _CHOICES,
        f"exactly one of {', '.join(f'`{name}`' for name in _CHOICES)} is required",
        ", but multiple fields are set",
    ),
)


def _validate_request_policy(policy: Object, capacity: str, path: str) -> Errors:
    values, amounts = policy.get("validValues") or [], policy.get("validRange")
    if values and amounts is not None:
        why = (
            'exactly one policy can be specified, cannot specify "validValues" and "validRange" at the same '
            "time"
        )
        return [fields.forbidden(path, why)]
    name = "validValues" if values else "validRange"
    if not values and amounts is None:
        return []
    if policy.get("default") is None:
        return [fields.required(f"{path}.default", f"required when {name} is defined")]
    default, most = parse_quantity(policy["default"]), parse_quantity(capacity)
    if values:
        return _validate_values([parse_quantity(value) for value in values], default, most, f"{path}.{name}")
    return _validate_range(amounts or {}, default, most, f"{path}.{name}")


def _validate_values(values: list[Quantity], default: Quantity, most: Quantity, path: str) -> Errors:
    errors: Errors = [
        fields.invalid(f"{path}[{index}]", str(value), "values must be sorted in ascending order")
        for index, value in enumerate(values)
        if index and values[index - 1] > value
    ]

    def fits(value: Quantity, place: str) -> Errors:
        why = f"option is larger than capacity value: {most}"
        return [fields.invalid(place, str(value), why)] if value > most else []

    errors += each(fits, most=_MAX_VALUES, unique=lambda value: str(value.value()))(values, path)
    if len(values) > _MAX_VALUES or default not in values:
        why = "default value is not valid according to the requestPolicy"
        errors.append(fields.invalid(path, str(default), why))
    return errors


def _validate_range(amounts: Object, default: Quantity, most: Quantity, path: str) -> Errors:
    if amounts.get("min") is None:
        return [fields.required(f"{path}.min", "required when validRange is defined")]
    low = parse_quantity(amounts["min"])
    high = parse_quantity(amounts["max"]) if amounts.get("max") is not None else None
    step = parse_quantity(amounts["step"]) if amounts.get("step") is not None else None
    wrong = [
        (low > most, "min", low, f"min is larger than capacity value: {most}"),
        (default < low, "min", default, f"default is less than min: {low}"),
    ]
    if high is not None:
        wrong += [
            (low > high, "max", low, f"min is larger than max: {high}"),
            (high > most, "max", high, f"max is larger than capacity value: {most}"),
            (default > high, "max", default, f"default is more than max: {high}"),
        ]
    if step is not None:
        one = low + step
        off = f"value is not a multiple of a given step ({step}) from ({low})"
        wrong += [
            (one > most, "step", step, f"one step {one} is larger than capacity value: {most}"),
            (not _reaches(default, low, step), "step", default, off),
        ]
        if high is not None:
            wrong.append((not _reaches(high, low, step), "step", high, off))
    return [fields.invalid(f"{path}.{name}", str(amount), why) for bad, name, amount, why in wrong if bad]


def _reaches(amount: Quantity, low: Quantity, step: Quantity) -> bool:
    """Whether `amount` is `low` plus whole steps. A step of zero reaches only `low`."""
    distance = amount.value() - low.value()
    return distance % step.value() == 0 if step.value() else distance == 0


strategy = ResourceSliceStrategy()
