"""Bounded caches: limited entries, no long keys, correct values."""

from __future__ import annotations

import threading

import pytest

from kubist.caching import BoundedCache, ValidatedCache, bounded_cache, key_length


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


def test_validated_cache_is_bounded_in_entries_and_length() -> None:
    known = ValidatedCache(entries=3, key_length=36)
    for number in range(8):
        known.add((number,))
        assert (number,) in known
        assert len(known) <= 3
    known.clear()
    known.add(b"1" * 37)
    known.add(("1234", "5678"))  # few items, but long ones
    known.add(b"1" * 36)
    assert set(known) == {b"1" * 36}
