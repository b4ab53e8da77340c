"""Conditions in a status: validation, and setting one condition.

Only kinds with conditions of the common type (`meta/v1.Condition`) validate them here.
"""

from __future__ import annotations

import re
from typing import Any

from kubist.model.meta import fields, names
from kubist.model.meta.fields import FieldError
from kubist.model.meta.labels import validate_label_name

Condition = dict[str, Any]

STATUSES = ("False", "True", "Unknown")
_REASON = "[A-Za-z]([A-Za-z0-9_,:]*[A-Za-z0-9_])?"
_REASON_MESSAGE = names.regex_error(
    "a condition reason must start with alphabetic character, optionally followed by a string of "
    "alphanumeric characters or '_,:', and must end with an alphanumeric character or '_'",
    _REASON,
    "my_name",
    "MY_NAME",
    "MyName",
    "ReasonA,ReasonB",
    "ReasonA:ReasonB",
)
_is_reason = re.compile(_REASON).fullmatch


def validate_conditions(conditions: list[Condition] | None, path: str) -> list[FieldError]:
    """Validates a list of common conditions. Their types must be unique."""
    errors = []
    seen = set()
    for index, condition in enumerate(conditions or ()):
        kind = condition.get("type", "")
        if kind in seen:
            errors.append(fields.duplicate(f"{path}[{index}].type", kind))
        seen.add(kind)
        errors += validate_condition(condition, f"{path}[{index}]")
    return errors


def validate_condition(condition: Condition, path: str) -> list[FieldError]:
    errors = validate_label_name(condition.get("type", ""), f"{path}.type")
    status = condition.get("status", "")
    if status not in STATUSES:
        errors.append(fields.not_supported(f"{path}.status", status, STATUSES))
    generation = condition.get("observedGeneration", 0)
    if generation < 0:
        errors.append(
            fields.invalid(f"{path}.observedGeneration", generation, "must be greater than or equal to zero")
        )
    if not condition.get("lastTransitionTime"):
        errors.append(fields.required(f"{path}.lastTransitionTime"))
    reason = condition.get("reason", "")
    if not reason:
        errors.append(fields.required(f"{path}.reason"))
    elif not _is_reason(reason):
        errors.append(fields.invalid(f"{path}.reason", reason, _REASON_MESSAGE))
    if len(reason.encode()) > 1024:
        errors.append(fields.too_long(f"{path}.reason", 1024))
    if len(condition.get("message", "").encode()) > 32768:
        errors.append(fields.too_long(f"{path}.message", 32768))
    return errors


def find(conditions: list[Condition] | None, kind: str) -> Condition | None:
    """First condition of a type."""
    return next((c for c in conditions or () if c.get("type") == kind), None)


def set_condition(conditions: list[Condition], condition: Condition, now: str) -> bool:
    """Replaces the condition of the same type, or appends it.

    lastTransitionTime is `now` if the status changed, otherwise the old time. False if nothing changed.
    """
    old = find(conditions, condition["type"])
    if old is None:
        conditions.append({**condition, "lastTransitionTime": now})
        return True
    kept = old.get("lastTransitionTime", now) if old.get("status") == condition.get("status") else now
    new = {**old, **condition, "lastTransitionTime": kept}
    changed = new != old
    old.update(new)
    return changed
