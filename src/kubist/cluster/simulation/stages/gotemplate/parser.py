"""Parser of templates."""

from __future__ import annotations

from collections.abc import Collection
from typing import Any

from kubist.cluster.simulation.stages.gotemplate import nodes
from kubist.cluster.simulation.stages.gotemplate.functions import FUNCTIONS
from kubist.cluster.simulation.stages.gotemplate.lexer import END, Action, Token, split
from kubist.cluster.simulation.stages.gotemplate.nodes import Block, Node, Operand, Pipeline
from kubist.cluster.simulation.stages.limits import MAX_DEPTH, StageError

_BLOCKS = frozenset(("if", "with", "range", "define", "block"))
_ENDS = frozenset(("end", "else"))
_KEYWORDS = _BLOCKS | _ENDS | {"template", "break", "continue"}


def parse(source: str, functions: Collection[str]) -> tuple[Block, dict[str, Block]]:
    """The template, and the templates that it defines by name."""
    parser = _Parser(split(source), functions)
    body = parser.block(frozenset())
    return body, parser.named


class _Parser:
    def __init__(self, parts: list[str | Action], functions: Collection[str]) -> None:
        self._parts = parts
        self._part = 0
        self._functions = functions
        self.named: dict[str, Block] = {}
        self._variables = ["$"]
        self._depth = 0
        self._loops = 0
        self._tokens: list[Token] = []
        self._at = 0
        self._line = 1

    # Blocks

    def block(self, ends: frozenset[str]) -> Block:
        """Nodes up to `end` or `else`, which stays the current action; the whole template if `ends` is empty."""
        self._depth += 1
        if self._depth > MAX_DEPTH:
            raise StageError(f"blocks are nested deeper than {MAX_DEPTH} levels")
        mark = len(self._variables)
        found: list[Node] = []
        while self._part < len(self._parts):
            part = self._parts[self._part]
            self._part += 1
            if isinstance(part, str):
                found.append(nodes.Text(part))
                continue
            self._tokens, self._at, self._line = part.tokens, 0, part.line
            word = self._peek()
            try:
                if word.kind == "word" and word.text in ends:
                    del self._variables[mark:]
                    self._depth -= 1
                    return Block(found)
                node = self._node()
            except StageError as error:
                raise nodes.located(error, self._line) from None
            if node is not None:
                found.append(node)
        if ends:
            raise StageError(f"line {self._line}: a block is not closed by end")
        return Block(found)

    def _node(self) -> Node | None:
        word = self._peek()
        if word.kind != "word" or word.text not in _KEYWORDS:
            line = self._line
            pipeline = self._pipeline()
            self._finish()
            return nodes.Print(line, pipeline)
        self._at += 1
        match word.text:
            case "if" | "with":
                return self._branch(word.text)
            case "range":
                return self._range()
            case "define":
                self._define()
                return None
            case "block":
                return self._named_block()
            case "template":
                name, pipeline_ = self._name(), None
                if self._peek() is not END:
                    pipeline_ = self._pipeline()
                self._finish()
                return nodes.Include(self._line, name, pipeline_)
            case "break" | "continue":
                self._finish()
                if not self._loops:
                    raise StageError(f"{word.text} is outside of range")
                return nodes.Leaving(word.text == "continue")
        raise StageError(f"unexpected {word.text}")

    def _branch(self, keyword: str) -> Node:
        line, mark = self._line, len(self._variables)
        pipeline = self._pipeline()
        self._finish()
        then = self.block(_ENDS)
        otherwise = self._otherwise(keyword)
        del self._variables[mark:]
        return nodes.Branch(line, pipeline, then, otherwise, keyword == "with")

    def _otherwise(self, keyword: str) -> Block | None:
        """The part after `else`, up to `end`. The current action is `else` or `end`."""
        ending = self._next()
        if ending.text == "end":
            self._finish()
            return None
        if self._peek().kind == "word" and self._peek().text == keyword and keyword != "range":
            self._at += 1
            self._depth += 1
            if self._depth > MAX_DEPTH:
                raise StageError(f"blocks are nested deeper than {MAX_DEPTH} levels")
            nested = Block([self._branch(keyword)])
            self._depth -= 1
            return nested
        self._finish()
        body = self.block(frozenset(("end",)))
        self._at += 1
        self._finish()
        return body

    def _range(self) -> Node:
        line, mark = self._line, len(self._variables)
        names, declares = self._declared(most=2)
        pipeline = self._pipeline(names=[], declares=False)
        self._finish()
        if declares:
            self._variables += names
        self._loops += 1
        body = self.block(_ENDS)
        self._loops -= 1
        otherwise = self._otherwise("range")
        del self._variables[mark:]
        return nodes.Range(line, pipeline, names, declares, body, otherwise)

    def _define(self) -> None:
        name = self._name()
        self._finish()
        if self._depth > 1:
            raise StageError("define is inside of a block")
        self.named[name] = self._named_body()

    def _named_block(self) -> Node:
        line, name = self._line, self._name()
        pipeline = self._pipeline()
        self._finish()
        self.named[name] = self._named_body()
        return nodes.Include(line, name, pipeline)

    def _named_body(self) -> Block:
        variables, self._variables = self._variables, ["$"]
        loops, self._loops = self._loops, 0
        body = self.block(frozenset(("end",)))
        self._at += 1
        self._finish()
        self._variables, self._loops = variables, loops
        return body

    def _name(self) -> str:
        token = self._next()
        if token.kind != "string":
            raise StageError("the name of a template must be a string")
        return token.text

    # Tokens

    def _peek(self, ahead: int = 0) -> Token:
        at = self._at + ahead
        return self._tokens[at] if at < len(self._tokens) else END

    def _next(self) -> Token:
        token = self._peek()
        self._at += 1
        return token

    def _skip(self, symbol: str) -> bool:
        token = self._peek()
        found = token.kind == "symbol" and token.text == symbol
        self._at += found
        return found

    def _finish(self) -> None:
        token = self._peek()
        if token is not END:
            raise StageError(f"unexpected {token.text!r}")

    # Pipelines

    def _declared(self, most: int = 1) -> tuple[list[str], bool]:
        """Variables before `:=` or `=`, and whether they are declared. The pipeline may have none."""
        names: list[str] = []
        ahead = 0
        while self._peek(ahead).kind == "variable":
            names.append(self._peek(ahead).text)
            ahead += 1
            following = self._peek(ahead)
            if following.kind == "symbol" and following.text == "," and len(names) < most:
                ahead += 1
                continue
            if following.kind == "symbol" and following.text in (":=", "="):
                self._at += ahead + 1
                if following.text == "=":
                    for name in names:
                        self._check_variable(name)
                return names, following.text == ":="
            break
        return [], False

    def _check_variable(self, name: str) -> None:
        if name not in self._variables:
            raise StageError(f"undefined variable {name}")

    def _pipeline(self, names: list[str] | None = None, declares: bool = False) -> Pipeline:
        self._depth += 1
        if self._depth > MAX_DEPTH:
            raise StageError(f"parentheses are nested deeper than {MAX_DEPTH} levels")
        if names is None:
            names, declares = self._declared()
        commands = [self._command(first=True)]
        while self._skip("|"):
            commands.append(self._command(first=False))
        if declares:
            self._variables += names
        self._depth -= 1
        return Pipeline(commands, names, declares)

    def _command(self, first: bool) -> Operand:
        """A function with its arguments, or a single value."""
        token = self._peek()
        if token.kind == "word" and token.text not in ("true", "false", "nil"):
            self._at += 1
            function = FUNCTIONS.get(token.text)
            if function is None and token.text not in self._functions:
                raise StageError(f"the function {token.text!r} is not defined or not supported")
            arguments = []
            while not self._at_end_of_command():
                arguments.append(self._operand())
            return nodes.Call(token.text, function, arguments)
        if not first:
            raise StageError(
                f"{token.text or 'nothing'!r} cannot take the value of a pipe: a function is needed"
            )
        if self._at_end_of_command():
            raise StageError("a value is missing")
        operand = self._operand()
        if isinstance(operand, nodes.Constant) and operand.constant is None:
            raise StageError("nil is not a command")
        if not self._at_end_of_command():
            raise StageError(f"unexpected {self._peek().text!r} after a value: only functions take arguments")
        return operand

    def _at_end_of_command(self) -> bool:
        token = self._peek()
        return token is END or (token.kind == "symbol" and token.text in ("|", ")", ":=", "=", ","))

    def _operand(self) -> Operand:
        target = self._term()
        names = []
        while self._peek().kind == "field" and not self._peek().spaced:
            names.append(self._next().text[1:])
        if not names:
            return target
        if isinstance(target, nodes.Constant):
            raise StageError(f"a constant has no field {names[0]}")
        return nodes.Fields(target, names)

    def _term(self) -> Operand:
        token = self._next()
        match token.kind:
            case "field":
                return nodes.Fields(nodes.Dot(), [token.text[1:]])
            case "variable":
                self._check_variable(token.text)
                return nodes.Variable(token.text)
            case "string":
                return nodes.Constant(token.text)
            case "char":
                return nodes.Constant(ord(token.text))
            case "number":
                return nodes.Constant(_number(token.text))
            case "word":
                if token.text in ("true", "false", "nil"):
                    return nodes.Constant({"true": True, "false": False, "nil": None}[token.text])
                self._at -= 1
                function = FUNCTIONS.get(token.text)
                if function is None and token.text not in self._functions:
                    raise StageError(f"the function {token.text!r} is not defined or not supported")
                self._at += 1
                return nodes.Call(token.text, function, [])
            case "symbol":
                if token.text == ".":
                    return nodes.Dot()
                if token.text == "(":
                    pipeline = self._pipeline()
                    if not self._skip(")"):
                        raise StageError("a parenthesis is not closed")
                    return pipeline
        raise StageError(f"unexpected {token.text!r}" if token is not END else "a value is missing")


def _number(text: str) -> Any:
    try:
        digits = text.replace("_", "")
        if (
            digits.lstrip("+-")[:1] == "0"
            and digits.lstrip("+-").isdecimal()
            and len(digits.lstrip("+-")) > 1
        ):
            return int(digits, 8)
        return int(digits, 0)
    except ValueError:
        pass
    try:
        return float(text)
    except ValueError:
        raise StageError(f"malformed number {text}") from None
