"""Functions of jq that run a filter: `select`, `map`, `any`, `sort_by` and others."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from typing import Any

from kubist.cluster.simulation.stages.jq import filters, values
from kubist.cluster.simulation.stages.jq.values import Failure, Filter, Scope, array, order, truth, type_of


def nothing() -> Filter:
    def run(_data: Any, _scope: Scope) -> Iterator[Any]:
        return iter(())

    return run


def error(*message: Filter) -> Filter:
    def run(data: Any, scope: Scope) -> Iterator[Any]:
        for value in message[0](data, scope) if message else (data,):
            raise Failure(value)
        return iter(())

    return run


def select(test: Filter) -> Filter:
    def run(data: Any, scope: Scope) -> Iterator[Any]:
        for value in test(data, scope):
            if truth(value):
                yield data

    return run


def of_type(*kinds: str) -> Callable[[], Filter]:
    def run(data: Any, scope: Scope) -> Iterator[Any]:
        scope.budget.spend()
        if type_of(data) in kinds:
            yield data

    return lambda: run


def map_(inner: Filter) -> Filter:
    return filters.collect(filters.pipe([filters.iterate(filters.identity), inner]))


def map_values(inner: Filter) -> Filter:
    def run(data: Any, scope: Scope) -> Iterator[Any]:
        if isinstance(data, dict):
            changed = {key: [*inner(value, scope)][:1] for key, value in data.items()}
            yield {key: found[0] for key, found in changed.items() if found}
        else:
            yield [found[0] for value in values.items(data) if (found := [*inner(value, scope)][:1])]

    return run


def quantified(
    quantify: Callable[[Iterable[bool]], bool],
) -> tuple[Callable[..., Filter], Callable[..., Filter]]:
    """`any` or `all`: over the items of the input, with a condition or without."""

    def of_items(inner: Filter) -> Filter:
        def run(data: Any, scope: Scope) -> Iterator[Any]:
            yield quantify(truth(result) for item in values.items(data) for result in inner(item, scope))

        return run

    def of_outputs(generator: Filter, inner: Filter) -> Filter:
        def run(data: Any, scope: Scope) -> Iterator[Any]:
            yield quantify(truth(result) for item in generator(data, scope) for result in inner(item, scope))

        return run

    return of_items, of_outputs


def by(name: str, arrange: Callable[[list[tuple[Any, Any]]], Any]) -> Callable[[Filter], Filter]:
    """Function of an array whose items are ordered by the outputs of a filter."""

    def make(inner: Filter) -> Filter:
        def run(data: Any, scope: Scope) -> Iterator[Any]:
            scope.budget.spend(1 + len(array(data, name)))
            pairs = [(order(list(inner(item, scope))), item) for item in data]
            yield arrange(pairs)

        return run

    return make


def sorted_by(pairs: list[tuple[Any, Any]]) -> list[Any]:
    return [item for _, item in sorted(pairs, key=lambda pair: pair[0])]


def groups(pairs: list[tuple[Any, Any]]) -> list[list[Any]]:
    found: list[tuple[Any, list[Any]]] = []
    for key, item in sorted(pairs, key=lambda pair: pair[0]):
        if found and found[-1][0] == key:
            found[-1][1].append(item)
        else:
            found.append((key, [item]))
    return [items for _, items in found]


def extreme(choose: Callable[..., Any]) -> Callable[[list[tuple[Any, Any]]], Any]:
    return lambda pairs: choose(pairs, key=lambda pair: pair[0])[1] if pairs else None


def first(inner: Filter) -> Filter:
    def run(data: Any, scope: Scope) -> Iterator[Any]:
        for value in inner(data, scope):
            yield value
            return

    return run


def last(inner: Filter) -> Filter:
    def run(data: Any, scope: Scope) -> Iterator[Any]:
        yield from list(inner(data, scope))[-1:]

    return run


def is_empty(inner: Filter) -> Filter:
    def run(data: Any, scope: Scope) -> Iterator[Any]:
        for _ in inner(data, scope):
            yield False
            return
        yield True

    return run


def now() -> Filter:
    def run(_data: Any, scope: Scope) -> Iterator[Any]:
        scope.budget.spend()
        yield scope.now

    return run
