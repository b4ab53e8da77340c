"""Label and field selectors in text form, as lists and watches take them, parsed and compiled for matching.

Both parsers raise `ParseError` with the message for the client.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass, field
from typing import Any

from kubist.base.caching import bounded_cache
from kubist.model.meta import names
from kubist.model.meta.fields import FieldError, invalid, summary
from kubist.model.meta.numerals import parse_int64

FEW = 8
"""Number of requirements up to which matching one by one is faster."""
LONG = 4096
"""Length in characters from which parsing runs off the event loop."""

Labels = dict[str, str]
Matcher = Callable[[Labels], bool]


class ParseError(ValueError):
    """Invalid selector."""


@dataclass(slots=True, frozen=True)
class Requirement:
    """One condition on one label. Operators: `=`, `==`, `!=`, `in`, `notin`, `gt`, `lt`, `exists`, `!`."""

    key: str
    operator: str
    values: tuple[str, ...] = ()

    def __str__(self) -> str:
        match self.operator:
            case "exists":
                return self.key
            case "!":
                return f"!{self.key}"
            case "in" | "notin":
                return f"{self.key} {self.operator} ({','.join(sorted(self.values))})"
            case "gt":
                return f"{self.key}>{self.values[0]}"
            case "lt":
                return f"{self.key}<{self.values[0]}"
        return f"{self.key}{self.operator}{self.values[0]}"

    @property
    def exact(self) -> bool:
        """Whether the label must have one given value."""
        return self.operator in ("=", "==", "in") and len(self.values) == 1

    def matcher(self) -> Matcher:
        key, values = self.key, frozenset(self.values)
        match self.operator:
            case "exists":
                return lambda labels: key in labels
            case "!":
                return lambda labels: key not in labels
            case "!=" | "notin":
                return lambda labels: labels.get(key) not in values
            case "gt" | "lt":
                return _comparison(key, int(self.values[0]), greater=self.operator == "gt")
        if len(values) == 1:
            (value,) = values
            return lambda labels: labels.get(key) == value
        return lambda labels: labels.get(key) in values


def _comparison(key: str, bound: int, *, greater: bool) -> Matcher:
    def matches(labels: Labels) -> bool:
        value = parse_int64(labels.get(key, ""))
        return value is not None and (value > bound if greater else value < bound)

    return matches


class LabelSelector:
    """All requirements of a selector. Without requirements it matches everything."""

    __slots__ = ("_matchers", "equalities", "requirements")

    def __init__(self, requirements: Iterable[Requirement]) -> None:
        self.requirements = tuple(sorted(requirements, key=lambda requirement: requirement.key))
        self.equalities = {
            requirement.key: requirement.values[0] for requirement in self.requirements if requirement.exact
        }
        """Labels that every match has, for an index lookup."""
        if len(self.requirements) <= FEW:
            self._matchers = tuple(requirement.matcher() for requirement in self.requirements)
        else:
            self._matchers = (MergedRequirements(self.requirements).matches,)

    @property
    def empty(self) -> bool:
        return not self.requirements

    def matches(self, labels: Labels | None) -> bool:
        if labels is None:
            labels = {}
        for matcher in self._matchers:  # noqa: SIM110 (a third faster than all() on the list path)
            if not matcher(labels):
                return False
        return True

    def __str__(self) -> str:
        return ",".join(map(str, self.requirements))


class _Token(str):
    """Word or symbol of a selector. The end is an empty token."""

    __slots__ = ()

    @property
    def is_identifier(self) -> bool:
        return bool(self) and self[0] not in "=!(),><"


_token = re.compile(r"==|!=|[=!(),><]|[^ \t\r\n=!(),><]+")
_BINARY = {"in": "in", "notin": "notin", "=": "=", "==": "==", "!=": "!=", ">": "gt", "<": "lt"}


class _Parser:
    """Parser for `[!]key`, `key op value` and `key in (value, …)`, separated by commas."""

    def __init__(self, text: str) -> None:
        self.tokens = [_Token(token) for token in _token.findall(text)]
        self.tokens.append(_Token())
        self.position = 0

    def peek(self) -> _Token:
        return self.tokens[self.position]

    def take(self) -> _Token:
        token = self.tokens[self.position]
        self.position += 1
        return token

    def parse(self) -> Iterator[Requirement]:
        while token := self.peek():
            if not token.is_identifier and token != "!":
                raise ParseError(f"found '{token}', expected: !, identifier, or 'end of string'")
            try:
                yield self.requirement()
            except ParseError as error:
                raise ParseError(f"unable to parse requirement: {error}") from None
            separator = self.take()
            if not separator:
                return
            if separator != ",":
                raise ParseError(f"found '{separator}', expected: ',' or 'end of string'")
            following = self.peek()
            if not following.is_identifier and following != "!":
                raise ParseError(f"found '{following}', expected: identifier after ','")

    def requirement(self) -> Requirement:
        key = self.take()
        absent = key == "!"
        if absent:
            key = self.take()
        if not key.is_identifier:
            raise ParseError(f"found '{key}', expected: identifier")
        if messages := names.qualified_name(key):
            raise ParseError(str(invalid("<nil>", str(key), "; ".join(messages))))
        if absent:
            return Requirement(str(key), "!")
        if self.peek() in ("", ","):
            return Requirement(str(key), "exists")
        sign = self.take()
        operator = _BINARY.get(sign)
        if operator is None:
            raise ParseError(f"found '{sign}', expected: in, notin, =, ==, !=, gt, lt")
        values = sorted(self.value_set() if operator in ("in", "notin") else {self.exact_value()})
        requirement = Requirement(str(key), operator, tuple(values))
        if errors := _value_errors(requirement):
            raise ParseError(summary(errors))
        return requirement

    def exact_value(self) -> str:
        if self.peek() in ("", ","):
            return ""
        value = self.take()
        if not value.is_identifier:
            raise ParseError(f"found '{value}', expected: identifier")
        return str(value)

    def value_set(self) -> set[str]:
        """Values in parentheses. A missing value is the empty string."""
        opening = self.take()
        if opening != "(":
            raise ParseError(f"found '{opening}' expected: '('")
        first = self.peek()
        if first not in (",", ")") and not first.is_identifier:
            raise ParseError(f"found '{first}', expected: ',', ')' or identifier")
        values: set[str] = set()
        if first == ")":
            values.add("")
        while (token := self.take()) != ")":
            if token.is_identifier:
                values.add(str(token))
                if self.peek() not in (",", ")"):
                    raise ParseError(f"found '{self.peek()}', expected: ',' or ')'")
            elif token == ",":
                if not values or self.peek() in (",", ")"):
                    values.add("")
            else:
                raise ParseError(f"found '{token}', expected: ',', or identifier")
        return values


def _value_errors(requirement: Requirement) -> list[FieldError]:
    errors = []
    if requirement.operator in ("gt", "lt") and parse_int64(requirement.values[0]) is None:
        why = "for 'Gt', 'Lt' operators, the value must be an integer"
        errors.append(invalid("values[0]", requirement.values[0], why))
    for index, value in enumerate(requirement.values):
        if messages := names.label_value(value):
            errors.append(invalid(f"values[{index}][{requirement.key}]", value, "; ".join(messages)))
    return errors


@bounded_cache(entries=1024, key_length=256)
def parse_label_selector(text: str) -> LabelSelector:
    return LabelSelector(_Parser(text).parse())


_STRUCTURED = {"In": "in", "NotIn": "notin", "Exists": "exists", "DoesNotExist": "!"}


def label_selector(selector: dict[str, Any]) -> LabelSelector:
    """Selector of an object: a LabelSelector, or a plain map of labels (ReplicationController)."""
    expressions = selector.get("matchExpressions")
    labels = selector.get("matchLabels")
    if isinstance(labels, str) or isinstance(expressions, str):
        labels, expressions = selector, ()
    elif labels is None and expressions is None:
        labels = selector
    requirements = [Requirement(key, "=", (value,)) for key, value in (labels or {}).items()]
    for expression in expressions or ():
        operator = _STRUCTURED.get(expression.get("operator", ""))
        if operator is None:
            text = expression.get("operator", "")
            raise ParseError(f'"{text}" is not a valid label selector operator')
        requirements.append(
            Requirement(expression.get("key", ""), operator, tuple(expression.get("values") or ()))
        )
    return LabelSelector(requirements)


def format_label_selector(selector: dict[str, Any] | None) -> str:
    """Text form of the selector of an object: `a=b,c in (d,e)`."""
    return str(label_selector(selector)) if selector else ""


def go_label_selector(selector: dict[str, Any] | None) -> str:
    """Selector of an object in Go's debug format, which some messages and columns of the reference show."""
    if selector is None:
        return "nil"
    labels = "".join(f"{key}: {value}," for key, value in sorted((selector.get("matchLabels") or {}).items()))
    expressions = "".join(
        f"LabelSelectorRequirement{{Key:{one.get('key', '')},Operator:{one.get('operator', '')},"
        f"Values:[{' '.join(one.get('values') or ())}],}},"
        for one in selector.get("matchExpressions") or ()
    )
    return (
        f"&LabelSelector{{MatchLabels:map[string]string{{{labels}}},"
        f"MatchExpressions:[]LabelSelectorRequirement{{{expressions}}},}}"
    )


@dataclass(slots=True, frozen=True)
class FieldSelector:
    """Conditions on selectable fields. Without conditions it matches everything."""

    requirements: tuple[tuple[str, str, str], ...]
    """(label, `=` or `!=`, value)."""
    _by_label: dict[str, tuple[set[str], set[str]]] = field(init=False, compare=False, repr=False)
    """Required values (more than one never match) and excluded values by field."""

    def __post_init__(self) -> None:
        by_label: dict[str, tuple[set[str], set[str]]] = {}
        for label, operator, value in self.requirements:
            by_label.setdefault(label, (set(), set()))[operator == "!="].add(value)
        object.__setattr__(self, "_by_label", by_label)

    @property
    def empty(self) -> bool:
        return not self.requirements

    def matches(self, fields: dict[str, str]) -> bool:
        for label, (values, unwanted) in self._by_label.items():
            value = fields.get(label, "")
            if value in unwanted or (values and (len(values) > 1 or value not in values)):
                return False
        return True

    def exact(self, label: str) -> str | None:
        """Value that this field must have. None if the selector does not require one."""
        for name, operator, value in self.requirements:
            if name == label and operator == "=":
                return value
        return None

    def __str__(self) -> str:
        return ",".join(label + operator + _escape(value) for label, operator, value in self.requirements)


_terms = re.compile(r"((?:[^\\,]++|\\.|\\$)*+)(?:,|$)", re.DOTALL)
_operator = re.compile("!=|==|=")


@bounded_cache(entries=1024, key_length=256)
def parse_field_selector(text: str) -> FieldSelector:
    requirements = []
    for term in sorted(filter(None, _terms.findall(text))):
        match = _operator.search(term)
        if match is None:
            raise ParseError(f"invalid selector: '{text}'; can't understand '{term}'")
        operator = "!=" if match[0] == "!=" else "="
        label, value = term[: match.start()], _unescape(term[match.end() :])
        if label or value:
            requirements.append((label, operator, value))
    return FieldSelector(tuple(requirements))


def _escape(value: str) -> str:
    return re.sub(r"[\\,=]", r"\\\g<0>", value)


_escapes = re.compile(r"\\(.?)|[,=]", re.DOTALL)


def _unescape(value: str) -> str:
    def replacement(match: re.Match[str]) -> str:
        escaped = match[1]
        if escaped is None:
            raise ParseError(f"invalid field selector: unescaped character in value: {ord(match[0])}")
        if escaped not in ("\\", ",", "="):
            raise ParseError(f"invalid field selector: invalid escape sequence: {match[0]}")
        return escaped

    return _escapes.sub(replacement, value)


class MergedRequirements:
    """Requirements of a selector, merged by label. Matching costs O(labels of the object), not O(requirements)."""

    def __init__(self, requirements: Iterable[Requirement]) -> None:
        self._needed: set[str] = set()
        self._absent: set[str] = set()
        self._allowed: dict[str, frozenset[str]] = {}
        self._excluded: dict[str, set[str]] = {}
        self._above: dict[str, int] = {}
        self._below: dict[str, int] = {}
        for requirement in requirements:
            self._take(requirement)

    def _take(self, requirement: Requirement) -> None:
        key, values = requirement.key, requirement.values
        match requirement.operator:
            case "!":
                self._absent.add(key)
                return
            case "!=" | "notin":
                self._excluded.setdefault(key, set()).update(values)
                return
            case "gt":
                self._above[key] = max(int(values[0]), self._above.get(key, int(values[0])))
            case "lt":
                self._below[key] = min(int(values[0]), self._below.get(key, int(values[0])))
            case "=" | "==" | "in":
                self._allowed[key] = self._allowed.get(key, frozenset(values)) & frozenset(values)
        self._needed.add(key)

    def matches(self, labels: Labels) -> bool:
        count = 0
        for key, value in labels.items():
            if key in self._absent or value in self._excluded.get(key, ()):
                return False
            if key in self._needed:
                count += 1
                if key in self._allowed and value not in self._allowed[key]:
                    return False
                if not self._within(key, value):
                    return False
        return count == len(self._needed)

    def _within(self, key: str, value: str) -> bool:
        if key not in self._above and key not in self._below:
            return True
        number = parse_int64(value)
        if number is None:
            return False
        return self._above.get(key, number - 1) < number < self._below.get(key, number + 1)
