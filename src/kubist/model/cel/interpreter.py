"""Compiles checked trees to closures. A closure takes a frame, returns a value, and adds its cost to the frame."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from kubist.model.cel import runtime_cost
from kubist.model.cel.ast import (
    ACCU,
    Bind,
    Call,
    Comprehension,
    Ident,
    ListNode,
    Literal,
    MapNode,
    Node,
    Select,
    StructNode,
)
from kubist.model.cel.checker import TYPE_NAMES
from kubist.model.cel.conversions import converter
from kubist.model.cel.errors import CostExceeded, EvaluationError, NoSuchOverload
from kubist.model.cel.escaping import unescape
from kubist.model.cel.functions import FUNCTIONS
from kubist.model.cel.libraries import LIBRARIES
from kubist.model.cel.logic import Closure, Extra, Frame, both_of, choice_of, either_of, quantifier, value_or
from kubist.model.cel.types import Type
from kubist.model.cel.values import NONE, Growing, Optional, check_size

VARIABLES = "kubernetes.variables"
"""Type of the variable that holds the values of other expressions."""


def compile_node(node: Node, extra: Extra) -> Closure:
    match node:
        case Literal():
            value = node.value
            return lambda _frame: value
        case Ident():
            return _ident(node)
        case Select():
            return _select(node, extra)
        case Call():
            return _call(node, extra)
        case ListNode():
            return _list(node, extra)
        case MapNode():
            return _map(node, extra)
        case StructNode():
            return _struct(node, extra)
        case Comprehension():
            return _comprehension(node, extra)
        case Bind():
            return _bind(node, extra)
    raise AssertionError("every node is one of these")


def _ident(node: Ident) -> Closure:
    name = node.name
    if node.type.kind == "type" and name in TYPE_NAMES:
        type_ = TYPE_NAMES[name]
        return lambda _frame: type_

    def ident(frame: Frame) -> Any:
        frame.cost += 1
        try:
            return frame.variables[name]
        except KeyError:
            raise EvaluationError(f"no such attribute(s): {name}") from None

    return ident


def _select(node: Select, extra: Extra) -> Closure:
    if node.type.kind == "type":
        type_: Type = node.type.params[0]
        return lambda _frame: type_
    operand = compile_node(node.operand, extra)
    name = field_name(node.operand.type, node.field)
    typed = node.operand.type.kind == "object"  # for object types a null field counts as absent
    if node.test:

        def test(frame: Frame) -> bool:
            value = operand(frame)
            if value.__class__ is Optional:
                value = value.value if value.present else {}
            return isinstance(value, dict) and name in value and not (typed and value[name] is None)

        return test
    convert = converter(_field_type(node.operand.type, node.field))

    def select(frame: Frame) -> Any:
        value = operand(frame)
        frame.cost += 1
        try:
            field = value[name]
        except KeyError:
            raise EvaluationError(f"no such key: {name}") from None
        except TypeError:
            if isinstance(value, Optional):
                return _optional_field(value, name)
            if value is None:
                raise EvaluationError(f"no such key: {name}") from None
            raise NoSuchOverload("select") from None
        if isinstance(value, list):
            raise NoSuchOverload("select")
        if field is None and typed:
            raise EvaluationError(f"no such key: {name}")
        return convert(field) if convert is not None else field

    return select


def _optional_field(value: Any, name: str) -> Optional:
    if isinstance(value, Optional):
        return _optional_field(value.value, name) if value.present else NONE
    if not isinstance(value, dict):
        raise NoSuchOverload("select")
    return Optional(value[name], True) if name in value else NONE


def _field_type(type_: Type, name: str) -> Type | None:
    """Type of a field whose value may have to be converted. Fields of `variables` are results of expressions, which are
    CEL values already."""
    if type_.kind != "object" or type_.name == VARIABLES:
        return None
    return type_.fields.get(name) or type_.fields.get(f"__{name}__")


def field_name(type_: Type, name: str) -> str:
    """Key of a field in the object. Field names of object types are unescaped."""
    if type_.kind == "opaque" and type_.params:
        type_ = type_.params[0]
    return unescape(name) if type_.kind == "object" else name


def _call(node: Call, extra: Extra) -> Closure:
    name = node.function
    args = ([node.target] if node.target is not None else []) + node.args
    if name == "_?._":
        return _optional_select(node, extra)
    compiled = [compile_node(arg, extra) for arg in args]
    match name:
        case "_&&_":
            return both_of(compiled[0], compiled[1])
        case "_||_":
            return either_of(compiled[0], compiled[1])
        case "_?_:_":
            return choice_of(*compiled)
        case "or" | "orValue" if node.overloads and node.overloads[0].startswith("optional_or"):
            return value_or(name, compiled[0], compiled[1])
    function = extra.get(name) or FUNCTIONS.get(name) or LIBRARIES[name]
    cost = runtime_cost.of(name, node.overloads)
    if name in runtime_cost.QUADRATIC and name not in extra:
        function = _limited(function, cost)
    return _apply(function, compiled, cost, name)


def _apply(function: Callable[..., Any], args: list[Closure], cost: Any, name: str) -> Closure:
    def finish(frame: Frame, values: tuple[Any, ...]) -> Any:
        try:
            result = function(*values)
        except (TypeError, AttributeError):
            raise NoSuchOverload(name) from None
        except (EvaluationError, CostExceeded):
            raise
        except (OverflowError, ValueError) as error:
            raise EvaluationError(str(error)) from None
        frame.cost += 1 if cost is None else cost(values, result)
        if frame.cost > frame.limit:
            raise CostExceeded
        return result

    if len(args) == 1:
        only = args[0]
        return lambda frame: finish(frame, (only(frame),))
    if len(args) == 2:
        first, second = args
        return lambda frame: finish(frame, (first(frame), second(frame)))
    return lambda frame: finish(frame, tuple([arg(frame) for arg in args]))


def _limited(function: Callable[..., Any], cost: Any) -> Callable[..., Any]:
    """The function, unless the call alone would cost more than any evaluation may."""

    def limited(*values: Any) -> Any:
        check_size(cost(values, None))
        return function(*values)

    return limited


def _optional_select(node: Call, extra: Extra) -> Closure:
    operand = compile_node(node.args[0], extra)
    literal = node.args[1]
    assert isinstance(literal, Literal)
    inner = node.args[0].type
    name = field_name(inner, literal.value)
    object_type = inner.params[0] if inner.kind == "opaque" and inner.params else inner
    convert = converter(_field_type(object_type, literal.value))

    def select(frame: Frame) -> Optional:
        value = operand(frame)
        frame.cost += 1
        field = _optional_field(value, name)
        if object_type.kind == "object" and field.value is None:
            return NONE
        if convert is not None and field.present:
            return Optional(convert(field.value), True)
        return field

    return select


def _list(node: ListNode, extra: Extra) -> Closure:
    elements = [compile_node(element, extra) for element in node.elements]
    optional = node.optional

    def make(frame: Frame) -> list[Any]:
        frame.cost += 10
        if not optional:
            return [element(frame) for element in elements]
        made = []
        for index, element in enumerate(elements):
            value = element(frame)
            if index not in optional:
                made.append(value)
            elif value.present:
                made.append(value.value)
        return made

    return make


def _map(node: MapNode, extra: Extra) -> Closure:
    entries = [(compile_node(key, extra), compile_node(value, extra)) for key, value in node.entries]
    optional = node.optional

    def make(frame: Frame) -> dict[Any, Any]:
        frame.cost += 30
        made: dict[Any, Any] = {}
        for index, (key, value) in enumerate(entries):
            name, item = key(frame), value(frame)
            if index in optional:
                if not item.present:
                    continue
                item = item.value
            if name in made:
                raise EvaluationError(f"Failed with repeated key: {name}")
            made[name] = item
        return made

    return make


def _struct(node: StructNode, extra: Extra) -> Closure:
    fields = [(name, compile_node(value, extra)) for name, value in node.fields]
    optional = node.optional

    def make(frame: Frame) -> dict[str, Any]:
        frame.cost += 40
        made: dict[str, Any] = {}
        for index, (name, value) in enumerate(fields):
            item = value(frame)
            if index in optional:
                if not item.present:
                    continue
                item = item.value
            made[name] = item
        return made

    return make


def _bind(node: Bind, extra: Extra) -> Closure:
    name, value, body = node.name, compile_node(node.value, extra), compile_node(node.body, extra)

    def bind(frame: Frame) -> Any:
        outer = frame.variables
        frame.variables = {**outer, name: value(frame)}
        try:
            return body(frame)
        finally:
            frame.variables = outer

    return bind


def _comprehension(node: Comprehension, extra: Extra) -> Closure:
    range_ = compile_node(node.range, extra)
    var, var2 = node.var, node.var2

    def pairs(container: Any) -> Any:
        if isinstance(container, dict):
            return container.items() if var2 else container
        if isinstance(container, list):
            return enumerate(container) if var2 else container
        raise NoSuchOverload("comprehension")

    if node.macro in ("all", "exists"):
        assert isinstance(node.step, Call)
        test = compile_node(node.step.args[1], extra)
        return quantifier(node.macro == "exists", range_, pairs, var, var2, test)
    init, step = compile_node(node.accu_init, extra), compile_node(node.step, extra)
    result = compile_node(node.result, extra)

    def loop(frame: Frame) -> Any:
        outer = frame.variables
        container = range_(frame)
        inner = frame.variables = dict(outer)
        accumulated = init(frame)
        inner[ACCU] = Growing(accumulated) if accumulated.__class__ is list else accumulated
        try:
            for item in pairs(container):
                if var2:
                    inner[var], inner[var2] = item
                else:
                    inner[var] = item
                inner[ACCU] = step(frame)
                if frame.cost > frame.limit:
                    raise CostExceeded
            if inner[ACCU].__class__ is Growing:
                inner[ACCU] = list(inner[ACCU])
            return result(frame)
        finally:
            frame.variables = outer

    return loop
