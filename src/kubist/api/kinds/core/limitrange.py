"""LimitRange: bounds and defaults for the resources of pods, containers and claims in a namespace."""

from __future__ import annotations

import uuid
from typing import TYPE_CHECKING

from kubist.api.kinds.core.podspec.resources import round_up_to_milli
from kubist.api.kinds.shared.resource_names import (
    is_overcommit_allowed,
    validate_container_resource_name,
    validate_resource_name,
)
from kubist.api.resources.strategy import Errors, Strategy
from kubist.model.meta import names
from kubist.model.meta.fields import duplicate, forbidden, invalid, required
from kubist.model.meta.object import Object
from kubist.model.meta.quantity import MAX_MILLI, Quantity, parse_quantity

if TYPE_CHECKING:
    from kubist.api.resources.context import Context

TYPES = ("Container", "PersistentVolumeClaim", "Pod")
_BOUNDS = ("max", "min", "default", "defaultRequest", "maxLimitRequestRatio")
_ONE = parse_quantity("1")


class LimitRangeStrategy(Strategy):
    create_on_update = True
    metadata_rules = ("object",)

    def default(self, obj: Object) -> None:
        """Derives container defaults from the bounds: `default` from max, `defaultRequest` from `default` or min."""
        for item in obj["spec"].get("limits") or ():
            for field in _BOUNDS:
                round_up_to_milli(item.get(field))
            if item.get("type") != "Container":
                continue
            limits = {**(item.get("max") or {}), **(item.get("default") or {})}
            if limits:
                item["default"] = limits
            requests = {**(item.get("min") or {}), **limits, **(item.get("defaultRequest") or {})}
            if requests:
                item["defaultRequest"] = requests

    def prepare(self, ctx: Context, new: Object, old: Object | None) -> None:
        if old is None and not new["metadata"].get("name"):
            new["metadata"]["name"] = str(uuid.uuid4())

    def validate(self, ctx: Context, new: Object, old: Object | None) -> Errors:
        errors: Errors = []
        seen: set[str] = set()
        for i, item in enumerate(new["spec"].get("limits") or ()):
            path = f"spec.limits[{i}]"
            kind = item.get("type", "")
            errors += _validate_type(kind, f"{path}.type")
            if kind in seen:
                errors.append(duplicate(f"{path}.type", kind))
            seen.add(kind)
            errors += _validate_item(item, path)
        return errors


def _validate_type(kind: str, path: str) -> Errors:
    errors = [invalid(path, kind, message) for message in names.qualified_name(kind)]
    if not errors and "/" not in kind and kind not in TYPES:
        errors.append(invalid(path, kind, "must be a standard limit type or fully qualified"))
    return errors


def _validate_item(item: Object, path: str) -> Errors:
    kind = item.get("type", "")
    validate = validate_container_resource_name if kind in ("Pod", "Container") else validate_resource_name
    errors: Errors = []
    amounts: dict[str, dict[str, Quantity]] = {}
    for field in _BOUNDS:
        quantities = item.get(field) or {}
        if field == "maxLimitRequestRatio" and kind == "PersistentVolumeClaim":
            bounds = {**(item.get("min") or {}), **(item.get("max") or {})}
            if "storage" not in bounds:
                detail = "either minimum or maximum storage value is required, but neither was provided"
                errors.append(required(f"{path}.limits", detail))
        if kind == "Pod" and field in ("default", "defaultRequest"):
            if quantities:
                errors.append(forbidden(f"{path}.{field}", "may not be specified when `type` is 'Pod'"))
            continue
        for name, amount in quantities.items():
            errors += validate(name, f"{path}.{field}[{name}]")
            amounts.setdefault(name, {})[field] = parse_quantity(amount)
    for name in sorted(amounts):
        errors += _validate_amounts(name, amounts[name], path)
    return errors


def _validate_amounts(name: str, amounts: dict[str, Quantity], path: str) -> Errors:
    """Validates min ≤ defaultRequest ≤ default ≤ max, as far as they are set, and 1 ≤ ratio ≤ max/min."""
    errors: Errors = []

    def ordered(low: str, high: str, field: str, key: str, text: str) -> None:
        if low in amounts and high in amounts and amounts[low] > amounts[high]:
            detail = text.format(amounts[low], amounts[high])
            errors.append(invalid(f"{path}.{field}[{name}]", str(amounts[key]), detail))

    ordered("min", "max", "min", "min", "min value {} is greater than max value {}")
    request = "defaultRequest"
    ordered("min", request, request, request, "min value {} is greater than default request value {}")
    ordered(request, "max", request, request, "default request value {} is greater than max value {}")
    ordered(
        request,
        "default",
        request,
        request,
        "default request value {} is greater than default limit value {}",
    )
    ordered("min", "default", "default", "min", "min value {} is greater than default value {}")
    ordered("default", "max", "default", "max", "default value {} is greater than max value {}")
    ratio, low, high = amounts.get("maxLimitRequestRatio"), amounts.get("min"), amounts.get("max")
    where = f"{path}.maxLimitRequestRatio[{name}]"
    if ratio is not None and ratio < _ONE:
        errors.append(invalid(where, str(ratio), f"ratio {ratio} is less than 1"))
    if ratio is not None and low is not None and high is not None:
        ratio_value, least, most = float(ratio.value()), low.value(), high.value()
        if max(ratio.value(), least, most) < MAX_MILLI:
            ratio_value, least, most = ratio.milli_value() / 1000, low.milli_value(), high.milli_value()
        if least and ratio_value > (limit := float(most) / least):
            errors.append(invalid(where, str(ratio), f"ratio {ratio} is greater than max/min = {limit:f}"))
    default, demand = amounts.get("default"), amounts.get(request)
    if default is not None and demand is not None and default != demand and not is_overcommit_allowed(name):
        detail = f"default value {default} must equal to defaultRequest value {demand} in {name}"
        errors.append(invalid(f"{path}.{request}[{name}]", str(demand), detail))
    return errors


strategy = LimitRangeStrategy()
