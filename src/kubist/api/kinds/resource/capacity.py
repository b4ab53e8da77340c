"""Validation of a capacity's requestPolicy: valid values, or a range with steps."""

from __future__ import annotations

from kubist.api.kinds.resource.common import each
from kubist.api.resources.strategy import Errors
from kubist.model.meta import fields
from kubist.model.meta.object import Object
from kubist.model.meta.quantity import Quantity, parse_quantity

_MAX_VALUES = 10


def validate_request_policy(policy: Object, capacity: str, path: str) -> Errors:
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

    errors += each(values, _MAX_VALUES, path, fits, lambda value: str(value.value()))
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
