"""Compile-time checks of literals: elements of one type; strings that must be durations, timestamps, patterns
or numbers; format strings that fit their arguments."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from kubist.model.cel import conversions, regex, values
from kubist.model.cel.ast import Call, ListNode, Literal, MapNode, Node, children
from kubist.model.cel.errors import EvaluationError
from kubist.model.cel.format_strings import format_problem
from kubist.model.cel.types import Type, is_optional

Report = Callable[[Node, str], None]

_CONVERSIONS: dict[str, Callable[[str], Any]] = {
    "int": conversions.to_int,
    "uint": conversions.to_uint,
    "double": conversions.to_double,
    "bool": conversions.to_bool,
}


def _check_format(node: Call, error: Report) -> None:
    """Checks a literal format string against a literal list of arguments."""
    target, args = node.target, node.args
    if isinstance(target, Literal) and len(args) == 1 and isinstance(args[0], ListNode):
        problem = format_problem(target.value, [element.type for element in args[0].elements])
        if problem:
            error(node, problem)


def check_elements(node: Node, error: Report) -> None:
    """Elements of a list or map literal must have one type, except arguments of `format`."""
    if isinstance(node, Call) and node.function == "format":
        _check_format(node, error)
        return
    groups: list[list[tuple[Node, Type]]] = []
    if isinstance(node, ListNode):
        groups = [[(e, _member_type(e.type, i in node.optional)) for i, e in enumerate(node.elements)]]
    elif isinstance(node, MapNode):
        keys = [(key, key.type) for key, _ in node.entries]
        values = [(v, _member_type(v.type, i in node.optional)) for i, (_, v) in enumerate(node.entries)]
        groups = [keys, values]
    for types in groups:
        for place, type_ in types[1:]:
            if type_ != types[0][1]:
                error(place, f"expected type '{types[0][1]}' but found '{type_}'")
                break
    for child in children(node):
        check_elements(child, error)


def check_argument(node: Call, error: Report, pattern: Callable[[str], Any]) -> None:
    """Checks string literals that are arguments of conversions and of `matches`. `pattern` compiles one, or raises
    RegexError."""
    literal = next((arg for arg in reversed(node.args) if isinstance(arg, Literal)), None)
    if literal is None or not isinstance(literal.value, str):
        return
    try:
        if node.function == "duration" and len(node.args) == 1:
            values.parse_duration(literal.value)
        elif node.function == "timestamp" and len(node.args) == 1:
            values.parse_timestamp(literal.value)
        elif node.function in _CONVERSIONS and len(node.args) == 1 and node.target is None:
            _CONVERSIONS[node.function](literal.value)
        elif node.function == "matches" and node.args[-1] is literal:
            pattern(literal.value)
    except EvaluationError:
        error(literal, f"invalid {node.function} argument")
    except regex.RegexError:
        error(literal, "invalid matches argument")


def _member_type(type_: Type, optional: bool) -> Type:
    return type_.params[0] if optional and is_optional(type_) else type_
