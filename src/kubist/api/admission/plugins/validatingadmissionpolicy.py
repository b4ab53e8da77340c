"""ValidatingAdmissionPolicy: evaluates validating policies, which deny, warn or audit. Each validation has a message
and a reason."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING

import orjson

from kubist.api.admission.admission_request import AdmissionRequest, Target
from kubist.api.admission.matching import exempt
from kubist.api.admission.plugin import CONNECT, CREATE, DELETE, UPDATE, Pending, Plugin, forbidden
from kubist.api.admission.policies.authorizer import Decisions
from kubist.api.admission.policies.definitions import (
    Binding,
    Bound,
    Misconfigured,
    Policy,
    PolicyBindings,
    collect_params,
    find_param_kind,
)
from kubist.api.admission.policies.evaluation import Evaluation, Expression, Failed, OutOfBudget
from kubist.api.kinds.admissionregistration.expressions import Environment
from kubist.api.resources.context import Context
from kubist.model.meta import status
from kubist.model.meta.object import Object

if TYPE_CHECKING:
    from kubist.api.object_store.registry import Registry


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
            resource = find_param_kind(self._ctx, policy.param_kind)
        except (Misconfigured, status.APIError) as error:
            self._misconfigured(policy, None, f"failed to configure policy: {error}")
            return
        annotations: dict[str, list[str]] = {}
        for binding in bindings:
            try:
                if binding.match(self._request) is None:
                    continue
                parameters = collect_params(self._ctx, resource, binding.param_ref, self._request.namespace)
            except (Misconfigured, status.APIError) as error:
                self._misconfigured(policy, binding, f"failed to configure binding: {error}")
                continue
            for parameter in parameters:
                await self._judge(policy, binding, target, parameter, annotations)
        for key, values in annotations.items():
            self._ctx.audit_annotations[f"{policy.name}/{key}"] = ", ".join(values)

    async def _judge(
        self,
        policy: ValidatingPolicy,
        binding: Binding,
        target: Target,
        parameter: Object | None,
        annotations: dict[str, list[str]],
    ) -> None:
        evaluation = await Evaluation.of(
            self._request,
            target,
            self._decisions,
            params=parameter,
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


_LONGEST_MESSAGE = 5 * 1024


@dataclass(slots=True, frozen=True)
class Denial:
    """Failed validation."""

    index: int
    message: str
    reason: str = ""


@dataclass(slots=True)
class Outcome:
    """Result of a policy for one request and one parameter."""

    denials: list[Denial] = field(default_factory=list)
    annotations: list[tuple[str, str]] = field(default_factory=list)
    errors: list[str] = field(default_factory=list)
    """Errors of audit annotations. They reject the request regardless of the binding's validationActions."""


class Validation:
    __slots__ = ("expression", "message", "message_expression", "reason")

    def __init__(self, spec: Object, environment: Environment, message_environment: Environment) -> None:
        self.expression = Expression(spec.get("expression", ""), environment, "bool")
        self.message: str = spec.get("message", "").strip()
        self.reason: str = spec.get("reason", "Invalid")
        text = spec.get("messageExpression", "")
        self.message_expression = Expression(text, message_environment, "string") if text else None

    async def failure_message(self, evaluation: Evaluation) -> str:
        """Message of the failed validation: the value of messageExpression if it is a single line, else the
        message."""
        if self.message_expression is not None:
            try:
                text = await evaluation.value(self.message_expression)
            except OutOfBudget:
                raise
            except Failed:
                text = None
            if isinstance(text, str):
                text = text.strip()
                if text and "\n" not in text and len(text.encode()) <= _LONGEST_MESSAGE:
                    return text
        return self.message or f"failed expression: {self.expression.text.strip()}"


class ValidatingPolicy(Policy):
    def __init__(self, policy: Object) -> None:
        super().__init__(policy)
        spec = policy.get("spec") or {}
        message_environment = self.environment.without_authorizer()
        self.validations = [
            Validation(entry, self.environment, message_environment)
            for entry in spec.get("validations") or ()
        ]
        self.annotations = [
            (a.get("key", ""), Expression(a.get("valueExpression", ""), self.environment, "string or null"))
            for a in spec.get("auditAnnotations") or ()
        ]

    async def validate(self, evaluation: Evaluation) -> Outcome:
        outcome = Outcome()
        try:
            if not await self.conditions.hold(evaluation):
                return outcome
            for index, validation in enumerate(self.validations):
                denial = await self._try(evaluation, index, validation)
                if denial is not None:
                    outcome.denials.append(denial)
            await self._annotate(evaluation, outcome)
        except Failed as error:
            outcome.denials = [] if self.ignores_failure else [Denial(0, str(error))]
        return outcome

    async def _try(self, evaluation: Evaluation, index: int, validation: Validation) -> Denial | None:
        try:
            if await evaluation.value(validation.expression) is True:
                return None
        except OutOfBudget:
            raise
        except Failed as error:
            return None if self.ignores_failure else Denial(index, str(error))
        try:
            return Denial(index, await validation.failure_message(evaluation), validation.reason)
        except OutOfBudget as error:
            return None if self.ignores_failure else Denial(index, f"failed messageExpression: {error}")

    async def _annotate(self, evaluation: Evaluation, outcome: Outcome) -> None:
        for key, expression in self.annotations:
            try:
                value = await evaluation.value(expression)
            except OutOfBudget:
                raise
            except Failed as error:
                if not self.ignores_failure:
                    outcome.errors.append(str(error))
                continue
            if isinstance(value, str) and value.strip():
                outcome.annotations.append((key, value.strip()))
