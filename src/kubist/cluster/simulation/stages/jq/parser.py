"""Parser of jq. It makes a filter of each expression as it reads it."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from kubist.cluster.simulation.stages.jq import filters
from kubist.cluster.simulation.stages.jq.functions import FUNCTIONS, NAMES
from kubist.cluster.simulation.stages.jq.lexer import END, Lexer, Token
from kubist.cluster.simulation.stages.jq.values import ARITHMETIC, COMPARISONS, Filter, Scope, finite
from kubist.cluster.simulation.stages.limits import MAX_DEPTH, StageError

_UNSUPPORTED = frozenset(
    (
        "def",
        "reduce",
        "foreach",
        "label",
        "import",
        "include",
        "limit",
        "path",
        "paths",
        "input",
        "inputs",
        "env",
    )
)
_ASSIGNMENTS = frozenset(("=", "|=", "+=", "-=", "*=", "/=", "%=", "//="))
_KEYWORDS = frozenset(("then", "elif", "else", "end", "as", "catch", "and", "or"))


class Parser:
    def __init__(self, source: str) -> None:
        self._tokens = Lexer(source).tokens()
        self._at = 0
        self._depth = 0
        self._variables: list[str] = []

    def program(self) -> Filter:
        if self._peek() is END:
            raise StageError("the expression is empty")
        made = self._pipe()
        if self._peek() is not END:
            raise self._unexpected()
        return made

    # Tokens

    def _peek(self) -> Token:
        return self._tokens[self._at] if self._at < len(self._tokens) else END

    def _next(self) -> Token:
        token = self._peek()
        self._at += 1
        return token

    def _is(self, *symbols: str) -> bool:
        token = self._peek()
        return token.kind == "symbol" and token.text in symbols

    def _skip(self, text: str) -> bool:
        """Skips a symbol or keyword, if it is next."""
        token = self._peek()
        found = token.kind in ("symbol", "word") and token.text == text
        self._at += found
        return found

    def _need(self, text: str) -> None:
        if not self._skip(text):
            raise StageError(f"expected {text!r} but found {self._shown()}")

    def _shown(self) -> str:
        token = self._peek()
        return "the end" if token is END else repr(token.text)

    def _unexpected(self) -> StageError:
        token = self._peek()
        if token.kind == "symbol" and token.text in _ASSIGNMENTS:
            return StageError(f"the assignment {token.text} is not supported")
        return StageError(f"unexpected {self._shown()}")

    def _deeper(self) -> None:
        self._depth += 1
        if self._depth > MAX_DEPTH:
            raise StageError(f"the expression is nested deeper than {MAX_DEPTH} levels")

    # Operators, from the weakest

    def _pipe(self) -> Filter:
        self._deeper()
        stages = [self._comma()]
        while self._skip("|"):
            stages.append(self._comma())
        self._depth -= 1
        return filters.pipe(stages)

    def _comma(self) -> Filter:
        branches = [self._alternative()]
        while self._skip(","):
            branches.append(self._alternative())
        return filters.comma(branches)

    def _alternative(self) -> Filter:
        branches = [self._or()]
        while self._skip("//"):
            branches.append(self._or())
        if self._peek().kind == "symbol" and self._peek().text in _ASSIGNMENTS:
            raise self._unexpected()
        made = branches.pop()
        while branches:
            made = filters.alternative(branches.pop(), made)
        return made

    def _or(self) -> Filter:
        made = self._and()
        while self._skip("or"):
            made = filters.either(made, self._and())
        return made

    def _and(self) -> Filter:
        made = self._comparison()
        while self._skip("and"):
            made = filters.both(made, self._comparison())
        return made

    def _comparison(self) -> Filter:
        made = self._sum()
        if self._is(*COMPARISONS):
            compare = COMPARISONS[self._next().text]
            made = filters.binary(made, self._sum(), compare)
            if self._is(*COMPARISONS):
                raise self._unexpected()
        return made

    def _sum(self) -> Filter:
        made = self._product()
        while self._is("+", "-"):
            operate = ARITHMETIC[self._next().text]
            made = filters.binary(made, self._product(), operate)
        return made

    def _product(self) -> Filter:
        made = self._postfix()
        while self._is("*", "/", "%"):
            operate = ARITHMETIC[self._next().text]
            made = filters.binary(made, self._postfix(), operate)
        return made

    # Terms

    def _postfix(self) -> Filter:
        if self._skip("-"):
            self._deeper()
            made = filters.negative(self._postfix())
            self._depth -= 1
            return made
        made = self._term()
        count = 0
        while True:
            count += 1
            if count > MAX_DEPTH:
                raise StageError(f"a path has more than {MAX_DEPTH} parts")
            token = self._peek()
            if token.kind == "field":
                self._at += 1
                made = filters.field(made, token.text[1:])
            elif self._is("[") or (self._is(".") and self._after_dot()):
                self._skip(".")
                made = self._suffix(made)
            elif self._skip("?"):
                made = filters.attempt(made, None)
            elif self._skip("as"):
                return self._binding(made)
            else:
                return made

    def _after_dot(self) -> bool:
        token = self._tokens[self._at + 1] if self._at + 1 < len(self._tokens) else END
        return token.kind == "string" or (token.kind == "symbol" and token.text == "[")

    def _suffix(self, target: Filter) -> Filter:
        """`[]`, `[key]`, `[from:to]` or `"name"` after a term."""
        if self._peek().kind == "string":
            return filters.index(target, self._string())
        self._need("[")
        if self._skip("]"):
            return filters.iterate(target)
        if self._skip(":"):
            end = self._pipe()
            self._need("]")
            return filters.slice_(target, None, end)
        key = self._pipe()
        if self._skip(":"):
            end_ = None if self._is("]") else self._pipe()
            self._need("]")
            return filters.slice_(target, key, end_)
        self._need("]")
        return filters.index(target, key)

    def _binding(self, source: Filter) -> Filter:
        token = self._next()
        if token.kind != "variable":
            raise StageError("only `as $name` is supported: a pattern of several variables is not")
        self._need("|")
        self._variables.append(token.text)
        body = self._pipe()
        self._variables.pop()
        return filters.bind(source, token.text, body)

    def _term(self) -> Filter:
        token = self._peek()
        match token.kind:
            case "field":
                self._at += 1
                return filters.field(filters.identity, token.text[1:])
            case "number":
                self._at += 1
                return filters.constant(_number(token.text))
            case "string":
                return self._string()
            case "variable":
                self._at += 1
                if token.text not in self._variables:
                    raise StageError(f"the variable {token.text} is not defined")
                return filters.variable(token.text)
            case "format":
                raise StageError(f"the format {token.text} is not supported")
            case "word":
                return self._word()
            case "symbol":
                return self._symbol()
        raise self._unexpected()

    def _symbol(self) -> Filter:
        if self._skip(".."):
            return filters.recurse
        if self._skip("("):
            made = self._pipe()
            self._need(")")
            return made
        if self._skip("["):
            if self._skip("]"):
                return filters.constant([])
            made = self._pipe()
            self._need("]")
            return filters.collect(made)
        if self._skip("{"):
            return self._object()
        if self._is("."):
            if self._after_dot():
                self._at += 1
                return self._suffix(filters.identity)
            self._at += 1
            return filters.identity
        raise self._unexpected()

    def _string(self) -> Filter:
        token = self._next()
        if not token.parts:
            return filters.constant(token.text)
        parts: list[str | Filter] = []
        for part in token.parts:
            parts.append(part if isinstance(part, str) else self._interpolation(part))
        return filters.interpolate(parts)

    def _interpolation(self, tokens: tuple[Token, ...]) -> Filter:
        inner = Parser.__new__(Parser)
        inner._tokens, inner._at = list(tokens), 0
        inner._depth, inner._variables = self._depth + 1, self._variables
        return inner.program()

    def _word(self) -> Filter:
        token = self._next()
        match token.text:
            case "true":
                return filters.constant(True)
            case "false":
                return filters.constant(False)
            case "null":
                return filters.constant(None)
            case "if":
                return self._if()
            case "try":
                self._deeper()
                body = self._postfix()
                handler = self._postfix() if self._skip("catch") else None
                self._depth -= 1
                return filters.attempt(body, handler)
        if token.text in _KEYWORDS:
            raise StageError(f"unexpected {token.text!r}")
        return self._call(token.text)

    def _if(self) -> Filter:
        self._deeper()
        condition = self._pipe()
        self._need("then")
        then = self._pipe()
        if self._skip("elif"):
            otherwise = self._if()
        elif self._skip("else"):
            otherwise = self._pipe()
            self._need("end")
        else:
            otherwise = filters.identity
            self._need("end")
        self._depth -= 1
        return filters.condition(condition, then, otherwise)

    def _call(self, name: str) -> Filter:
        arguments: list[Filter] = []
        if self._skip("("):
            arguments.append(self._pipe())
            while self._skip(";"):
                arguments.append(self._pipe())
            self._need(")")
        make = FUNCTIONS.get((name, len(arguments)))
        if make is None:
            if name in NAMES:
                raise StageError(f"the function {name} does not take {len(arguments)} arguments")
            known = "is not supported" if name in _UNSUPPORTED else "is not known or not supported"
            raise StageError(f"the function or keyword {name!r} {known}")
        return make(*arguments)

    def _object(self) -> Filter:
        members: list[tuple[Filter, Filter]] = []
        while not self._skip("}"):
            if members:
                self._need(",")
                if self._skip("}"):
                    break
            members.append(self._member())
        return _objects(members)

    def _member(self) -> tuple[Filter, Filter]:
        token = self._peek()
        if token.kind == "variable":
            self._at += 1
            if token.text not in self._variables:
                raise StageError(f"the variable {token.text} is not defined")
            return filters.constant(token.text[1:]), filters.variable(token.text)
        if token.kind == "string":
            key = self._string()
        elif token.kind == "word":
            self._at += 1
            key = filters.constant(token.text)
        elif self._skip("("):
            key = self._pipe()
            self._need(")")
        else:
            raise self._unexpected()
        if not self._skip(":"):
            return key, filters.index(filters.identity, key)
        value = self._alternative_value()
        return key, value

    def _alternative_value(self) -> Filter:
        """Value of a member: everything up to the next comma."""
        self._deeper()
        stages = [self._alternative()]
        while self._skip("|"):
            stages.append(self._alternative())
        self._depth -= 1
        return filters.pipe(stages)


def _number(text: str) -> float | int:
    return int(text) if text.isdecimal() and len(text) < 18 else finite(float(text))


def _objects(members: list[tuple[Filter, Filter]]) -> Filter:
    """Constructor of objects: one for each combination of the members' outputs."""

    def run(data: Any, scope: Scope) -> Iterator[Any]:
        return filters.combine(members, 0, {}, data, scope)

    return run
