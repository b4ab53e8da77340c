"""Labels and structured label selectors (matchLabels, matchExpressions) inside objects: validation and
matching.

The text form in the query of lists and watches is in model/meta/selectors.
"""

from __future__ import annotations

from typing import Any

from kubist.model.meta import names, objectmeta
from kubist.model.meta.fields import FieldError, forbidden, invalid, required

Selector = dict[str, Any]
Labels = dict[str, str]


def validate_label_name(name: str, path: str) -> list[FieldError]:
    return [invalid(path, name, message) for message in names.qualified_name(name)]


def validate_labels(labels: Labels | None, path: str) -> list[FieldError]:
    return objectmeta.validate_labels(labels, path) if labels else []


def validate_selector(
    selector: Selector | None,
    path: str,
    *,
    allow_invalid_values: bool = False,
    allow_unknown_operators: bool = False,
) -> list[FieldError]:
    """Validates a selector. An absent selector is valid. Invalid values are allowed only if the object already
    has them."""
    if not selector:
        return []
    errors = validate_labels(selector.get("matchLabels"), f"{path}.matchLabels")
    for index, requirement in enumerate(selector.get("matchExpressions") or ()):
        errors += validate_requirement(
            requirement, f"{path}.matchExpressions[{index}]", allow_invalid_values, allow_unknown_operators
        )
    return errors


def validate_requirement(
    requirement: dict[str, Any],
    path: str,
    allow_invalid_values: bool = False,
    allow_unknown_operators: bool = False,
) -> list[FieldError]:
    errors = []
    values = requirement.get("values") or []
    match requirement.get("operator", ""):
        case "In" | "NotIn":
            if not values:
                errors.append(
                    required(f"{path}.values", "must be specified when `operator` is 'In' or 'NotIn'")
                )
        case "Exists" | "DoesNotExist":
            if values:
                why = "may not be specified when `operator` is 'Exists' or 'DoesNotExist'"
                errors.append(forbidden(f"{path}.values", why))
        case operator if not allow_unknown_operators:
            errors.append(invalid(f"{path}.operator", operator, "not a valid selector operator"))
    errors += validate_label_name(requirement.get("key", ""), f"{path}.key")
    if not allow_invalid_values:
        for index, value in enumerate(values):
            errors += [
                invalid(f"{path}.values[{index}]", value, message) for message in names.label_value(value)
            ]
    return errors


def has_invalid_values(selector: Selector | None) -> bool:
    """Whether an expression has a value that is not a valid label value. Objects that already have one may keep it."""
    return any(
        names.label_value(value)
        for requirement in (selector or {}).get("matchExpressions") or ()
        for value in requirement.get("values") or ()
    )


def is_empty(selector: Selector | None) -> bool:
    return not selector or not (selector.get("matchLabels") or selector.get("matchExpressions"))


def selector_matches(selector: Selector | None, labels: Labels | None) -> bool:
    """Whether a selector matches. An absent selector and an unknown operator match nothing; an empty selector
    matches all."""
    if selector is None:
        return False
    labels = labels or {}
    if any(labels.get(key) != value for key, value in (selector.get("matchLabels") or {}).items()):
        return False
    return all(
        _requirement_matches(requirement, labels) for requirement in selector.get("matchExpressions") or ()
    )


def _requirement_matches(requirement: dict[str, Any], labels: Labels) -> bool:
    value = labels.get(requirement.get("key", ""))
    match requirement.get("operator"):
        case "In":
            return value is not None and value in (requirement.get("values") or ())
        case "NotIn":
            return value is None or value not in (requirement.get("values") or ())
        case "Exists":
            return value is not None
        case "DoesNotExist":
            return value is None
    return False
