"""ValidatingAdmissionPolicy: evaluates validating policies, which reject, warn or audit."""

from __future__ import annotations

from typing import TYPE_CHECKING

import orjson

from kubist.api.admission.admission_request import AdmissionRequest, Target
from kubist.api.admission.matching import exempt
from kubist.api.admission.plugin import CONNECT, CREATE, DELETE, UPDATE, Pending, Plugin, forbidden
from kubist.api.admission.policies import params
from kubist.api.admission.policies.authorizer import Decisions
from kubist.api.admission.policies.definitions import Binding, Bound, PolicyBindings
from kubist.api.admission.policies.evaluation import Evaluation
from kubist.api.admission.policies.params import Misconfigured
from kubist.api.admission.policies.validating import Denial, ValidatingPolicy
from kubist.api.resources.context import Context
from kubist.model.meta import status
from kubist.model.meta.object import Object

if TYPE_CHECKING:
    from kubist.api.objectstore.registry import Registry

CODES = {"Forbidden": 403, "Unauthorized": 401, "RequestEntityTooLarge": 413}
FAILURES = "validation.policy.admission.k8s.io/validation_failure"
LONGEST_ANNOTATION = 10 * 1024


class ValidatingAdmissionPolicy(Plugin):
    operations = (CREATE, UPDATE, DELETE, CONNECT)

    def start(self, registry: Registry) -> None:
        policies, bindings = "validatingadmissionpolicies", "validatingadmissionpolicybindings"
        self._definitions = PolicyBindings(registry, policies, bindings, ValidatingPolicy)
        self.followed = self._definitions.bindings
        self._resources = registry.resources

    def validate(self, ctx: Context, new: Object | None, old: Object | None) -> Pending:
        bound = self._definitions.bound()
        if not bound or exempt(ctx.resource.kind, ctx.resource.group):
            return None
        return self._try(bound, ctx, new, old)

    async def _try(
        self, bound: Bound[ValidatingPolicy], ctx: Context, new: Object | None, old: Object | None
    ) -> None:
        trial = _Trial(AdmissionRequest(ctx, new, old, self._resources, settled=True))
        for policy, bindings in bound:
            await trial.hold(policy, bindings)
        if trial.refusals:
            raise trial.refusals[0]


class _Trial:
    """Evaluation of all policies for one request."""

    def __init__(self, request: AdmissionRequest) -> None:
        self._request = request
        self._ctx = request.ctx
        self._decisions = Decisions(request.ctx)
        self.refusals: list[status.APIError] = []

    async def hold(self, policy: ValidatingPolicy, bindings: list[Binding]) -> None:
        try:
            target = policy.criteria.match(self._request)
            if target is None:
                return
            resource = params.find_kind(self._ctx, policy.param_kind)
        except (Misconfigured, status.APIError) as error:
            self._misconfigured(policy, None, f"failed to configure policy: {error}")
            return
        annotations: dict[str, list[str]] = {}
        for binding in bindings:
            try:
                if binding.match(self._request) is None:
                    continue
                found = params.collect(self._ctx, resource, binding.param_ref, self._request.namespace)
            except (Misconfigured, status.APIError) as error:
                self._misconfigured(policy, binding, f"failed to configure binding: {error}")
                continue
            for given in found:
                await self._judge(policy, binding, target, given, annotations)
        for key, values in annotations.items():
            self._ctx.audit_annotations[f"{policy.name}/{key}"] = ", ".join(values)

    async def _judge(
        self,
        policy: ValidatingPolicy,
        binding: Binding,
        target: Target,
        given: Object | None,
        annotations: dict[str, list[str]],
    ) -> None:
        evaluation = await Evaluation.of(
            self._request,
            target,
            self._decisions,
            params=given,
            namespace=self._request.namespace_object(),
            variables=policy.variables,
        )
        outcome = await policy.validate(evaluation)
        for denial in outcome.denials:
            for action in binding.actions:
                self._act(action, policy, binding, denial)
        for key, value in outcome.annotations:
            values = annotations.setdefault(key, [])
            cut = value[:LONGEST_ANNOTATION]
            if cut not in values:
                values.append(cut)
        for message in outcome.errors:
            self._refuse(policy, binding, message)

    def _act(self, action: str, policy: ValidatingPolicy, binding: Binding, denial: Denial) -> None:
        if action == "Deny":
            self._refuse(policy, binding, denial.message, denial.reason)
        elif action == "Warn":
            what = f"ValidatingAdmissionPolicy '{policy.name}' with binding '{binding.name}'"
            self._ctx.warn(f"Validation failed for {what}: {denial.message}")
        elif action == "Audit":
            failure = {
                "message": denial.message,
                "policy": policy.name,
                "binding": binding.name,
                "expressionIndex": denial.index,
                "validationActions": binding.actions,
            }
            self._ctx.audit_annotations[FAILURES] = orjson.dumps([failure]).decode()

    def _misconfigured(self, policy: ValidatingPolicy, binding: Binding | None, why: str) -> None:
        if not policy.ignores_failure:
            self._refuse(policy, binding, why)

    def _refuse(self, policy: ValidatingPolicy, binding: Binding | None, why: str, reason: str = "") -> None:
        with_binding = f" with binding '{binding.name}'" if binding is not None else ""
        message = f"ValidatingAdmissionPolicy '{policy.name}'{with_binding} denied request: {why}"
        error = forbidden(self._ctx, self._request.new, message)
        error.reason = reason or "Invalid"
        error.code = CODES.get(error.reason, 422)
        assert error.details is not None
        error.details["causes"] = [{"message": message}]
        self.refusals.append(error)
