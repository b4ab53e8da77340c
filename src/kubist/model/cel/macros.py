"""Expansion of macros (has, all, exists, map, filter, optMap, sortBy, …) to syntax trees."""

from __future__ import annotations

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
)
from kubist.model.cel.errors import CompileError

_ONE_VAR = {"all": 2, "exists": 2, "exists_one": 2, "existsOne": 2, "filter": 2}
_TWO_VAR = {"all": 3, "exists": 3, "exists_one": 3, "existsOne": 3}


def expand(name: str, at: int, target: Node | None, args: list[Node]) -> Node | None:
    """The expression that a macro call stands for; None if the call is not a macro."""
    count = len(args)
    if target is None:
        return _has(at, args[0]) if name == "has" and count == 1 else None
    if _ONE_VAR.get(name) == count:
        var = _var(args[0])
        return (
            _filter(at, target, var, args[1])
            if name == "filter"
            else _quantifier(name, at, target, var, "", args[1])
        )
    if _TWO_VAR.get(name) == count:
        var, var2 = _two(args)
        return _quantifier(name, at, target, var, var2, args[2])
    if name == "map" and count in (2, 3):
        test = args[1] if count == 3 else None
        return _collect(at, target, _var(args[0]), "", test, ListNode(at, [args[-1]]))
    if name in ("transformList", "transformMap", "transformMapEntry") and count in (3, 4):
        var, var2 = _two(args)
        return _transform(name, at, target, var, var2, args[2] if count == 4 else None, args[-1])
    if name in ("optMap", "optFlatMap") and count == 2:
        return _opt_map(name, at, target, _var(args[0]), args[1])
    if name == "sortBy" and count == 2:
        return _sort_by(at, target, _var(args[0]), args[1])
    return None


def bind(name: str, at: int, target: Node | None, args: list[Node]) -> Node | None:
    """`cel.bind(name, value, expression)`, only in environments with bindings."""
    if name != "bind" or len(args) != 3 or not isinstance(target, Ident) or target.name != "cel":
        return None
    return Bind(at, _var(args[0]), args[1], args[2])


def _has(at: int, arg: Node) -> Node:
    if isinstance(arg, Select) and not arg.test:
        return Select(at, arg.operand, arg.field, test=True)
    raise CompileError("invalid argument to has() macro", arg.at)


def _var(node: Node) -> str:
    if not isinstance(node, Ident):
        raise CompileError("argument must be a simple name", node.at)
    if node.name in (ACCU, "__result__"):
        raise CompileError("iteration variable overwrites accumulator variable", node.at)
    return node.name


def _two(args: list[Node]) -> tuple[str, str]:
    one, other = _var(args[0]), _var(args[1])
    if one == other:
        raise CompileError(f"duplicate variable name: {one}", args[1].at)
    return one, other


def _quantifier(name: str, at: int, target: Node, var: str, var2: str, test: Node) -> Node:
    accu = Ident(at, ACCU)
    if name == "all":
        condition: Node = Call(at, "@not_strictly_false", [Ident(at, ACCU)])
        step: Node = Call(at, "_&&_", [accu, test])
        return Comprehension(
            at, "all", target, var, var2, Literal(at, True), condition, step, Ident(at, ACCU)
        )
    if name == "exists":
        condition = Call(at, "@not_strictly_false", [Call(at, "!_", [Ident(at, ACCU)])])
        step = Call(at, "_||_", [accu, test])
        return Comprehension(
            at, "exists", target, var, var2, Literal(at, False), condition, step, Ident(at, ACCU)
        )
    step = Call(at, "_?_:_", [test, Call(at, "_+_", [accu, Literal(at, 1)]), Ident(at, ACCU)])
    result = Call(at, "_==_", [Ident(at, ACCU), Literal(at, 1)])
    return Comprehension(at, "loop", target, var, var2, Literal(at, 0), Literal(at, True), step, result)


def _filter(at: int, target: Node, var: str, test: Node) -> Node:
    return _collect(at, target, var, "", test, ListNode(at, [Ident(at, var)]))


def _collect(at: int, target: Node, var: str, var2: str, test: Node | None, added: Node) -> Node:
    step: Node = Call(at, "_+_", [Ident(at, ACCU), added])
    if test is not None:
        step = Call(at, "_?_:_", [test, step, Ident(at, ACCU)])
    return Comprehension(
        at, "loop", target, var, var2, ListNode(at, []), Literal(at, True), step, Ident(at, ACCU)
    )


def _transform(name: str, at: int, target: Node, var: str, var2: str, test: Node | None, value: Node) -> Node:
    if name == "transformList":
        return _collect(at, target, var, var2, test, ListNode(at, [value]))
    entry = [Ident(at, ACCU), Ident(at, var), value] if name == "transformMap" else [Ident(at, ACCU), value]
    step: Node = Call(at, "cel.@mapInsert", entry)
    if test is not None:
        step = Call(at, "_?_:_", [test, step, Ident(at, ACCU)])
    return Comprehension(
        at, "loop", target, var, var2, MapNode(at, []), Literal(at, True), step, Ident(at, ACCU)
    )


def _opt_map(name: str, at: int, target: Node, var: str, value: Node) -> Node:
    present = Call(at, "hasValue", [], target)
    bound: Node = Bind(at, var, Call(at, "value", [], target), value)
    if name == "optMap":
        bound = Call(at, "optional.of", [bound])
    return Call(at, "_?_:_", [present, bound, Call(at, "optional.none", [])])


def _sort_by(at: int, target: Node, var: str, key: Node) -> Node:
    keys = _collect(at, Ident(at, "@sorted"), var, "", None, ListNode(at, [key]))
    sorted_ = Call(at, "@sortByAssociatedKeys", [keys], Ident(at, "@sorted"))
    return Bind(at, "@sorted", target, sorted_)
