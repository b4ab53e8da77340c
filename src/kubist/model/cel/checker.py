"""Type checker: sets the type of every node and the overloads of every call, and reports errors."""

from __future__ import annotations

from typing import Any

from kubist.model.cel import literals, regex, values
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
    children,
)
from kubist.model.cel.declarations import Overload, functions
from kubist.model.cel.errors import CompileError
from kubist.model.cel.escaping import KEYWORDS
from kubist.model.cel.types import (
    BOOL,
    BYTES,
    DOUBLE,
    DURATION,
    DYN,
    ERROR,
    INT,
    NULL,
    SIMPLE,
    STRING,
    TIMESTAMP,
    UINT,
    Bindings,
    Type,
    assignable,
    is_optional,
    list_of,
    map_of,
    optional_of,
    substitute,
    type_of,
)

TYPE_NAMES = {name: SIMPLE[name] for name in ("bool", "int", "uint", "double", "string", "bytes")} | {
    "null_type": NULL,
    "list": list_of(DYN),
    "map": map_of(DYN, DYN),
    "type": type_of(DYN),
    "google.protobuf.Duration": DURATION,
    "google.protobuf.Timestamp": TIMESTAMP,
    "optional_type": optional_of(DYN),
}


class Checker:
    """Checks one expression against declared variables."""

    def __init__(
        self,
        variables: dict[str, Type],
        extra: dict[str, tuple[Overload, ...]] | None = None,
        *,
        aside: bool = False,
    ) -> None:
        self.scopes: list[dict[str, Type]] = [variables]
        self.errors: list[CompileError] = []
        self.bindings: Bindings = {}
        self.used: set[str] = set()
        self.extra = extra or {}
        self._pattern = regex.compile_aside if aside else regex.compile
        self._fresh = 0

    def check(self, node: Node) -> Type:
        """Type of a whole expression. Raises CompileError with all errors."""
        self._check(node)
        if self.errors:
            first, *others = {(error.message, error.at): error for error in self.errors}.values()
            raise CompileError(first.message, first.at, tuple(others))
        self._finish(node)
        literals.check_elements(node, self._error)
        if self.errors:
            raise self.errors[0]
        return node.type

    def _error(self, node: Node, message: str) -> None:
        self.errors.append(CompileError(message, node.at))
        node.type = ERROR

    def _lookup(self, name: str) -> Type | None:
        for scope in reversed(self.scopes):
            if name in scope:
                if scope is self.scopes[0]:
                    self.used.add(name)
                return scope[name]
        return None

    def _param(self) -> Type:
        self._fresh += 1
        return Type("param", f"_var{self._fresh}")

    def _assignable(self, source: Type, target: Type) -> bool:
        trial = dict(self.bindings)
        if assignable(source, target, trial):
            self.bindings = trial
            return True
        return False

    def _type(self, node: Node) -> Type:
        return substitute(node.type, self.bindings)

    def _check(self, node: Node) -> None:
        match node:
            case Literal():
                node.type = _literal_type(node.value)
            case Ident():
                self._ident(node)
            case Select():
                self._select(node)
            case Call():
                self._call(node)
            case ListNode():
                self._list(node)
            case MapNode():
                self._map(node)
            case StructNode():
                self._struct(node)
            case Comprehension():
                self._comprehension(node)
            case Bind():
                self._check(node.value)
                self.scopes.append({node.name: self._type(node.value)})
                self._check(node.body)
                self.scopes.pop()
                node.type = self._type(node.body)

    def _ident(self, node: Ident) -> None:
        type_ = self._lookup(node.name)
        if type_ is not None:
            node.type = type_
        elif node.name in TYPE_NAMES:
            node.type = type_of(TYPE_NAMES[node.name])
        else:
            self._error(node, f"undeclared reference to '{node.name}' (in container '')")

    def _qualified(self, node: Node) -> str:
        if isinstance(node, Ident):
            return node.name if self._lookup(node.name) is None else ""
        if isinstance(node, Select) and not node.test:
            inner = self._qualified(node.operand)
            return f"{inner}.{node.field}" if inner else ""
        return ""

    def _select(self, node: Select) -> None:
        name = self._qualified(node)
        if name and name in TYPE_NAMES and not node.test:
            node.type = type_of(TYPE_NAMES[name])
            return
        self._check(node.operand)
        node.type = self._field(node, self._type(node.operand), node.field)
        if node.test and node.type.kind != "error":
            node.type = BOOL

    def _field(self, node: Node, operand: Type, field: str) -> Type:
        """Type of a field of a type."""
        if is_optional(operand):
            inner = self._field(node, operand.params[0], field)
            return inner if is_optional(inner) or inner.kind == "error" else optional_of(inner)
        match operand.kind:
            case "error":
                return ERROR
            case "dyn":
                return DYN
            case "param":
                self._assignable(DYN, operand)
                return DYN
            case "map":
                return operand.params[1]
            case "object":
                field_type = operand.fields.get(field)
                if field_type is None and field in KEYWORDS:
                    field_type = operand.fields.get(f"__{field}__")
                if field_type is None:
                    self._error(node, f"undefined field '{field}'")
                    return ERROR
                return field_type
        self._error(node, f"type '{operand}' does not support field selection")
        return ERROR

    def _call(self, node: Call) -> None:
        if node.function == "_?._":
            self._check(node.args[0])
            literal = node.args[1]
            assert isinstance(literal, Literal)
            literal.type = STRING
            type_ = self._field(node, self._type(node.args[0]), literal.value)
            node.type = type_ if is_optional(type_) or type_.kind == "error" else optional_of(type_)
            node.overloads = ("select_optional_field",)
            return
        if node.target is not None:
            qualified = self._qualified(node.target)
            name = f"{qualified}.{node.function}" if qualified else ""
            if name and self._declared(name):
                node.function, node.target = name, None
        for arg in ([node.target] if node.target is not None else []) + node.args:
            self._check(arg)
        self._resolve(node)

    def _declared(self, name: str) -> tuple[Overload, ...] | None:
        return functions().get(name) or self.extra.get(name)

    def _resolve(self, node: Call) -> None:
        member = node.target is not None
        args = ([node.target] if node.target is not None else []) + node.args
        arg_types = [self._type(arg) for arg in args]
        declared = [*(functions().get(node.function) or ()), *(self.extra.get(node.function) or ())]
        if not declared:
            self._error(node, f"undeclared reference to '{node.function}' (in container '')")
            return
        if any(type_.kind == "error" for type_ in arg_types):
            node.type = ERROR
            return
        result: Type | None = None
        matched: list[str] = []
        for overload in declared:
            if overload.member != member or len(overload.args) != len(arg_types):
                continue
            params, outcome = self._instance(overload)
            trial = dict(self.bindings)
            if not all(assignable(a, b, trial) for a, b in zip(arg_types, params, strict=True)):
                continue
            self.bindings = trial
            matched.append(overload.id)
            type_ = substitute(outcome, self.bindings)
            if result is None:
                result = type_
            elif result.kind != "dyn" and type_ != result:
                result = DYN
        if result is None:
            self._error(node, _no_overload(node, arg_types))
            return
        node.type, node.overloads = result, tuple(matched)
        literals.check_argument(node, self._error, self._pattern)

    def _instance(self, overload: Overload) -> tuple[list[Type], Type]:
        fresh: Bindings = {"A": self._param(), "B": self._param()}
        return [substitute(arg, fresh) for arg in overload.args], substitute(overload.result, fresh)

    def _unify(self, common: Type | None, inner: Node) -> Type:
        type_ = self._type(inner)
        if common is None or common.kind == "error":
            return type_
        if self._assignable(common, type_) and common.kind not in ("dyn",):
            return substitute(type_ if common.kind in ("null", "param") else common, self.bindings)
        if self._assignable(type_, common):
            return substitute(common, self.bindings)
        return DYN

    def _list(self, node: ListNode) -> None:
        element: Type | None = None
        for index, inner in enumerate(node.elements):
            self._check(inner)
            if index in node.optional:
                inner = self._unwrapped(inner)
            element = self._unify(element, inner)
        if node.type.kind != "error":
            node.type = list_of(element if element is not None else self._param())

    def _unwrapped(self, node: Node) -> Node:
        """Placeholder node with the type that an optional element holds."""
        type_ = self._type(node)
        if not is_optional(type_) and type_.kind != "dyn":
            self._error(node, f"expected type 'optional_type({type_})' but found '{type_}'")
            return node
        stand_in = Literal(node.at, None)
        stand_in.type = type_.params[0] if is_optional(type_) else DYN
        return stand_in

    def _map(self, node: MapNode) -> None:
        key: Type | None = None
        value: Type | None = None
        for index, (k, v) in enumerate(node.entries):
            self._check(k)
            self._check(v)
            key = self._unify(key, k)
            value = self._unify(value, self._unwrapped(v) if index in node.optional else v)
        node.type = map_of(
            key if key is not None else self._param(), value if value is not None else self._param()
        )

    def _struct(self, node: StructNode) -> None:
        for _, inner in node.fields:
            self._check(inner)
        declared = self._lookup(f"{node.name}{{}}")
        if declared is None:
            self._error(node, f"undeclared reference to '{node.name}' (in container '')")
            return
        for index, (name, inner) in enumerate(node.fields):
            colon = Literal(node.colons[index], None)
            expected = self._field(colon, declared, name)
            actual = self._type(self._unwrapped(inner) if index in node.optional else inner)
            if expected.kind != "error" and not self._assignable(actual, expected):
                self._error(
                    colon, f"expected type of field '{name}' is '{expected}' but provided type is '{actual}'"
                )
        node.type = declared

    def _comprehension(self, node: Comprehension) -> None:
        self._check(node.range)
        self._check(node.accu_init)
        range_ = self._type(node.range)
        first, second = self._iterated(node, range_)
        scope = {node.var: first if node.var2 or range_.kind == "map" else second}
        if node.var2:
            scope[node.var2] = second
        self.scopes.append({ACCU: self._type(node.accu_init)})
        self.scopes.append(scope)
        self._check(node.condition)
        if not self._assignable(self._type(node.condition), BOOL):
            self._error(node.condition, "expected a bool condition")
        self._check(node.step)
        if node.step.type.kind != "error" and not self._assignable(
            self._type(node.step), self._type(node.accu_init)
        ):
            self._error(node.step, "the step of a comprehension is of another type than its result")
        self.scopes.pop()
        self._check(node.result)
        self.scopes.pop()
        node.type = self._type(node.result)

    def _iterated(self, node: Comprehension, range_: Type) -> tuple[Type, Type]:
        """Types of (key, value) of a map or (index, element) of a list."""
        match range_.kind:
            case "list":
                return INT, range_.params[0]
            case "map":
                return range_.params[0], range_.params[1]
            case "dyn" | "error":
                return DYN, DYN
            case "param":
                self._assignable(DYN, range_)
                return DYN, DYN
        self._error(
            node,
            f"expression of type '{range_}' cannot be range of a comprehension (must be list, map, or dynamic)",
        )
        return ERROR, ERROR

    def _finish(self, node: Node) -> None:
        """Sets the final types. Unbound type parameters become dyn."""
        node.type = substitute(node.type, self.bindings, free_to_dyn=True)
        for child in children(node):
            self._finish(child)


def _literal_type(value: Any) -> Type:
    if value is None:
        return NULL
    if isinstance(value, bool):
        return BOOL
    if isinstance(value, values.Uint):
        return UINT
    if isinstance(value, int):
        return INT
    if isinstance(value, float):
        return DOUBLE
    return STRING if isinstance(value, str) else BYTES


def _no_overload(node: Call, arg_types: list[Type]) -> str:
    if node.target is not None:
        signature = f"{arg_types[0]}.({', '.join(map(str, arg_types[1:]))})"
    else:
        signature = f"({', '.join(map(str, arg_types))})"
    return f"found no matching overload for '{node.function}' applied to '{signature}'"
