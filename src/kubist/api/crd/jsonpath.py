"""JSONPath in kubectl's dialect, for printer columns. A path is parsed once into functions from values to
values.

A missing field yields no value. An invalid path, or a step that does not fit the value, raises `PathError`.
"""

from __future__ import annotations

import operator
import re
from collections.abc import Callable
from typing import Any

from kubist.model.meta.numerals import decimal

MAX_VALUES = 20_000
"""Maximum number of values that one evaluation may visit. Unions and recursive descents can multiply them with each
step."""

_TERMINATORS = frozenset(" \t\r\n.,[]$@{}")
_KEY = re.compile(r"'([^']*)'")
_SLICE = re.compile(r"(-?\d*)(:-?\d*)?(:-?\d*)?")
_COMPARISON = re.compile(r"([^!<>=]+)(?=[!<>=]++.*+\Z)([!<>=]+)(.+)")
"""The lookahead changes no match. It ends the search at once if a line break follows the operator."""
_OPERATORS: dict[str, Callable[[Any, Any], bool]] = {
    "<": operator.lt,
    ">": operator.gt,
    "<=": operator.le,
    ">=": operator.ge,
    "==": operator.eq,
    "!=": operator.ne,
}


class PathError(ValueError):
    """Invalid path, or path that cannot be evaluated on a value."""


class _Work:
    """Budget of visited values of one evaluation."""

    __slots__ = ("left",)

    def __init__(self) -> None:
        self.left = MAX_VALUES

    def visit(self, values: int) -> None:
        self.left -= values + 1
        if self.left < 0:
            raise PathError(f"the path visits more than {MAX_VALUES} values")


Step = Callable[[list[Any], _Work], list[Any]]


class JsonPath:
    """A path without its braces, for example `.spec.replicas`."""

    def __init__(self, text: str) -> None:
        self.text = text
        self._steps = _Parser(text).steps()

    def find(self, value: Any) -> list[Any]:
        return _walk(self._steps, value, _Work())


class _Parser:
    def __init__(self, text: str) -> None:
        self.text = text
        self.position = 0

    def steps(self) -> list[Step]:
        steps: list[Step] = []
        text = self.text
        after_recursion = False
        while self.position < len(text):
            char = text[self.position]
            recursion = False
            if text.startswith("[?(", self.position):
                steps.append(self._filter())
            elif text.startswith("..", self.position):
                if after_recursion:
                    raise PathError("invalid multiple recursive descent")
                self.position += 2
                steps.append(_recursive)
                recursion = True
                if self.position < len(text) and (
                    text[self.position].isalnum() or text[self.position] == "_"
                ):
                    steps.append(self._field())
                    recursion = False
            elif char in " @$":
                self.position += 1
                recursion = after_recursion
            elif char == "[":
                steps += self._array()
            elif char in "\"'":
                steps.append(_constant(self._quoted(char)))
            elif char == ".":
                self.position += 1
                steps.append(self._field())
            elif char in "+-" or char.isdigit():
                steps.append(_constant(self._number()))
            elif char.isalpha() or char == "_":
                steps.append(_constant(self._word()))
            else:
                raise PathError(f"unrecognized character in action: {char}")
            after_recursion = recursion
        return steps

    def _field(self) -> Step:
        start = self.position
        while self.position < len(self.text) and self.text[self.position] not in _TERMINATORS:
            self.position += 2 if self.text[self.position] == "\\" else 1
        name = self.text[start : self.position]
        if name == "*":
            return _wildcard
        name = name.replace("\\", "")
        return lambda values, _: [
            value[name] for value in values if isinstance(value, dict) and name in value
        ]

    def _array(self) -> list[Step]:
        end = self.text.find("]", self.position)
        if end < 0:
            raise PathError("unterminated array")
        inner = self.text[self.position + 1 : end]
        self.position = end + 1
        if inner == "*":
            inner = ":"
        parts = inner.split(",")
        if len(parts) > 1:
            branches = [_Parser(f"[{part.strip()}]").steps() for part in parts]
            return [_union(branches)]
        if key := _KEY.fullmatch(inner):
            return _Parser(f".{key[1]}").steps()
        bounds = _SLICE.fullmatch(inner)
        if bounds is None:
            raise PathError(f"invalid array index {inner}")
        return [_slice(bounds)]

    def _filter(self) -> Step:
        start = self.position + 3
        position, quote = start, ""
        while True:
            if position >= len(self.text):
                raise PathError("unterminated filter")
            char = self.text[position]
            if quote:
                if char == quote and self.text[position - 1] != "\\":
                    quote = ""
            elif char in "\"'":
                quote = char
            elif char == ")":
                break
            position += 1
        if self.text[position + 1 : position + 2] != "]":
            raise PathError("unclosed array expect ]")
        inner = self.text[start:position]
        self.position = position + 2
        comparison = _COMPARISON.fullmatch(inner)
        if comparison is None:
            return _exists(_Parser(inner).steps())
        compare = _OPERATORS.get(comparison[2])
        if compare is None:
            raise PathError(f"unrecognized filter operator {comparison[2]}")
        return _compared(_Parser(comparison[1]).steps(), _Parser(comparison[3]).steps(), compare)

    def _quoted(self, quote: str) -> str:
        end = self.position + 1
        while end < len(self.text) and not (self.text[end] == quote and self.text[end - 1] != "\\"):
            end += 1
        if end >= len(self.text):
            raise PathError("unterminated quoted string")
        inner = self.text[self.position + 1 : end]
        self.position = end + 1
        return re.sub(r"\\(.)", r"\1", inner)

    def _number(self) -> float:
        match = re.compile(r"[+-]?[\d.]*").match(self.text, self.position)
        assert match is not None
        self.position = match.end()
        try:
            return decimal(match[0])
        except ValueError:
            try:
                return float(match[0])
            except ValueError:
                raise PathError(f"cannot parse number {match[0]}") from None

    def _word(self) -> bool:
        start = self.position
        while self.position < len(self.text) and self.text[self.position] not in _TERMINATORS:
            self.position += 1
        word = self.text[start : self.position]
        if word in ("true", "false"):
            return word == "true"
        raise PathError(f"unrecognized identifier {word}")


def _constant(value: Any) -> Step:
    return lambda values, _: [value for _ in values]


def _children(value: Any) -> list[Any]:
    if isinstance(value, dict):
        return list(value.values())
    return list(value) if isinstance(value, list) else []


def _wildcard(values: list[Any], work: _Work) -> list[Any]:
    results: list[Any] = []
    for value in values:
        children = _children(value)
        work.visit(len(children))
        results += children
    return results


def _recursive(values: list[Any], work: _Work) -> list[Any]:
    results: list[Any] = []
    ahead = values[::-1]
    while ahead:
        value = ahead.pop()
        if children := _children(value):
            work.visit(len(children))
            results.append(value)
            ahead += reversed(children)
    return results


def _union(branches: list[list[Step]]) -> Step:
    def union(values: list[Any], work: _Work) -> list[Any]:
        results: list[Any] = []
        for steps in branches:
            results += _through(steps, values, work)
        return results

    return union


def _slice(bounds: re.Match[str]) -> Step:
    first = decimal(bounds[1]) if bounds[1] not in ("", "-") else None
    derived = bounds[2] is None
    last = None if derived or bounds[2] == ":" else decimal(bounds[2][1:])
    stride = decimal(bounds[3][1:]) if bounds[3] and bounds[3] != ":" else 1
    if derived:
        last = (first or 0) + 1

    def cut(values: list[Any], work: _Work) -> list[Any]:
        results: list[Any] = []
        for value in values:
            if value is None:
                continue
            if not isinstance(value, list):
                raise PathError("not an array or slice")
            length = len(value)
            start = first or 0
            start += length if start < 0 else 0
            end = length if last is None else last
            end += length if end < 0 or (end == 0 and derived) else 0
            if start == end:
                return results
            if not 0 <= start < length or not 0 <= end <= length or start > end or stride <= 0:
                raise PathError(f"array index out of bounds: index {start}, length {length}")
            part = value[start:end:stride]
            work.visit(len(part))
            results += part
        return results

    return cut


def _items(values: list[Any], work: _Work) -> list[Any]:
    results: list[Any] = []
    for value in values:
        if not isinstance(value, list):
            raise PathError("not an array or slice and cannot be filtered")
        work.visit(len(value))
        results += value
    return results


def _walk(steps: list[Step], value: Any, work: _Work) -> list[Any]:
    return _through(steps, [value], work)


def _through(steps: list[Step], values: list[Any], work: _Work) -> list[Any]:
    for step in steps:
        work.visit(len(values))
        values = step(values, work)
    return values


def _exists(steps: list[Step]) -> Step:
    def exists(values: list[Any], work: _Work) -> list[Any]:
        return [item for item in _items(values, work) if _walk(steps, item, work)]

    return exists


def _compared(left: list[Step], right: list[Step], compare: Callable[[Any, Any], bool]) -> Step:
    def compared(values: list[Any], work: _Work) -> list[Any]:
        matches = []
        for item in _items(values, work):
            one, other = _walk(left, item, work), _walk(right, item, work)
            if not one or not other:
                continue
            if len(one) > 1 or len(other) > 1:
                raise PathError("can only compare one element at a time")
            a, b = one[0], other[0]
            comparable = type(a) is type(b) and isinstance(a, (str, int, float, bool))
            if not comparable:
                raise PathError("incompatible types for comparison")
            if compare(a, b):
                matches.append(item)
        return matches

    return compared
