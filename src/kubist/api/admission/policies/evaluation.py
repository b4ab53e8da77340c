"""Evaluation of the expressions of one policy (or webhook) for one request. Variables are evaluated on first use.
All expressions share one cost budget."""

from __future__ import annotations

from typing import Any

from kubist.api.admission.admission_request import AdmissionRequest, Target
from kubist.api.admission.policies.authorizer import Authorizer, Decisions, ResourceCheck, Undecided
from kubist.api.kinds.admissionregistration import expressions
from kubist.api.kinds.admissionregistration.expressions import Environment, Result
from kubist.base.offload import SLICE, Lengthy, elsewhere
from kubist.model.cel import BUDGET, PER_CALL_LIMIT, CompileError, CostExceeded, EvaluationError, Program
from kubist.model.cel.ast import Node
from kubist.model.meta.object import Object

OUT_OF_BUDGET = "validation failed due to running out of cost budget, no further validation rules will be run"
_NAMESPACE_METADATA = (
    "name",
    "generateName",
    "namespace",
    "uid",
    "resourceVersion",
    "generation",
    "creationTimestamp",
    "deletionTimestamp",
    "deletionGracePeriodSeconds",
    "labels",
    "annotations",
    "finalizers",
)


class Failed(Exception):
    """Error of an expression. The text is shown to the client."""


class OutOfBudget(Failed):
    """The expressions together exceed the cost budget."""

    def __init__(self) -> None:
        super().__init__(OUT_OF_BUDGET)


class Expression:
    """CEL expression, compiled on first use."""

    __slots__ = ("_environment", "_program", "_result", "text")

    def __init__(self, text: str, environment: Environment, result: Result) -> None:
        self.text = text
        self._environment = environment
        self._result = result
        self._program: Program | None = None

    @property
    def node(self) -> Node:
        """Syntax tree of an evaluated expression."""
        assert self._program is not None
        return self._program.node

    def evaluate(self, variables: Object, budget: int) -> tuple[Any, int]:
        if self._program is None:
            try:
                self._program = expressions.compile(self.text, self._environment, self._result)
            except CompileError as error:
                raise Failed(f"compilation error: {error.message}") from None
        return self._program.evaluate(variables, min(budget, PER_CALL_LIMIT))


class _Variables(Object):
    """`variables`: each variable is evaluated when an expression first uses it."""

    def __init__(self, evaluation: Evaluation, defined: dict[str, Expression]) -> None:
        super().__init__()
        self._evaluation = evaluation
        self._defined = defined

    def __contains__(self, name: object) -> bool:
        return name in self._defined

    def __missing__(self, name: str) -> Any:
        expression = self._defined[name]
        try:
            value = self[name] = self._evaluation.spend(expression)
        except (EvaluationError, CostExceeded) as error:
            raise EvaluationError(f'composited variable "{name}" fails to evaluate: {error}') from None
        except Failed as error:
            raise EvaluationError(f'composited variable "{name}" fails to compile: {error}') from None
        return value


class Evaluation:
    """Values of a request for its expressions, and the remaining cost budget."""

    def __init__(
        self, decisions: Decisions, known: Object, variables: dict[str, Expression] | None = None
    ) -> None:
        self.budget = BUDGET
        self._decisions = decisions
        self._known = {**known, "variables": _Variables(self, variables or {})}

    @classmethod
    async def of(
        cls,
        request: AdmissionRequest,
        target: Target,
        decisions: Decisions,
        *,
        params: Object | None = None,
        namespace: Object | None = None,
        variables: dict[str, Expression] | None = None,
    ) -> Evaluation:
        """Evaluation of a request as `target`."""
        ctx, resource = request.ctx, target.resource
        new, old = await request.see(target)
        identity = {"subresource": request.subresource, "namespace": request.namespace, "name": request.name}
        check = ResourceCheck(decisions, ctx.user, resource.group, resource.resource, identity)
        known: Object = {
            "object": new,
            "oldObject": old,
            "request": request.request(target),
            "namespaceObject": _shown_namespace(namespace),
            "params": params,
            "authorizer": Authorizer(decisions, ctx.user, check),
        }
        return cls(decisions, known, variables)

    def spend(self, expression: Expression) -> Any:
        """Value of the expression. Its cost is charged to the budget."""
        try:
            value, cost = expression.evaluate(self._known, self.budget)
        except EvaluationError as error:
            self.budget -= getattr(error, "cost", 0)
            raise
        self.budget -= cost
        return value

    async def _spend_in_turns(self, expression: Expression) -> Any:
        left = self.budget
        if BUDGET - left < SLICE:
            try:
                return self.spend(expression)
            except Lengthy:
                self.budget = left
        return await elsewhere(self.spend, expression)

    async def value(self, expression: Expression) -> Any:
        """Value of the expression, after all authorizer decisions are made. Raises Failed on an error."""
        while True:
            try:
                return await self._spend_in_turns(expression)
            except Undecided as undecided:
                await self._decisions.decide(undecided.question)
            except EvaluationError as error:
                raise Failed(f"expression '{expression.text}' resulted in error: {error}") from None
            except CostExceeded as error:
                if self.budget < PER_CALL_LIMIT:
                    raise OutOfBudget from None
                raise Failed(f"expression '{expression.text}' resulted in error: {error}") from None


def _shown_namespace(namespace: Object | None) -> Object | None:
    """Namespace with the fields that expressions may see."""
    if namespace is None:
        return None
    metadata = {
        name: namespace["metadata"][name] for name in _NAMESPACE_METADATA if name in namespace["metadata"]
    }
    view = {"metadata": metadata}
    view |= {part: namespace[part] for part in ("spec", "status") if part in namespace}
    return view
