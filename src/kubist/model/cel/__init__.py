"""Kubernetes' CEL: compiles, type-checks, estimates and evaluates expressions.

    program = cel.compile("object.spec.replicas <= params.limit", Environment({"object": DYN, "params": DYN}))
    program.evaluate({"object": {...}, "params": {...}}, budget=1_000_000)

`compile(expression, environment)` returns a `Program` or raises `CompileError`. `Program.type` is the type of
its value. `Program.uses` are the variables that it refers to. `Program.cost(size_of)` estimates its cost from
the maximum sizes of values: `size_of(path) -> int | None`, where a path is a variable, then field names,
`@items`, `@keys`, `@values`. `Program.evaluate(variables, budget)` returns `(value, cost)`. It raises
`EvaluationError` (with `.cost`) if the evaluation fails, and `CostExceeded` beyond the budget. On an event
loop it raises `offload.Lengthy` if it would block the loop for too long; evaluate it again with `await
offload.elsewhere(…)`.

Variables are plain JSON values. Values of an `object_type` with a schema are converted by that schema
(timestamps, bytes). An environment may add functions: `Environment(variables, functions={"name": (overloads,
implementation)})` with `declarations.Overload(id, argument types, result type, member)`. The implementation
takes the arguments, a method's target first. Opaque values of such functions are any Python objects; declare
their type as `Type("opaque", "kubernetes.Authorizer")`. A variable named `Name{}` declares an object type
that expressions may construct.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from typing import TYPE_CHECKING, Any

from kubist.base.offload import SLICE, Lengthy, on_loop
from kubist.model.cel.ast import Call, Ident, Literal, Node, Select, children
from kubist.model.cel.declarations import Overload
from kubist.model.cel.errors import CompileError, CostExceeded, EvaluationError, NoSuchOverload
from kubist.model.cel.types import BOOL, DYN, INT, STRING, Type, list_of, map_of, object_type, optional_of
from kubist.model.cel.values import Optional

if TYPE_CHECKING:
    from kubist.model.cel.call_costs import Range
    from kubist.model.cel.estimate import SizeOf

PER_CALL_LIMIT = 1_000_000
"""Cost limit of one evaluation."""
BUDGET = 10_000_000
"""Cost limit of all evaluations for one object."""

__all__ = [
    "BOOL",
    "BUDGET",
    "DYN",
    "INT",
    "PER_CALL_LIMIT",
    "STRING",
    "CompileError",
    "CostExceeded",
    "Environment",
    "EvaluationError",
    "NoSuchOverload",
    "Optional",
    "Overload",
    "Program",
    "Type",
    "compile",
    "list_of",
    "map_of",
    "object_type",
    "optional_of",
]

Function = tuple[Iterable[Overload], Callable[..., Any]]


class Environment:
    """Declared variables, and functions in addition to the standard ones."""

    def __init__(
        self,
        variables: Mapping[str, Type],
        functions: Mapping[str, Function] | None = None,
        *,
        bindings: bool = False,
        aside: bool = False,
    ) -> None:
        self.variables = dict(variables)
        self.bindings = bindings
        """Whether expressions may use the macro `cel.bind`."""
        self.aside = aside
        """Whether the caller of `compile` retries in the worker after `offload.Lengthy`."""
        self.overloads = {name: tuple(function[0]) for name, function in (functions or {}).items()}
        self.implementations = {name: function[1] for name, function in (functions or {}).items()}


class Program:
    """A compiled expression."""

    __slots__ = ("_closure", "_frame", "expression", "node", "type", "uses")

    def __init__(self, expression: str, environment: Environment) -> None:
        # Saves start-up time: a server without expressions does not load the compiler.
        from kubist.model.cel.checker import Checker
        from kubist.model.cel.interpreter import compile_node
        from kubist.model.cel.logic import Frame
        from kubist.model.cel.parser import parse

        self.expression = expression
        self._frame = Frame
        checker = Checker(environment.variables, environment.overloads, aside=environment.aside)
        try:
            self.node = parse(expression, bindings=environment.bindings)
            self.type = checker.check(self.node)
        except RecursionError:
            raise CompileError("expression recursion limit exceeded") from None
        self.uses = frozenset(checker.used)
        self._closure = compile_node(self.node, environment.implementations)

    def cost(self, size_of: SizeOf | None = None) -> Range:
        """Estimated minimum and maximum cost of an evaluation."""
        # Saves start-up time, as above.
        from kubist.model.cel.estimate import estimate

        return estimate(self.node, size_of or (lambda _path: None))

    def selects(self, variable: str, field: str) -> bool:
        """Whether the expression selects a field of a variable by name: `variable.field` or `variable.?field`."""

        def is_selection(node: Node) -> bool:
            if isinstance(node, Select):
                operand, named = node.operand, node.field
            elif isinstance(node, Call) and node.function == "_?._" and isinstance(node.args[1], Literal):
                operand, named = node.args[0], node.args[1].value
            else:
                return False
            return isinstance(operand, Ident) and operand.name == variable and named == field

        nodes = [self.node]
        while nodes:
            node = nodes.pop()
            if is_selection(node):
                return True
            nodes += children(node)
        return False

    def evaluate(self, variables: dict[str, Any], budget: int = PER_CALL_LIMIT) -> tuple[Any, int]:
        """Value and cost. On an event loop, an evaluation that costs more than SLICE raises `Lengthy`."""
        limit = SLICE if budget > SLICE and on_loop() is not None else budget
        frame = self._frame(variables, limit)
        try:
            value = self._closure(frame)
            if frame.cost > limit:
                raise CostExceeded
        except EvaluationError as error:
            error.cost = frame.cost  # type: ignore[attr-defined]
            raise
        except CostExceeded:
            if limit < budget:
                raise Lengthy from None
            raise
        return value, frame.cost


def compile(expression: str, environment: Environment) -> Program:
    return Program(expression, environment)
