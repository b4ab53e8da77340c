"""Go templates as Stages use them: actions, pipelines, variables, `if`, `with`, `range`, and a few functions.

    Template('name: {{ .metadata.name | Quote }}').render(pod, {})

`Template` raises `StageError` for everything else. `docs/workloads.md` describes the subset.
"""

from __future__ import annotations

import json
import re
from collections import ChainMap
from collections.abc import Callable, Collection, Iterator, Mapping
from contextlib import contextmanager
from typing import Any

from kubist.cluster.simulation.stages.go_template_evaluation import (
    DOT,
    NAMES,
    Action,
    Block,
    Call,
    Constant,
    Expression,
    Fields,
    Number,
    Pipeline,
    Rendering,
    Variable,
    check_layout,
    on_line,
)
from kubist.cluster.simulation.stages.limits import (
    MAX_DEPTH,
    StageError,
    check_source,
    string_literal,
    unsupported,
)

_TOKEN = re.compile(
    r"""
    (?P<close>(?:\s-)?\}\})
  | (?P<space>\s)
  | (?P<string>"(?:[^"\\\n]|\\.)*+"|`[^`]*+`)
  | (?P<number>-?(?:0|[1-9]\d*+)(?![\w.]))
  | (?P<constant>'(?:[^'\\\n]|\\.)*+'|[-+]?\.?\d[\w.]*+)
  | (?P<path>(?:\$\w*+|\))?(?:\.[A-Za-z_]\w*+)++)
  | (?P<variable>\$\w*+)
  | (?P<word>[A-Za-z_]\w*+)
  | (?P<symbol>:=|[=|(),.])
    """,
    re.VERBOSE | re.ASCII,
)
_COMMENT = re.compile(r"\s*+/\*(?:[^*]|\*(?!/))*+\*/(\s-)?\}\}")
_OPEN_COMMENT = re.compile(r"\s*+/\*")
_CONSTANTS = {"true": True, "false": False, "nil": None}
_UNSUPPORTED = frozenset(("define", "template", "block", "break", "continue"))
Token = tuple[str, str]
"""Name of a group in the pattern of tokens, and text."""
END: Token = ("end", "the end")


class Template:
    """A parsed template. `names` are functions that it may use besides those of all templates."""

    __slots__ = ("_body", "text")

    def __init__(self, text: str, names: Collection[str] = ()) -> None:
        self.text = text
        check_source(text)
        try:
            self._body = _Parser(_split(text.strip()), NAMES.union(names)).block()
        except StageError as error:
            raise StageError(f"template: {error}") from None

    def render(self, data: Any, environment: Mapping[str, Callable[..., Any]]) -> str:
        """Output for JSON data. `environment` has the functions that are not the same for all templates."""
        dot = json.loads(json.dumps(data), parse_int=Number, parse_float=Number)
        rendering = Rendering(dot, environment)
        try:
            rendering.run(self._body, dot)
        except StageError as error:
            raise StageError(f"template: {error}") from None
        except RecursionError:
            raise StageError("template: nested too deeply") from None
        return "".join(rendering.output)


# Text and tokens


def _split(source: str) -> Iterator[str | tuple[int, list[Token]]]:
    """Text, and the line and tokens of actions. `{{-` and `-}}` trim white space."""
    at, trim = 0, False
    while True:
        start = source.find("{{", at)
        text = source[at:] if start < 0 else source[at:start]
        trim_left = (
            start >= 0 and source[start + 2 : start + 3] == "-" and source[start + 3 : start + 4].isspace()
        )
        text = text.lstrip() if trim else text
        yield text.rstrip() if trim_left else text
        if start < 0:
            return
        line = source.count("\n", 0, start) + 1
        try:
            tokens, at = _tokens(source, start + (3 if trim_left else 2))
        except StageError as error:
            raise on_line(error, line) from None
        trim = source[at - 3] == "-"
        if tokens:
            yield line, tokens


def _tokens(source: str, at: int) -> tuple[list[Token], int]:
    """Tokens of an action, and the position after it. A comment has no tokens."""
    comment = _COMMENT.match(source, at)
    if comment is not None:
        return [], comment.end()
    if _OPEN_COMMENT.match(source, at):
        raise StageError("a comment is not closed")
    tokens: list[Token] = []
    while at < len(source):
        match = _TOKEN.match(source, at)
        if match is None:
            raise StageError(f"unexpected {source[at]!r} in an action")
        kind, text = match.lastgroup or "", match.group()
        at = match.end()
        if kind == "close":
            if not tokens:
                raise StageError("an action is empty")
            return tokens, at
        if kind == "constant":
            raise unsupported(f"the constant {text}")
        if kind == "string":
            text = text[1:-1] if text.startswith("`") else string_literal(text)
        if kind != "space":
            tokens.append((kind, text))
    raise StageError("an action is not closed")


# Parser


class _Parser:
    def __init__(self, parts: Iterator[str | tuple[int, list[Token]]], names: Collection[str]) -> None:
        self._parts = parts
        self._names = names
        self._scope: ChainMap[str, int] = ChainMap({"$": 0})
        """Numbers of the variables by name."""
        self._count = 1
        self._depth = 0
        self._tokens: list[Token] = []
        self._at = 0
        self._line = 1

    @contextmanager
    def _nested(self) -> Iterator[None]:
        """A level of nesting. Variables that it declares end with it."""
        self._depth += 1
        if self._depth > MAX_DEPTH:
            raise StageError(f"blocks and parentheses are nested deeper than {MAX_DEPTH} levels")
        outer, self._scope = self._scope, self._scope.new_child()
        yield
        self._scope = outer
        self._depth -= 1

    # Blocks

    def block(self, *ends: str) -> Block:
        """Text and actions up to `end` or `else`, which stays the current action. Without `ends` the whole template."""
        block: Block = []
        with self._nested():
            for part in self._parts:
                if isinstance(part, str):
                    block.append(part)
                    continue
                self._line, self._tokens, self._at = *part, 0
                if self._keyword() in ends:
                    break
                try:
                    block.append(self._action())
                except StageError as error:
                    raise on_line(error, self._line) from None
            else:
                if ends:
                    raise StageError(f"line {self._line}: a block is not closed by end")
        return block

    def _action(self) -> Action:
        keyword = self._keyword()
        if keyword in ("if", "with", "range"):
            self._at += 1
            with self._nested():
                return self._control(keyword)
        if keyword in ("end", "else"):
            raise StageError(f"unexpected {keyword}")
        if keyword in _UNSUPPORTED:
            raise unsupported(f"the action {keyword!r}")
        value, variables = self._assignment(most=1)
        return Action(self._line, "set" if variables else "print", value, variables, [], [])

    def _control(self, keyword: str) -> Action:
        """`if`, `with` or `range`, after the keyword."""
        line = self._line
        value, variables = self._assignment(most=2 if keyword == "range" else 1)
        body = self.block("end", "else")
        return Action(line, keyword, value, variables, body, self._otherwise(keyword))

    def _otherwise(self, keyword: str) -> Block:
        """The part after `else`, up to `end`. The current action is `else` or `end`."""
        has_else = self._next()[1] == "else"
        if has_else and keyword != "range" and self._keyword() == keyword:
            self._at += 1
            with self._nested():
                return [self._control(keyword)]
        self._finish()
        if not has_else:
            return []
        body = self.block("end")
        self._at += 1
        self._finish()
        return body

    # Tokens

    def _peek(self) -> Token:
        return self._tokens[self._at] if self._at < len(self._tokens) else END

    def _keyword(self) -> str:
        """The next token if it is a word, else an empty string."""
        kind, text = self._peek()
        return text if kind == "word" else ""

    def _next(self) -> Token:
        token = self._peek()
        self._at += 1
        return token

    def _skip(self, symbol: str) -> bool:
        """Skips a symbol, if it is next."""
        is_next = self._peek() == ("symbol", symbol)
        self._at += is_next
        return is_next

    def _finish(self) -> None:
        if self._peek() is not END:
            raise StageError(f"unexpected {self._peek()[1]!r}")

    # Variables

    def _targets(self, most: int) -> tuple[list[str], bool]:
        """Variables before `:=` or `=`, and whether they are declared. A pipeline may have none."""
        start, names = self._at, []
        while self._peek()[0] == "variable":
            names.append(self._next()[1])
            if len(names) < most and self._skip(","):
                continue
            if self._skip(":="):
                return names, True
            if self._skip("="):
                return names, False
            break
        self._at = start
        return [], False

    def _variable(self, name: str, declares: bool = False) -> int:
        """Number of a variable."""
        if declares:
            self._scope[name] = self._count
            self._count += 1
        if name not in self._scope:
            raise StageError(f"undefined variable {name}")
        return self._scope[name]

    # Pipelines

    def _assignment(self, most: int) -> tuple[Expression, list[int]]:
        """The rest of an action: a value, and the variables that get it."""
        names, declares = self._targets(most)
        value = self._pipeline()
        self._finish()
        return value, [self._variable(name, declares) for name in names]

    def _pipeline(self) -> Expression:
        calls: list[Call] = []
        with self._nested():
            value = self._command()
            while self._skip("|"):
                name = self._keyword()
                if name in ("", *_CONSTANTS):
                    text = self._peek()[1]
                    raise StageError(f"{text!r} cannot take the value of a pipe: a function is needed")
                self._at += 1
                calls.append(self._call(name, with_arguments=True))
        return Pipeline(value, calls) if calls else value

    def _command(self) -> Expression:
        """A function with its arguments, or a single value."""
        name = self._keyword()
        if name and name not in _CONSTANTS:
            self._at += 1
            return self._call(name, with_arguments=True)
        if name == "nil":
            raise StageError("nil is not a command")
        value = self._operand()
        if not self._at_end_of_command():
            raise StageError(f"unexpected {self._peek()[1]!r} after a value: only functions take arguments")
        return value

    def _call(self, name: str, with_arguments: bool) -> Call:
        if name not in self._names:
            raise unsupported(f"the function {name!r}")
        if name == "printf" and self._peek()[0] == "string":
            check_layout(self._peek()[1])
        arguments: list[Expression] = []
        while with_arguments and not self._at_end_of_command():
            arguments.append(self._operand())
        return Call(name, arguments)

    def _at_end_of_command(self) -> bool:
        kind, text = self._peek()
        if kind == "symbol":
            return text in ("|", ")", ":=", "=", ",")
        return kind == "end" or (kind == "path" and text.startswith(")"))

    def _operand(self) -> Expression:
        token = self._next()
        kind, text = token
        if kind == "path" and not text.startswith(")"):
            target, *names = text.split(".")
            return Fields(self._lookup(target), names)
        if kind == "variable" or token == ("symbol", "."):
            return self._lookup(text.removeprefix("."))
        if kind == "word" and text not in _CONSTANTS:
            return self._call(text, with_arguments=False)
        if kind in ("string", "number", "word"):
            return Constant(text if kind == "string" else int(text) if kind == "number" else _CONSTANTS[text])
        if text == "(":
            value = self._pipeline()
            kind, text = self._next()
            if kind not in ("symbol", "path") or not text.startswith(")"):
                raise StageError("a parenthesis is not closed")
            return Fields(value, text.split(".")[1:])
        raise StageError("a value is missing" if token is END else f"unexpected {text!r}")

    def _lookup(self, name: str) -> Variable:
        """A variable, or the dot without a name."""
        return Variable(self._variable(name) if name else DOT)
