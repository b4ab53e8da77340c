"""Parser: text to syntax tree, with macros expanded."""

from __future__ import annotations

import contextlib
from collections.abc import Callable
from collections.abc import Set as AbstractSet

from kubist.model.cel import macros
from kubist.model.cel.ast import Call, Ident, ListNode, Literal, MapNode, Node, Select, StructNode
from kubist.model.cel.errors import CompileError, combined
from kubist.model.cel.escaping import KEYWORDS
from kubist.model.cel.lexer import Mismatch, Token, listed, tokenize
from kubist.model.cel.values import INT_MAX, UINT_MAX

RESERVED = KEYWORDS - {"true", "false", "null", "in"}
_CONSTANTS = {"true": True, "false": False, "null": None}
_RELATIONS = ("<", "<=", ">", ">=", "==", "!=", "in")
_MAX_DEPTH = 50
_MAX_ERRORS = 100
_OPERAND = frozenset(("[", "{", "(", ".", "-", "!", "double", "int", "uint", "string", "bytes", "ident"))
_BINARY = frozenset((*_RELATIONS, "&&", "||", "+", "-", "*", "/", "%", "?"))
_MEMBER = frozenset((".", "["))


def parse(text: str, *, bindings: bool = False) -> Node:
    """Syntax tree of an expression. Raises `CompileError`. `bindings`: `cel.bind` is a macro."""
    parser = _Parser(text, bindings)
    node = parser.expression("end")
    with contextlib.suppress(Mismatch):
        parser.expect("end", frozenset())
    if parser.errors:
        raise combined(parser.errors)
    return node


class _Parser:
    """Recursive-descent parser. It reports and repairs syntax errors like the reference's: it skips one extra
    token, inserts one missing token, or continues at the next token that may follow."""

    def __init__(self, text: str, bindings: bool) -> None:
        self.text = text
        self.tokens, self.errors = tokenize(text)
        if len(self.errors) > _MAX_ERRORS:
            raise combined(self.errors[: _MAX_ERRORS + 1])
        self.bindings = bindings
        self.position = 0
        self.depth = 0
        self.enclosing: list[tuple[str, ...]] = []
        """Tokens that may follow each of the enclosing expressions."""
        self.recovering = False
        """Whether no token was matched since the last error. Further errors are then not reported."""

    @property
    def token(self) -> Token:
        return self.tokens[self.position]

    def take(self) -> Token:
        token = self.tokens[self.position]
        self.position = min(self.position + 1, len(self.tokens) - 1)
        self.recovering = False
        return token

    def accept(self, kind: str) -> Token | None:
        if self.token.kind == kind:
            return self.take()
        return None

    def report(self, message: str, at: int) -> None:
        """Records an error. Parsing continues, because a tree with errors is never used."""
        self.errors.append(CompileError(message, at))
        if len(self.errors) > _MAX_ERRORS:
            raise combined(self.errors)

    def wrong(self, what: str) -> None:
        """Reports a syntax error at the current token."""
        if not self.recovering:
            self.report(f"Syntax error: {what}", self.token.at)
        self.recovering = True

    def sync(self, expected: AbstractSet[str]) -> None:
        """Checks that the current token is expected, without consuming it. Skips one extra token."""
        if self.token.kind in expected:
            return
        if self._next() in expected:
            self.wrong(f"extraneous input '{self.token.text}' expecting {listed(expected)}")
            self.take()
            return
        self.wrong(f"mismatched input '{self.token.text}' expecting {listed(expected)}")
        raise Mismatch

    def expect(self, kind: str, follow: AbstractSet[str] | None = None) -> Token:
        """Consumes a token of this kind. `follow`: tokens that may come next; None at the end of an operand."""
        if self.token.kind == kind:
            return self.take()
        if self._next() == kind:
            self.wrong(f"extraneous input '{self.token.text}' expecting {listed({kind})}")
            self.take()
            return self.take()
        if self.token.kind in (self._after_operand() if follow is None else follow):
            self.wrong(f"missing {listed({kind})} at '{self.token.text}'")
            return Token(kind, "", self.token.at)
        self.wrong(f"mismatched input '{self.token.text}' expecting {listed({kind})}")
        raise Mismatch

    def _next(self) -> str:
        return self.tokens[min(self.position + 1, len(self.tokens) - 1)].kind

    def no_choice(self, start: Token) -> None:
        gap = self.text[start.at + len(start.text) : self.token.at]
        text = "" if self.token.kind == "end" else self.token.text
        blanks = gap[len(gap.rstrip()) :]
        self.wrong(f"no viable alternative at input '{start.text}{blanks}{text}'")

    def recover(self, *follow: str) -> Node:
        """Continues at a token that may follow. Returns a placeholder for the skipped text."""
        self.recovering = True
        known = {*follow, "end", *(kind for kinds in self.enclosing for kind in kinds)}
        while self.token.kind not in known:
            self.position += 1
        return Literal(self.token.at, None)

    def _after_operand(self) -> AbstractSet[str]:
        """Tokens that may follow the end of an operand."""
        return _BINARY | _MEMBER | {*self.enclosing[-1]}

    def expression(self, *follow: str) -> Node:
        """Parses an expression that is followed by one of these tokens."""
        self.depth += 1
        if self.depth > _MAX_DEPTH:
            raise CompileError("expression recursion limit exceeded: 50", self.token.at)
        self.enclosing.append(follow)
        try:
            node = self.or_()
            question = self.accept("?")
            if question is not None:
                self.enclosing.append((":",))
                yes = self.or_()
                self.enclosing.pop()
                self.expect(":", _OPERAND)
                node = Call(question.at, "_?_:_", [node, yes, self.expression(*follow)])
        except Mismatch:
            node = self.recover()
        self.enclosing.pop()
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
        at = self.token.at
        try:
            return self._unary()
        except Mismatch:
            self.recover(*_BINARY)
            return Literal(at, None)

    def _unary(self) -> Node:
        token = self.token
        self.sync(_OPERAND)
        token = self.token
        if token.kind == "!":
            count = 0
            while self.accept("!"):
                count += 1
            if self.token.kind not in _OPERAND:
                self.wrong(f"extraneous input '{self.token.text}' expecting {listed(_OPERAND)}")
                raise Mismatch
            if self.token.kind == "-":
                minus = self.take()
                self.no_choice(minus)
                raise Mismatch
            node = self.member()
            return Call(token.at, "!_", [node]) if count % 2 else node
        if token.kind == "-":
            count = 0
            last = token
            while self.token.kind == "-":
                last = self.take()
                count += 1
            if self.token.kind not in _OPERAND or self.token.kind == "!":
                self.no_choice(last)
                if self.token.kind != "!":
                    self.report(
                        f"Syntax error: mismatched input '{self.token.text}' expecting {listed(_OPERAND)}",
                        self.token.at,
                    )
                raise Mismatch
            if count % 2 and self.token.kind in ("int", "double"):
                number = self.take()
                if number.kind == "int" and number.value > INT_MAX + 1:
                    self.report("invalid int literal", number.at)
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
                node = self._select(self.take(), node)
            elif token.kind == "[":
                self.take()
                optional = self.token.kind == "?"
                self.sync(_OPERAND | {"?"})
                self.accept("?")
                index = self.expression("]")
                self.expect("]")
                node = Call(token.at, "_[?_]" if optional else "_[_]", [node, index])
            elif token.kind == "{" and (name_ := _qualified(node)):
                node = self._struct(name_)
            else:
                return node

    def _select(self, dot: Token, node: Node) -> Node:
        if self.accept("?"):
            try:
                self.sync({"ident", "quoted"})
            except Mismatch:
                self.report("unsupported ident kind", self.token.at)
                raise
            name = self.take()
            return Call(dot.at, "_?._", [node, Literal(name.at, name.value)])
        if self.token.kind not in ("ident", "quoted"):
            self.no_choice(dot)
            raise Mismatch
        if self.token.kind == "ident" and self.token.value in _CONSTANTS:
            self.wrong(f"mismatched input '{self.token.text}' expecting {listed({'ident'})}")
            raise Mismatch
        name = self.take()
        if self.token.kind == "(" and name.kind == "ident":
            return self._call(name.value, node)
        return Select(dot.at, node, name.value)

    def _arguments(self) -> list[Node]:
        self.expect("(")
        self.sync(_OPERAND | {")"})
        args: list[Node] = []
        if not self.accept(")"):
            args.append(self.expression(",", ")"))
            while self.accept(","):
                args.append(self.expression(",", ")"))
            self.expect(")")
        return args

    def _call(self, name: str, target: Node | None) -> Node:
        at = self.token.at
        args = self._arguments()
        try:
            expanded = macros.bind(name, at, target, args) if self.bindings else None
            if expanded is None:
                expanded = macros.expand(name, at, target, args)
        except CompileError as error:
            self.report(error.message, error.at)
        return expanded if expanded is not None else Call(at, name, args, target)

    def primary(self) -> Node:
        token = self.take()
        match token.kind:
            case "int":
                if token.value > INT_MAX:
                    self.report("invalid int literal", token.at)
                return Literal(token.at, token.value)
            case "uint":
                if token.value > UINT_MAX:
                    self.report("invalid uint literal", token.at)
                return Literal(token.at, token.value)
            case "double" | "string" | "bytes":
                return Literal(token.at, token.value)
            case "(":
                node = self.expression(")")
                self.expect(")")
                return node
            case "[":
                return self._list(token.at)
            case "{":
                return self._map(token.at)
            case ".":
                if self.token.kind != "ident":
                    self.no_choice(token)
                    raise Mismatch
                name = self.take()
                return Ident(name.at, name.value)
        return self._ident(token)

    def _ident(self, token: Token) -> Node:
        name = token.value
        if name in _CONSTANTS:
            return Literal(token.at, _CONSTANTS[name])
        if name in RESERVED:
            self.report(f"reserved identifier: {name}", token.at)
        if self.token.kind == "(":
            return self._call(name, None)
        return Ident(token.at, name)

    def _list(self, at: int) -> Node:
        elements: list[Node] = []
        optional: set[int] = set()
        self.sync(_OPERAND | {"]", ",", "?"})
        while self.token.kind in _OPERAND or self.token.kind == "?":
            if self.accept("?"):
                optional.add(len(elements))
            elements.append(self.expression("]", ","))
            self.sync({"]", ","})
            if self.token.kind == "]" or not self._goes_on(_OPERAND):
                break
            self.take()
        self.accept(",")
        self.expect("]")
        return ListNode(at, elements, frozenset(optional))

    def _goes_on(self, starts: AbstractSet[str]) -> bool:
        """Whether another entry follows the comma."""
        return self._next() in starts or self._next() == "?"

    def _map(self, at: int) -> Node:
        entries: list[tuple[Node, Node]] = []
        optional: set[int] = set()
        self.sync(_OPERAND | {"}", ",", "?"})
        try:
            while self.token.kind in _OPERAND or self.token.kind == "?":
                if self.accept("?"):
                    optional.add(len(entries))
                key = self.expression(":")
                self.expect(":", _OPERAND)
                entries.append((key, self.expression("}", ",")))
                if self.token.kind != "," or not self._goes_on(_OPERAND):
                    break
                self.take()
        except Mismatch:
            self.recover("}", ",")
        self._close()
        return MapNode(at, entries, frozenset(optional))

    def _close(self) -> None:
        """Consumes the end of a map or struct, with an optional comma."""
        self.sync({"}", ","})
        self.accept(",")
        self.expect("}")

    def _struct(self, name: str) -> Node:
        at = self.expect("{").at
        fields: list[tuple[str, Node]] = []
        colons: list[int] = []
        optional: set[int] = set()
        self.sync({"}", ",", "?", "ident", "quoted"})
        try:
            while self.token.kind in ("?", "ident", "quoted"):
                if self.accept("?"):
                    optional.add(len(fields))
                    self.sync({"ident", "quoted"})
                field = self.take()
                colons.append(self.expect(":", _OPERAND).at)
                fields.append((field.value, self.expression("}", ",")))
                if self.token.kind != "," or not self._goes_on({"ident", "quoted"}):
                    break
                self.take()
        except Mismatch:
            self.recover("}", ",")
        self._close()
        return StructNode(at, name, fields, colons, frozenset(optional))


def _qualified(node: Node) -> str:
    """Dotted name of a node; empty if it is not a name."""
    if isinstance(node, Ident):
        return node.name
    if isinstance(node, Select) and not node.test:
        inner = _qualified(node.operand)
        return f"{inner}.{node.field}" if inner else ""
    return ""
