"""ValidatingAdmissionPolicyBinding: binds a policy to resources, to parameters and to validationActions."""

from __future__ import annotations

from kubist.api.kinds.admissionregistration.policies import BindingStrategy, validate_binding
from kubist.api.kinds.shared.values import repeats
from kubist.api.resources.context import Context
from kubist.api.resources.strategy import Errors
from kubist.model.meta import fields
from kubist.model.meta.object import Object

_ACTIONS = ("Audit", "Deny", "Warn")


class ValidatingAdmissionPolicyBindingStrategy(BindingStrategy):
    policies = "validatingadmissionpolicies"

    def validate(self, ctx: Context, new: Object, old: Object | None) -> Errors:
        spec = new["spec"]
        return validate_binding(spec) + _validate_actions(spec.get("validationActions") or [])


def _validate_actions(actions: list[str]) -> Errors:
    path = "spec.validationActions"
    errors: Errors = []
    repeated = frozenset(repeats(actions))
    for index, action in enumerate(actions):
        if action not in _ACTIONS:
            errors.append(fields.not_supported(f"{path}[{index}]", action, _ACTIONS))
        if index in repeated:
            errors.append(fields.duplicate(f"{path}[{index}]", action))
    if "Deny" in actions and "Warn" in actions:
        why = (
            "must not contain both Deny and Warn (repeating the same validation failure information in the "
            "API response and headers serves no purpose)"
        )
        errors.append(fields.invalid(path, actions, why))
    if not actions:
        errors.append(fields.required(path, "at least one validation action is required"))
    return errors


strategy = ValidatingAdmissionPolicyBindingStrategy()
