"""Text to syntax tree, macros expanded."""

from __future__ import annotations

from collections.abc import Callable

from kubist.crd.cel import macros
from kubist.crd.cel.ast import Call, Ident, ListNode, Literal, MapNode, Node, Select, StructNode
from kubist.crd.cel.errors import CompileError
from kubist.crd.cel.escaping import KEYWORDS
from kubist.crd.cel.lexer import Token, tokenize
from kubist.crd.cel.values import INT_MAX, UINT_MAX

RESERVED = KEYWORDS - {"true", "false", "null", "in"}
_CONSTANTS = {"true": True, "false": False, "null": None}
_RELATIONS = ("<", "<=", ">", ">=", "==", "!=", "in")
_MAX_DEPTH = 50


def parse(text: str, *, bindings: bool = False) -> Node:
    """The tree of an expression; raises `CompileError`. `bindings`: `cel.bind` is a macro."""
    parser = _Parser(text, bindings)
    node = parser.expression()
    parser.expect("end")
    return node


class _Parser:
    def __init__(self, text: str, bindings: bool) -> None:
        self.tokens = tokenize(text)
        self.bindings = bindings
        self.position = 0
        self.depth = 0

    @property
    def token(self) -> Token:
        return self.tokens[self.position]

    def take(self) -> Token:
        token = self.tokens[self.position]
        self.position += 1
        return token

    def accept(self, kind: str) -> Token | None:
        if self.token.kind == kind:
            return self.take()
        return None

    def expect(self, kind: str) -> Token:
        if self.token.kind != kind:
            found = "<EOF>" if self.token.kind == "end" else self.token.value
            raise CompileError(f"Syntax error: mismatched input '{found}' expecting '{kind}'", self.token.at)
        return self.take()

    def expression(self) -> Node:
        self.depth += 1
        if self.depth > _MAX_DEPTH:
            raise CompileError("expression recursion limit exceeded: 50", self.token.at)
        node = self.or_()
        question = self.accept("?")
        if question is not None:
            yes = self.or_()
            self.expect(":")
            node = Call(question.at, "_?_:_", [node, yes, self.expression()])
        self.depth -= 1
        return node

    def _left(self, operators: tuple[str, ...], operand: Callable[[], Node]) -> Node:
        node = operand()
        while self.token.kind in operators:
            token = self.take()
            name = "@in" if token.kind == "in" else f"_{token.kind}_"
            node = Call(token.at, name, [node, operand()])
        return node

    def or_(self) -> Node:
        return self._left(("||",), self.and_)

    def and_(self) -> Node:
        return self._left(("&&",), self.relation)

    def relation(self) -> Node:
        return self._left(_RELATIONS, self.sum)

    def sum(self) -> Node:
        return self._left(("+", "-"), self.product)

    def product(self) -> Node:
        return self._left(("*", "/", "%"), self.unary)

    def unary(self) -> Node:
        token = self.token
        if token.kind == "!":
            count = 0
            while self.accept("!"):
                count += 1
            node = self.member()
            return Call(token.at, "!_", [node]) if count % 2 else node
        if token.kind == "-":
            count = 0
            while self.accept("-"):
                count += 1
            if count % 2 and self.token.kind in ("int", "double"):
                number = self.take()
                if number.kind == "int" and number.value > INT_MAX + 1:
                    raise CompileError("invalid int literal", number.at)
                return self._members(Literal(token.at, -number.value))
            node = self.member()
            return Call(token.at, "-_", [node]) if count % 2 else node
        return self.member()

    def member(self) -> Node:
        return self._members(self.primary())

    def _members(self, node: Node) -> Node:
        while True:
            token = self.token
            if token.kind == ".":
                self.take()
                optional = self.accept("?") is not None
                if self.token.kind not in ("ident", "quoted", "in"):
                    raise CompileError(
                        f"Syntax error: no viable alternative at input '.{self.token.value}'", token.at
                    )
                name = self.take()
                if optional:
                    node = Call(token.at, "_?._", [node, Literal(name.at, name.value)])
                elif self.token.kind == "(" and name.kind == "ident":
                    node = self._call(name.value, node)
                elif name.kind == "in":
                    raise CompileError("Syntax error: mismatched input 'in'", name.at)
                else:
                    node = Select(token.at, node, name.value)
            elif token.kind == "[":
                self.take()
                optional = self.accept("?") is not None
                index = self.expression()
                self.expect("]")
                node = Call(token.at, "_[?_]" if optional else "_[_]", [node, index])
            elif token.kind == "{" and (name_ := _qualified(node)):
                node = self._struct(name_)
            else:
                return node

    def _arguments(self) -> list[Node]:
        self.expect("(")
        args: list[Node] = []
        if not self.accept(")"):
            args.append(self.expression())
            while self.accept(","):
                args.append(self.expression())
            self.expect(")")
        return args

    def _call(self, name: str, target: Node | None) -> Node:
        at = self.token.at
        args = self._arguments()
        expanded = macros.bind(name, at, target, args) if self.bindings else None
        if expanded is None:
            expanded = macros.expand(name, at, target, args)
        return expanded if expanded is not None else Call(at, name, args, target)

    def primary(self) -> Node:
        token = self.take()
        match token.kind:
            case "int":
                if token.value > INT_MAX:
                    raise CompileError("invalid int literal", token.at)
                return Literal(token.at, token.value)
            case "uint":
                if token.value > UINT_MAX:
                    raise CompileError("invalid uint literal", token.at)
                return Literal(token.at, token.value)
            case "double" | "string" | "bytes":
                return Literal(token.at, token.value)
            case "(":
                node = self.expression()
                self.expect(")")
                return node
            case "[":
                return self._list(token.at)
            case "{":
                return self._map(token.at)
            case ".":
                name = self.expect("ident")
                return Ident(name.at, name.value)
            case "ident":
                return self._ident(token)
        shown = "<EOF>" if token.kind == "end" else token.value
        raise CompileError(f"Syntax error: mismatched input '{shown}'", token.at)

    def _ident(self, token: Token) -> Node:
        name = token.value
        if name in _CONSTANTS:
            return Literal(token.at, _CONSTANTS[name])
        if name in RESERVED:
            raise CompileError(f"reserved identifier: {name}", token.at)
        if self.token.kind == "(":
            return self._call(name, None)
        return Ident(token.at, name)

    def _list(self, at: int) -> Node:
        elements: list[Node] = []
        optional: set[int] = set()
        while not self.accept("]"):
            if self.accept("?"):
                optional.add(len(elements))
            elements.append(self.expression())
            if not self.accept(","):
                self.expect("]")
                break
        return ListNode(at, elements, frozenset(optional))

    def _map(self, at: int) -> Node:
        entries: list[tuple[Node, Node]] = []
        optional: set[int] = set()
        while not self.accept("}"):
            if self.accept("?"):
                optional.add(len(entries))
            key = self.expression()
            self.expect(":")
            entries.append((key, self.expression()))
            if not self.accept(","):
                self.expect("}")
                break
        return MapNode(at, entries, frozenset(optional))

    def _struct(self, name: str) -> Node:
        at = self.expect("{").at
        fields: list[tuple[str, Node]] = []
        optional: set[int] = set()
        while not self.accept("}"):
            if self.accept("?"):
                optional.add(len(fields))
            field = self.take()
            if field.kind not in ("ident", "quoted"):
                raise CompileError(f"Syntax error: mismatched input '{field.value}'", field.at)
            self.expect(":")
            fields.append((field.value, self.expression()))
            if not self.accept(","):
                self.expect("}")
                break
        return StructNode(at, name, fields, frozenset(optional))


def _qualified(node: Node) -> str:
    """A dotted name, if that is what a node is."""
    if isinstance(node, Ident):
        return node.name
    if isinstance(node, Select) and not node.test:
        inner = _qualified(node.operand)
        return f"{inner}.{node.field}" if inner else ""
    return ""
