"""MutatingAdmissionPolicyBinding: binds a mutating policy to resources and to parameters."""

from __future__ import annotations

from kubist.api.kinds.admissionregistration.matching import validate_mutating_operations
from kubist.api.kinds.admissionregistration.policies import BindingStrategy, validate_binding
from kubist.api.resources.context import Context
from kubist.api.resources.strategy import Errors
from kubist.model.meta.object import Object


class MutatingAdmissionPolicyBindingStrategy(BindingStrategy):
    policies = "mutatingadmissionpolicies"

    def validate(self, ctx: Context, new: Object, old: Object | None) -> Errors:
        spec = new["spec"]
        return validate_binding(spec) + validate_mutating_operations(
            spec.get("matchResources"), "spec.matchResources"
        )


strategy = MutatingAdmissionPolicyBindingStrategy()
