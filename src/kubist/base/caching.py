"""Bounded caches: a maximum number of entries and a maximum key length.

Every cache with keys from clients uses this module. A limit on entries alone is not enough, because a few hundred long
keys could fill the memory. Long keys are never stored; their values are computed each time. A full cache is emptied, so
an entry needs no bookkeeping. A hit is one dict lookup in C: 420 instructions, compared with 500 of
`functools.lru_cache` (`benchmarks/optimisations.py`).

Threads may share a cache: each step is one atomic dict operation. At worst two threads compute the same value.
"""

from __future__ import annotations

from collections.abc import Callable, Hashable
from dataclasses import fields, is_dataclass
from functools import wraps
from typing import Any, Generic, TypeVar, TypeVarTuple, cast

K = TypeVar("K")
V = TypeVar("V")
Parameters = TypeVarTuple("Parameters")

ITEM = 16
MANY = 100_000
"""Maximum number of items in a tuple. Longer tuples are never stored."""


def key_length(key: object) -> int:
    """Length of a key in characters or bytes. Each item of a tuple adds `ITEM`, because small objects take memory
    too."""
    if isinstance(key, (str, bytes)):
        return len(key)
    if isinstance(key, (tuple, frozenset)):
        return ITEM * len(key) + (sum(map(key_length, key)) if len(key) <= MANY else 0)
    if isinstance(key, int):
        return key.bit_length() // 8
    if is_dataclass(key) and type(key).__hash__ is not object.__hash__:
        return sum(key_length(getattr(key, part.name)) for part in fields(key) if part.compare)
    if key is None or isinstance(key, float) or type(key).__hash__ is object.__hash__:
        return 0  # compared by identity: their number is limited, not their size
    raise TypeError(f"no limit is known for keys of type {type(key).__name__}")


class BoundedCache(dict[K, V], Generic[K, V]):
    """Dict with at most `entries` keys of at most `key_length` characters each.

    Look up with `get` and store with `cache[key] = value`. `update` and `setdefault` would bypass the limits,
    so they raise TypeError.
    """

    __slots__ = ("entries", "key_length")

    def __init__(self, *, entries: int, key_length: int) -> None:
        super().__init__()
        self.entries = entries
        self.key_length = key_length

    def __setitem__(self, key: K, value: V) -> None:
        if key_length(key) <= self.key_length:
            if len(self) >= self.entries:
                self.clear()
            if isinstance(key, bytes):
                # A copy takes only its length. A result of orjson keeps its buffer of at least 4 KB.
                key = cast("K", bytes(memoryview(key)))
            super().__setitem__(key, value)

    def update(self, *args: Any, **kwargs: Any) -> None:
        raise TypeError("a bounded cache is filled one key at a time")

    def setdefault(self, *args: Any) -> Any:
        raise TypeError("a bounded cache is filled one key at a time")


class ComputedCache(BoundedCache[K, V]):
    """Bounded cache that computes missing values."""

    __slots__ = ("compute",)

    def __init__(self, compute: Callable[[K], V], *, entries: int, key_length: int) -> None:
        super().__init__(entries=entries, key_length=key_length)
        self.compute = compute

    def __missing__(self, key: K) -> V:
        value = self.compute(key)
        self[key] = value
        return value


def bounded_cache(
    *, entries: int, key_length: int
) -> Callable[[Callable[[*Parameters], V]], Callable[[*Parameters], V]]:
    """Decorator that caches the results of a function by its positional arguments.

    Exceptions are not cached. With one argument, a hit runs no Python function.
    """

    def decorate(function: Callable[[*Parameters], V]) -> Callable[[*Parameters], V]:
        if function.__code__.co_argcount == 1:
            single = cast("Callable[[Any], V]", function)
            return cast(
                "Callable[[*Parameters], V]",
                ComputedCache(single, entries=entries, key_length=key_length).__getitem__,
            )
        cache = ComputedCache[tuple[*Parameters], V](
            lambda key: function(*key), entries=entries, key_length=key_length
        )
        look_up = cache.__getitem__

        @wraps(function)
        def cached(*arguments: *Parameters) -> V:
            return look_up(arguments)

        return cached

    return decorate


Value = TypeVar("Value")
Problem = TypeVar("Problem")
Validate = Callable[[Value, *Parameters], list[Problem]]


def skip_validated(
    key: Callable[[Value], Hashable | None], *, entries: int = 4096, key_length: int = 1024
) -> Callable[[Validate[Value, *Parameters, Problem]], Validate[Value, *Parameters, Problem]]:
    """Decorator of a validation function: it does not run again for a value that gave no errors.

    The value is the first argument. It alone decides whether there are errors; the other arguments, such as the path,
    only change their text. `key` identifies the value; None means that it must always be validated. The function must
    have no other effect on a value with a key. It is available as `__wrapped__`, so that tests can compare both.
    """

    def decorate(
        validate: Validate[Value, *Parameters, Problem],
    ) -> Validate[Value, *Parameters, Problem]:
        valid: BoundedCache[Hashable, bool] = BoundedCache(entries=entries, key_length=key_length)

        @wraps(validate)
        def unless_known(value: Value, *rest: *Parameters) -> list[Problem]:
            known = key(value)
            if known in valid:
                return []
            errors = validate(value, *rest)
            if not errors and known is not None:
                valid[known] = True
            return errors

        return unless_known

    return decorate
