"""Validating policy: validations with messages and reasons, and audit annotations."""

from __future__ import annotations

from dataclasses import dataclass, field

from kubist.api.admission.policies.definitions import Policy
from kubist.api.admission.policies.evaluation import Evaluation, Expression, Failed, OutOfBudget
from kubist.api.kinds.admissionregistration.expressions import Environment
from kubist.model.meta.object import Object

LONGEST_MESSAGE = 5 * 1024


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
    """Errors of audit annotations. They reject the request independent of the binding's validationActions."""


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
                if text and "\n" not in text and len(text.encode()) <= LONGEST_MESSAGE:
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
