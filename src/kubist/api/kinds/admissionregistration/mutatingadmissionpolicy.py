"""MutatingAdmissionPolicy: expressions that change an object before it is stored."""

from __future__ import annotations

from typing import Literal

from kubist.api.kinds.admissionregistration import expressions
from kubist.api.kinds.admissionregistration.expressions import Environment
from kubist.api.kinds.admissionregistration.matching import (
    REINVOCATION_POLICIES,
    one_of,
    validate_mutating_operations,
)
from kubist.api.kinds.admissionregistration.policies import (
    PolicyStrategy,
    validate_conditions,
    validate_matching,
    validate_variables,
)
from kubist.api.resources.context import Context
from kubist.api.resources.strategy import Errors
from kubist.model.meta import fields
from kubist.model.meta.object import Object

_PATCHES: dict[str, tuple[Literal["ApplyConfiguration", "JSONPatch"], str, str]] = {
    "ApplyConfiguration": ("ApplyConfiguration", "applyConfiguration", "jsonPatch"),
    "JSONPatch": ("JSONPatch", "jsonPatch", "applyConfiguration"),
}
"""Patch type → result type, field with the expression, field that must then be absent."""


class MutatingAdmissionPolicyStrategy(PolicyStrategy):
    def validate(self, ctx: Context, new: Object, old: Object | None) -> Errors:
        return _validate(new["spec"], old["spec"] if old is not None else None)


def _validate(spec: Object, old: Object | None) -> Errors:
    errors = validate_matching(spec)
    errors += validate_mutating_operations(spec.get("matchConstraints"), "spec.matchConstraints")
    errors += validate_conditions(spec, old)
    params = spec.get("paramKind") is not None
    variable_errors, environment = validate_variables(
        spec, Environment(params=params, composed=bool(spec.get("variables")))
    )
    errors += variable_errors
    mutations = spec.get("mutations") or []
    if not mutations:
        errors.append(fields.required("spec.mutations", "mutations must contain at least one item"))
    writing = Environment(params=params, patch_types=True, variables=environment.variables)
    for index, mutation in enumerate(mutations):
        errors += _validate_mutation(mutation, f"spec.mutations[{index}]", writing)
    policy = spec.get("reinvocationPolicy") or None
    return errors + one_of(policy, "spec.reinvocationPolicy", REINVOCATION_POLICIES, needed=True)


def _validate_mutation(mutation: Object, path: str, environment: Environment) -> Errors:
    kind = mutation.get("patchType", "")
    if not kind:
        return [fields.required(f"{path}.patchType")]
    if kind not in _PATCHES:
        return [fields.not_supported(f"{path}.patchType", kind, tuple(_PATCHES))]
    result, name, other = _PATCHES[kind]
    errors = []
    patch = mutation.get(name)
    if patch is None:
        errors.append(fields.required(f"{path}.{name}", f"must be specified when patchType is {kind}"))
    else:
        expression = patch.get("expression", "").strip()
        if not expression:
            errors.append(fields.required(f"{path}.{name}.expression"))
        else:
            errors += expressions.validate(expression, f"{path}.{name}.expression", environment, result)
    if mutation.get(other) is not None:
        why = f"must not be specified when patchType is {kind}"
        errors.append(fields.invalid(f"{path}.{other}", f"{{{other}}}", why))
    return errors


strategy = MutatingAdmissionPolicyStrategy()
