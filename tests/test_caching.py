"""Bounded caches: limited entries, no long keys, correct values."""

from __future__ import annotations

import threading
import tracemalloc

import orjson
import pytest

from kubist.base.caching import BoundedCache, bounded_cache, key_length, skip_validated


@pytest.mark.parametrize(
    ("key", "length"),
    [
        ("abc", 3),
        (b"abcd", 4),
        ((), 0),
        (("ab", b"c"), 35),
        (("ab", ("c", "d")), 68),
        (frozenset({"abc"}), 19),
        (1 << 8_000, 1_000),
        (None, 0),
    ],
)
def test_key_length_counts_every_character(key: object, length: int) -> None:
    assert key_length(key) == length


def test_full_cache_is_emptied() -> None:
    cache: BoundedCache[str, int] = BoundedCache(entries=3, key_length=10)
    for number in range(8):
        cache[str(number)] = number
        assert cache.get(str(number)) == number
        assert len(cache) <= 3


def test_short_keys_take_little_memory() -> None:
    """A result of `orjson.dumps` keeps its buffer of at least 4 KB."""
    cache: BoundedCache[bytes, bool] = BoundedCache(entries=1000, key_length=100)
    tracemalloc.start()
    try:
        for number in range(100):
            cache[orjson.dumps({"a": number})] = True
        taken, _ = tracemalloc.get_traced_memory()
    finally:
        tracemalloc.stop()
    assert len(cache) == 100 and cache[orjson.dumps({"a": 7})]
    assert taken < 50_000


def test_long_keys_are_not_stored() -> None:
    cache: BoundedCache[object, int] = BoundedCache(entries=3, key_length=4)
    cache["12345"] = 1
    cache[("12", "34")] = 2
    cache["1234"] = 3
    assert cache == {"1234": 3}


def test_cache_methods_cannot_bypass_the_limits() -> None:
    cache: BoundedCache[str, int] = BoundedCache(entries=3, key_length=4)
    with pytest.raises(TypeError):
        cache.update({"12345": 1})
    with pytest.raises(TypeError):
        cache.setdefault("12345", 1)


def test_decorated_function_computes_once_for_short_keys_and_always_for_long_ones() -> None:
    calls: list[str] = []

    @bounded_cache(entries=2, key_length=4)
    def double(text: str) -> str:
        calls.append(text)
        return text * 2

    assert [double("ab"), double("ab"), double("abcde"), double("abcde")] == ["abab"] * 2 + ["abcdeabcde"] * 2
    assert calls == ["ab", "abcde", "abcde"]


def test_decorated_function_takes_several_arguments() -> None:
    calls: list[tuple[str, bytes]] = []

    @bounded_cache(entries=2, key_length=36)
    def joined(first: str, second: bytes) -> str:
        calls.append((first, second))
        return first + second.decode()

    assert [joined("a", b"b"), joined("a", b"b"), joined("aaaa", b"bbbb"), joined("aaaa", b"bbbb")] == [
        "ab",
        "ab",
        "aaaabbbb",
        "aaaabbbb",
    ]
    assert calls == [("a", b"b"), ("aaaa", b"bbbb"), ("aaaa", b"bbbb")]


def test_decorated_function_does_not_cache_errors() -> None:
    calls: list[str] = []

    @bounded_cache(entries=2, key_length=8)
    def number(text: str) -> int:
        calls.append(text)
        return int(text)

    for _ in range(2):
        with pytest.raises(ValueError, match="invalid literal"):
            number("x")
    assert calls == ["x", "x"]


def test_threads_share_a_cache() -> None:
    @bounded_cache(entries=16, key_length=8)
    def number(text: str) -> int:
        return int(text)

    wrong: list[str] = []

    def work() -> None:
        for turn in range(20_000):
            text = str(turn % 50)
            if number(text) != turn % 50:
                wrong.append(text)

    threads = [threading.Thread(target=work) for _ in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert not wrong


def test_valid_values_are_validated_once() -> None:
    calls: list[tuple[str, str]] = []

    @skip_validated(str.lower, entries=2, key_length=4)
    def validate(name: str, path: str) -> list[str]:
        calls.append((name, path))
        return [f"{path}: {name} is bad"] if name.startswith("b") else []

    for path in ("a", "b"):
        assert validate("good", path) == []
        assert validate("bad", path) == [f"{path}: bad is bad"]
        assert validate("fine but long", path) == []
    assert validate("GOOD", "c") == []
    long = "fine but long"
    assert calls == [("good", "a"), ("bad", "a"), (long, "a"), ("bad", "b"), (long, "b")]
    assert validate.__wrapped__("GOOD", "c") == []  # type: ignore[attr-defined]
    assert calls[-1] == ("GOOD", "c")


def test_values_without_a_key_are_always_validated() -> None:
    calls: list[str] = []

    def key(name: str) -> str | None:
        return name if name.isalpha() else None

    @skip_validated(key)
    def validate(name: str, _path: str) -> list[str]:
        calls.append(name)
        return []

    for name in ("a", "1", "a", "1"):
        validate(name, "p")
    assert calls == ["a", "1", "1"]
