"""Nodes of a parsed template. `run` writes output; `value` computes."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Protocol

from kubist.cluster.simulation.stages.gotemplate import values
from kubist.cluster.simulation.stages.gotemplate.environment import Environment
from kubist.cluster.simulation.stages.gotemplate.function import Function
from kubist.cluster.simulation.stages.limits import MAX_DEPTH, MAX_SIZE, Budget, StageError


class State:
    """Output, variables and budget of one rendering."""

    __slots__ = ("budget", "data", "depth", "environment", "named", "output", "size", "variables")

    def __init__(self, data: Any, environment: Environment, named: Mapping[str, Block]) -> None:
        self.data = data
        self.environment = environment
        self.named = named
        self.output: list[str] = []
        self.size = 0
        self.budget = Budget()
        self.variables: list[tuple[str, Any]] = [("$", data)]
        self.depth = 0

    def write(self, text: str) -> None:
        self.size += len(text)
        if self.size > MAX_SIZE:
            raise StageError(f"the output has more than {MAX_SIZE} characters")
        self.output.append(text)

    def assign(self, name: str, value: Any) -> None:
        for at in range(len(self.variables) - 1, -1, -1):
            if self.variables[at][0] == name:
                self.variables[at] = (name, value)
                return
        raise StageError(f"undefined variable {name}")

    def lookup(self, name: str) -> Any:
        for known, value in reversed(self.variables):
            if known == name:
                return value
        raise StageError(f"undefined variable {name}")


class Leave(Exception):
    """`break` or `continue`."""

    def __init__(self, again: bool) -> None:
        self.again = again


class Node(Protocol):
    def run(self, state: State, dot: Any) -> None: ...


class Operand(Protocol):
    def value(self, state: State, dot: Any) -> Any: ...


class Block:
    """Nodes in order. Variables that they declare end with the block."""

    def __init__(self, nodes: list[Node]) -> None:
        self.nodes = nodes

    def run(self, state: State, dot: Any) -> None:
        mark = len(state.variables)
        try:
            for node in self.nodes:
                node.run(state, dot)
        finally:
            del state.variables[mark:]


class Text:
    def __init__(self, text: str) -> None:
        self.text = text

    def run(self, state: State, _dot: Any) -> None:
        state.budget.spend()
        state.write(self.text)


class Dot:
    def value(self, _state: State, dot: Any) -> Any:
        return dot


class Constant:
    def __init__(self, constant: Any) -> None:
        self.constant = constant

    def value(self, _state: State, _dot: Any) -> Any:
        return self.constant


class Variable:
    def __init__(self, name: str) -> None:
        self.name = name

    def value(self, state: State, _dot: Any) -> Any:
        return state.lookup(self.name)


class Fields:
    """`.a.b` of an operand."""

    def __init__(self, target: Operand, names: list[str]) -> None:
        self.target = target
        self.names = names

    def value(self, state: State, dot: Any) -> Any:
        found = self.target.value(state, dot)
        for name in self.names:
            state.budget.spend()
            found = values.field(found, name)
        return found


class Call:
    """Function with arguments. `and` and `or` stop at the argument that decides."""

    def __init__(self, name: str, function: Function | None, arguments: list[Operand]) -> None:
        self.name = name
        self.function = function
        self.arguments = arguments

    def value(self, state: State, dot: Any, *piped: Any) -> Any:
        state.budget.spend()
        if self.name in ("and", "or"):
            return self._decide(state, dot, piped)
        arguments = [*(argument.value(state, dot) for argument in self.arguments), *piped]
        if self.function is None:
            function = state.environment.functions.get(self.name)
            if function is None:
                raise StageError(f"the function {self.name} is not available for this resource")
            try:
                return function(*arguments)
            except TypeError:
                raise StageError(f"{self.name}: wrong number or type of arguments") from None
        return self.function.call(state, arguments)

    def _decide(self, state: State, dot: Any, piped: tuple[Any, ...]) -> Any:
        found: Any = None
        for argument in self.arguments:
            found = argument.value(state, dot)
            if values.truth(found) == (self.name == "or"):
                return found
        if not self.arguments and not piped:
            raise StageError(f"{self.name}: an argument is missing")
        return piped[0] if piped else found


class Pipeline:
    """Commands that hand their value to the next one, and the variables that get the last value."""

    def __init__(self, commands: list[Operand], names: list[str], declares: bool) -> None:
        self.commands = commands
        self.names = names
        self.declares = declares

    def value(self, state: State, dot: Any) -> Any:
        state.budget.spend()
        found = self.commands[0].value(state, dot)
        for command in self.commands[1:]:
            assert isinstance(command, Call)
            found = command.value(state, dot, found)
        for name in self.names:
            if self.declares:
                state.variables.append((name, found))
            else:
                state.assign(name, found)
        return found


class Print:
    def __init__(self, line: int, pipeline: Pipeline) -> None:
        self.line = line
        self.pipeline = pipeline

    def run(self, state: State, dot: Any) -> None:
        try:
            found = self.pipeline.value(state, dot)
            if not self.pipeline.names:
                state.budget.spend_on(found)
                state.write(values.printed(found))
        except StageError as error:
            raise located(error, self.line) from None


class Branch:
    """`if` and `with`."""

    def __init__(
        self, line: int, pipeline: Pipeline, then: Block, otherwise: Block | None, moves: bool
    ) -> None:
        self.line = line
        self.pipeline = pipeline
        self.then = then
        self.otherwise = otherwise
        self.moves = moves
        """`with`: the value becomes the dot."""

    def run(self, state: State, dot: Any) -> None:
        mark = len(state.variables)
        try:
            found = self.pipeline.value(state, dot)
        except StageError as error:
            raise located(error, self.line) from None
        try:
            if values.truth(found):
                self.then.run(state, found if self.moves else dot)
            elif self.otherwise is not None:
                self.otherwise.run(state, dot)
        finally:
            del state.variables[mark:]


class Range:
    def __init__(
        self,
        line: int,
        pipeline: Pipeline,
        names: list[str],
        declares: bool,
        body: Block,
        otherwise: Block | None,
    ) -> None:
        self.line = line
        self.pipeline = pipeline
        self.names = names
        self.declares = declares
        self.body = body
        self.otherwise = otherwise

    def run(self, state: State, dot: Any) -> None:
        mark = len(state.variables)
        try:
            pairs = _pairs(self.pipeline.value(state, dot), state)
        except StageError as error:
            raise located(error, self.line) from None
        if not pairs and self.otherwise is not None:
            self.otherwise.run(state, dot)
        try:
            for key, item in pairs:
                state.budget.spend()
                self._set(state, key, item)
                try:
                    self.body.run(state, item)
                except Leave as leave:
                    if not leave.again:
                        break
                finally:
                    del state.variables[mark:]
        finally:
            del state.variables[mark:]

    def _set(self, state: State, key: Any, item: Any) -> None:
        given = (item,) if len(self.names) == 1 else (key, item)
        for name, value in zip(self.names, given, strict=False):
            if self.declares:
                state.variables.append((name, value))
            else:
                state.assign(name, value)


def _pairs(value: Any, state: State) -> list[tuple[Any, Any]]:
    """Keys and items that `range` goes through."""
    if value is None:
        return []
    if isinstance(value, list):
        return list(enumerate(value))
    if isinstance(value, dict):
        return [(key, value[key]) for key in sorted(value)]
    if isinstance(value, int) and not isinstance(value, bool):
        state.budget.spend(max(value, 0))
        return [(number, number) for number in range(value)]
    raise StageError(f"range cannot go through {values.described(value)}")


class Leaving:
    """`break` or `continue`."""

    def __init__(self, again: bool) -> None:
        self.again = again

    def run(self, _state: State, _dot: Any) -> None:
        raise Leave(self.again)


class Include:
    """`template`: runs a named template with its own variables."""

    def __init__(self, line: int, name: str, pipeline: Pipeline | None) -> None:
        self.line = line
        self.name = name
        self.pipeline = pipeline

    def run(self, state: State, dot: Any) -> None:
        block = state.named.get(self.name)
        if block is None:
            raise located(StageError(f"the template {self.name!r} is not defined"), self.line)
        found = None if self.pipeline is None else self.pipeline.value(state, dot)
        state.depth += 1
        if state.depth > MAX_DEPTH:
            raise StageError(f"templates include each other more than {MAX_DEPTH} levels deep")
        variables, state.variables = state.variables, [("$", found)]
        try:
            block.run(state, found)
        finally:
            state.variables = variables
            state.depth -= 1


def located(error: StageError, line: int) -> StageError:
    text = str(error)
    return error if text.startswith("line ") else StageError(f"line {line}: {text}")
