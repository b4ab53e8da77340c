"""Validation of tolerations, topology spread constraints, scheduling gates and readiness gates."""

from __future__ import annotations

from orjson import dumps

from kubist.api.kinds.core.podspec.options import Options
from kubist.base.caching import skip_validated
from kubist.model.meta import names
from kubist.model.meta.fields import FieldError, duplicate, forbidden, invalid, not_supported, required
from kubist.model.meta.labels import validate_label_name, validate_selector
from kubist.model.meta.object import Object

Errors = list[FieldError]

TAINT_EFFECTS = ("NoSchedule", "PreferNoSchedule", "NoExecute")


@skip_validated(dumps)
def validate_tolerations(tolerations: list[Object], path: str) -> Errors:
    errors: Errors = []
    for index, toleration in enumerate(tolerations):
        key, operator = toleration.get("key", ""), toleration.get("operator", "")
        value, effect = toleration.get("value", ""), toleration.get("effect", "")
        if key:
            if problems := names.qualified_name(key):
                errors += [invalid(f"{path}[{index}].key", key, problem) for problem in problems]
        elif operator != "Exists":
            why = 'operator must be Exists when `key` is empty, which means "match all values and all keys"'
            errors.append(invalid(f"{path}[{index}].operator", operator, why))
        if "tolerationSeconds" in toleration and effect != "NoExecute":
            why = "effect must be 'NoExecute' when `tolerationSeconds` is set"
            errors.append(invalid(f"{path}[{index}].effect", effect, why))
        match operator:
            case "" | "Equal":
                if problems := names.label_value(value):
                    errors.append(invalid(f"{path}[{index}].operator", value, ";".join(problems)))
            case "Exists":
                if value:
                    why = "value must be empty when `operator` is 'Exists'"
                    errors.append(invalid(f"{path}[{index}].operator", value, why))
            case "Lt" | "Gt":
                supported = ("Equal", "Exists", "Lt", "Gt")
                errors.append(not_supported(f"{path}[{index}].operator", operator, supported))
            case _:
                errors.append(not_supported(f"{path}[{index}].operator", operator, ("Equal", "Exists")))
        if effect and effect not in TAINT_EFFECTS:
            errors.append(not_supported(f"{path}[{index}].effect", effect, TAINT_EFFECTS))
    return errors


def validate_scheduling_gates(gates: list[Object], path: str) -> Errors:
    errors: Errors = []
    seen: set[str] = set()
    for index, gate in enumerate(gates):
        name = gate.get("name", "")
        errors += [invalid(f"{path}[{index}]", name, problem) for problem in names.qualified_name(name)]
        if name in seen:
            errors.append(duplicate(f"{path}[{index}]", name))
        seen.add(name)
    return errors


def validate_readiness_gates(gates: list[Object], path: str) -> Errors:
    errors: Errors = []
    for index, gate in enumerate(gates):
        name = gate.get("conditionType", "")
        where = f"{path}[{index}].conditionType"
        errors += [invalid(where, name, problem) for problem in names.qualified_name(name)]
    return errors


_ACTIONS = ("DoNotSchedule", "ScheduleAnyway")
_POSITIVE = "must be greater than zero"
_WITHOUT_SELECTOR = "must not be specified when labelSelector is not set"
_IN_BOTH = "exists in both matchLabelKeys and labelSelector"


def validate_spread(constraints: list[Object], path: str, options: Options) -> Errors:
    errors: Errors = []
    last = {_identity(constraint): index for index, constraint in enumerate(constraints)}
    for index, constraint in enumerate(constraints):
        repeated = last[_identity(constraint)] > index
        errors += _constraint(constraint, repeated, f"{path}[{index}]", options)
    return errors


def _identity(constraint: Object) -> tuple[str, str]:
    return constraint.get("topologyKey", ""), constraint.get("whenUnsatisfiable", "")


def _constraint(constraint: Object, repeated: bool, path: str, options: Options) -> Errors:
    """`repeated` is True if a later constraint has the same topologyKey and whenUnsatisfiable."""
    errors: Errors = []
    skew, domains = constraint.get("maxSkew", 0), constraint.get("minDomains")
    key, action = _identity(constraint)
    if skew <= 0:
        errors.append(invalid(f"{path}.maxSkew", skew, _POSITIVE))
    if not key:
        errors.append(required(f"{path}.topologyKey", "can not be empty"))
    if action not in _ACTIONS:
        errors.append(not_supported(f"{path}.whenUnsatisfiable", action, _ACTIONS))
    if repeated:
        errors.append(duplicate(f"{path}.{{topologyKey, whenUnsatisfiable}}", f"{{{key}, {action}}}"))
    if domains is not None:
        if domains <= 0:
            errors.append(invalid(f"{path}.minDomains", domains, _POSITIVE))
        if action != "DoNotSchedule":
            why = f"can only use minDomains if whenUnsatisfiable=DoNotSchedule, not {action}"
            errors.append(invalid(f"{path}.minDomains", domains, why))
    for policy in ("nodeAffinityPolicy", "nodeTaintsPolicy"):
        if policy in constraint and constraint[policy] not in ("Honor", "Ignore"):
            errors.append(not_supported(f"{path}.{policy}", constraint[policy], ("Honor", "Ignore")))
    selector = constraint.get("labelSelector")
    keys = constraint.get("matchLabelKeys")
    if options.repeated_spread_label_keys:
        errors += _legacy_label_keys(keys, selector, f"{path}.matchLabelKeys")
    else:
        errors += validate_label_keys(keys, None, selector, path)
    if not options.invalid_spread_selectors:
        errors += validate_selector(selector, f"{path}.labelSelector")
    return errors


def validate_label_keys(
    match: list[str] | None, mismatch: list[str] | None, selector: Object | None, path: str
) -> Errors:
    """Validates matchLabelKeys and mismatchLabelKeys. Keys of the pod's labels are already merged into `selector`,
    so a key that appears there twice was in both."""
    if not match and not mismatch:
        return []
    errors: Errors = []
    for field, keys in (("matchLabelKeys", match), ("mismatchLabelKeys", mismatch)):
        if keys and selector is None:
            errors.append(forbidden(f"{path}.{field}", _WITHOUT_SELECTOR))
        elif keys:
            for index, key in enumerate(keys):
                errors += validate_label_name(key, f"{path}.{field}[{index}]")
    match = match or []
    if selector is not None:
        positions = {key: index for index, key in enumerate(match)}
        seen = set(selector.get("matchLabels") or ())
        for expression in selector.get("matchExpressions") or ():
            key = expression.get("key", "")
            if key in positions and key in seen:
                errors.append(invalid(f"{path}[{positions[key]}]", key, _IN_BOTH))
            seen.add(key)
    excluded = frozenset(mismatch or ())
    for index, key in enumerate(match):
        if key in excluded:
            why = "exists in both matchLabelKeys and mismatchLabelKeys"
            errors.append(invalid(f"{path}.matchLabelKeys[{index}]", key, why))
    return errors


def _legacy_label_keys(keys: list[str] | None, selector: Object | None, path: str) -> Errors:
    """Rule from the time before label keys were merged into the selector."""
    if not keys:
        return []
    errors: Errors = [] if selector is not None else [forbidden(path, _WITHOUT_SELECTOR)]
    selector = selector or {}
    taken = {*(selector.get("matchLabels") or ())}
    taken.update(expression.get("key", "") for expression in selector.get("matchExpressions") or ())
    for index, key in enumerate(keys):
        errors += validate_label_name(key, f"{path}[{index}]")
        if key in taken:
            errors.append(invalid(f"{path}[{index}]", key, _IN_BOTH))
    return errors
