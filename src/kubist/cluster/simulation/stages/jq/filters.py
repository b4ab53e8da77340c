"""Filters of jq's syntax: each function makes a filter of other filters."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any

from kubist.cluster.simulation.stages.jq import values
from kubist.cluster.simulation.stages.jq.values import Failure, Filter, Scope, truth
from kubist.cluster.simulation.stages.limits import check_size


def identity(data: Any, scope: Scope) -> Iterator[Any]:
    scope.budget.spend()
    yield data


def recurse(data: Any, scope: Scope) -> Iterator[Any]:
    """`..`: the input and all values below it."""
    left = [data]
    while left:
        scope.budget.spend()
        value = left.pop()
        yield value
        if isinstance(value, list | dict):
            left += reversed(values.items(value))


def constant(value: Any) -> Filter:
    def run(_data: Any, scope: Scope) -> Iterator[Any]:
        scope.budget.spend()
        yield value

    return run


def variable(name: str) -> Filter:
    def run(_data: Any, scope: Scope) -> Iterator[Any]:
        scope.budget.spend()
        yield scope.variables[name]

    return run


def pipe(stages: list[Filter]) -> Filter:
    made = stages[-1]
    for stage in reversed(stages[:-1]):
        made = _pipe(stage, made)
    return made


def _pipe(first: Filter, second: Filter) -> Filter:
    def run(data: Any, scope: Scope) -> Iterator[Any]:
        for value in first(data, scope):
            yield from second(value, scope)

    return run


def comma(branches: list[Filter]) -> Filter:
    if len(branches) == 1:
        return branches[0]

    def run(data: Any, scope: Scope) -> Iterator[Any]:
        for branch in branches:
            yield from branch(data, scope)

    return run


def alternative(first: Filter, second: Filter) -> Filter:
    """`a // b`: the outputs of `a` that are neither null nor false; without any, those of `b`."""

    def run(data: Any, scope: Scope) -> Iterator[Any]:
        found = False
        for value in first(data, scope):
            if truth(value):
                found = True
                yield value
        if not found:
            yield from second(data, scope)

    return run


def either(first: Filter, second: Filter) -> Filter:
    def run(data: Any, scope: Scope) -> Iterator[Any]:
        for value in first(data, scope):
            if truth(value):
                yield True
            else:
                for other in second(data, scope):
                    yield truth(other)

    return run


def both(first: Filter, second: Filter) -> Filter:
    def run(data: Any, scope: Scope) -> Iterator[Any]:
        for value in first(data, scope):
            if not truth(value):
                yield False
            else:
                for other in second(data, scope):
                    yield truth(other)

    return run


def binary(first: Filter, second: Filter, operate: Callable[[Any, Any], Any]) -> Filter:
    def run(data: Any, scope: Scope) -> Iterator[Any]:
        for right in second(data, scope):
            for left in first(data, scope):
                scope.budget.spend_on(left)
                scope.budget.spend_on(right)
                yield operate(left, right)

    return run


def negative(operand: Filter) -> Filter:
    def run(data: Any, scope: Scope) -> Iterator[Any]:
        for value in operand(data, scope):
            yield -values.number(value)

    return run


def field(target: Filter, name: str) -> Filter:
    def run(data: Any, scope: Scope) -> Iterator[Any]:
        for value in target(data, scope):
            scope.budget.spend()
            yield value.get(name) if isinstance(value, dict) else values.index(value, name)

    return run


def index(target: Filter, key: Filter) -> Filter:
    def run(data: Any, scope: Scope) -> Iterator[Any]:
        for value in target(data, scope):
            for wanted in key(data, scope):
                scope.budget.spend()
                yield values.index(value, wanted)

    return run


def slice_(target: Filter, start: Filter | None, end: Filter | None) -> Filter:
    nothing = constant(None)

    def run(data: Any, scope: Scope) -> Iterator[Any]:
        for value in target(data, scope):
            for last in (end or nothing)(data, scope):
                for first in (start or nothing)(data, scope):
                    scope.budget.spend_on(value)
                    yield values.slice_of(value, first, last)

    return run


def iterate(target: Filter) -> Filter:
    def run(data: Any, scope: Scope) -> Iterator[Any]:
        for value in target(data, scope):
            for item in values.items(value):
                scope.budget.spend()
                yield item

    return run


def bind(source: Filter, name: str, body: Filter) -> Filter:
    def run(data: Any, scope: Scope) -> Iterator[Any]:
        for value in source(data, scope):
            yield from body(data, scope.bind(name, value))

    return run


def collect(inner: Filter) -> Filter:
    def run(data: Any, scope: Scope) -> Iterator[Any]:
        made = list(inner(data, scope))
        scope.budget.spend_on(made)
        yield made

    return run


def interpolate(parts: list[str | Filter]) -> Filter:
    def texts(at: int, data: Any, scope: Scope) -> Iterator[str]:
        if at == len(parts):
            yield ""
            return
        part = parts[at]
        for rest in texts(at + 1, data, scope):
            if isinstance(part, str):
                yield part + rest
                continue
            for value in part(data, scope):
                shown = value if isinstance(value, str) else values.text(value)
                scope.budget.spend(1 + len(shown) // 16)
                check_size(len(shown) + len(rest))
                yield shown + rest

    def run(data: Any, scope: Scope) -> Iterator[Any]:
        return texts(0, data, scope)

    return run


def combine(
    members: list[tuple[Filter, Filter]], at: int, made: dict[str, Any], data: Any, scope: Scope
) -> Iterator[Any]:
    """Objects of all combinations of keys and values from a member on."""
    if at == len(members):
        scope.budget.spend_on(made)
        yield made
        return
    key, value = members[at]
    for name in key(data, scope):
        if not isinstance(name, str):
            raise Failure(f"expected a string for an object key but got: {values.described(name)}")
        for item in value(data, scope):
            yield from combine(members, at + 1, {**made, name: item}, data, scope)


def condition(test: Filter, then: Filter, otherwise: Filter) -> Filter:
    def run(data: Any, scope: Scope) -> Iterator[Any]:
        for value in test(data, scope):
            yield from (then if truth(value) else otherwise)(data, scope)

    return run


def attempt(body: Filter, handler: Filter | None) -> Filter:
    """`try body catch handler`, and `body?`."""

    def run(data: Any, scope: Scope) -> Iterator[Any]:
        try:
            yield from body(data, scope)
        except Failure as failure:
            if handler is not None:
                yield from handler(failure.value, scope)

    return run
