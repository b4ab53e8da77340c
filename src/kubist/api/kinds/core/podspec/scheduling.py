"""Validation of tolerations, scheduling gates and readiness gates."""

from __future__ import annotations

from orjson import dumps

from kubist.base.caching import skip_validated
from kubist.model.meta import names
from kubist.model.meta.fields import FieldError, duplicate, invalid, not_supported
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
