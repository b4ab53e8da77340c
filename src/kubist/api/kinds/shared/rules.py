"""Vocabulary of field rules: the rules of a struct as data, in the order in which their errors are reported.

    TAINT = struct(
        field("key", qualified_name),
        field("value", label_value),
        field("effect", required, one_of("NoExecute", "NoSchedule", "None")),
    )
    errors = TAINT(taint, "spec.taints[0]")

A rule is a function of a value and its path. Absent fields have the value None. A rule that returns `Stop` ends the
rules of its value, like the short-circuiting tags of declarative validation (required, optional, maxItems).
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

from kubist.api.kinds.shared.update import immutable
from kubist.api.kinds.shared.values import repeats
from kubist.api.resources.strategy import Errors
from kubist.model.meta import fields, names
from kubist.model.meta.fields import FieldError
from kubist.model.meta.object import Object

Rule = Callable[[Any, str], Errors]


class Stop(list[FieldError]):
    """Errors after which the other rules of the same value are not checked."""


def struct(*rules: Rule) -> Rule:
    """All rules of one value."""

    def check(value: Any, path: str) -> Errors:
        errors: Errors = []
        for rule in rules:
            of_rule = rule(value, path)
            errors += of_rule
            if isinstance(of_rule, Stop):
                break
        return errors

    return check


def field(name: str, *rules: Rule) -> Rule:
    """Rules of a field of a struct. Fields of an absent struct are absent. The path of a whole object is empty."""
    check = struct(*rules)
    return lambda obj, path: check((obj or {}).get(name), f"{path}.{name}" if path else name)


def items(name: str, *rules: Rule, most: int = -1, unique: str | Callable[[Any], Any] | None = None) -> Rule:
    """Rules of each item of a list field. See `each`."""
    return field(name, each(*rules, most=most, unique=unique))


def each(*rules: Rule, most: int = -1, unique: str | Callable[[Any], Any] | None = None) -> Rule:
    """Rules of each item of a list. A list with more than `most` items is not checked further; -1 is no limit. Items
    must differ in `unique`, a field or the result of a function."""
    rule = struct(*rules)

    def check(values: Sequence[Any] | None, path: str) -> Errors:
        values = values or ()
        if 0 <= most < len(values):
            return [fields.too_many(path, len(values), most)]
        errors = [error for index, value in enumerate(values) for error in rule(value, f"{path}[{index}]")]
        if unique is None:
            return errors
        keys = [value.get(unique, "") if isinstance(unique, str) else unique(value) for value in values]
        return errors + [fields.duplicate(f"{path}[{index}]", keys[index]) for index in repeats(keys)]

    return check


def keys(name: str, rule: Rule, *, most: int) -> Rule:
    """Rules of each key of a map field, which is required."""

    def check(values: Object | None, path: str) -> Errors:
        if not values:
            return [fields.required(path)]
        if len(values) > most:
            return [fields.too_many(path, len(values), most)]
        return [error for key in values for error in rule(key, path)]

    return field(name, check)


def required(value: Any, path: str) -> Errors:
    return Stop([fields.required(path)]) if value is None or value == "" else []


def optional(value: Any, _path: str) -> Errors:
    """The following rules apply only to a value that is neither null nor empty text."""
    return Stop() if value is None or value == "" else []


def not_null(value: Any, path: str) -> Errors:
    return Stop([fields.required(path)]) if value is None else []


def nullable(value: Any, _path: str) -> Errors:
    """The following rules apply only to a value that is not null. Empty text is not null."""
    return Stop() if value is None else []


def text(messages: Callable[[str], list[str]]) -> Rule:
    """Rule for a text, from a function that returns error messages."""
    return lambda value, path: [
        fields.invalid(path, value or "", message) for message in messages(value or "")
    ]


def must(holds: Callable[[Any], object], why: str) -> Rule:
    """Rule for a value that must satisfy a condition."""
    return lambda value, path: [] if holds(value) else [fields.invalid(path, value, why)]


def one_of(*values: str) -> Rule:
    return lambda value, path: [] if value in values else [fields.not_supported(path, value or "", values)]


def max_bytes(limit: int) -> Rule:
    return lambda value, path: [fields.too_long(path, limit)] if len((value or "").encode()) > limit else []


def max_length(limit: int) -> Rule:
    """Maximum length of a text in characters. The message says bytes, as in kube-apiserver."""
    return lambda value, path: [fields.too_long(path, limit)] if len(value or "") > limit else []


def at_least(least: int, why: str) -> Rule:
    return lambda value, path: [fields.invalid(path, value or 0, why)] if (value or 0) < least else []


def at_most(most: int, why: str) -> Rule:
    return lambda value, path: [fields.invalid(path, value, why)] if (value or 0) > most else []


def unchanged(old: Any, type: str = "nullable") -> Rule:
    """Rejects a change of the value. The message shows it as Go's internal `type`."""
    return lambda value, path: immutable(value, old, path, type)


label = text(names.dns_label)
subdomain = text(names.dns_subdomain)
label_value = text(names.label_value)
path_segment = text(names.path_segment)
qualified_name = text(names.qualified_name)
