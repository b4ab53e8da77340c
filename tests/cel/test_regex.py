"""Compiled patterns: syntax, and the memory of the caches."""

from __future__ import annotations

import asyncio
from collections.abc import Iterator

import pytest
import re2  # type: ignore[import-untyped]

from kubist.base.offload import Lengthy, stay
from kubist.model.cel import regex

ORDINARY = r"^[a-z0-9]([-a-z0-9]{0,61}[a-z0-9])?$"
LARGE = r"^\p{L}{1,63}$"


@pytest.fixture(autouse=True)
def _empty_cache() -> Iterator[None]:
    regex._compiled.clear()
    yield
    regex._compiled.clear()


def kept() -> list[int]:
    """Number of kept patterns of each tier."""
    found = []
    tier: regex._Patterns | None = regex._compiled
    while tier is not None:
        found.append(len(tier))
        tier = tier.larger
    return found


def test_few_large_patterns_are_kept() -> None:
    assert sum(limit * entries for limit, entries in regex.TIERS) < 200 << 20
    for number in range(10):
        assert regex.compile(f"{ORDINARY}|{number}").search("a-b")
        assert regex.compile(rf"^\p{{L}}{{1,16}}{number}$").search(f"a{number}")
        assert regex.compile(f"{LARGE}|{number}").search("é")
    ordinary, medium, large = kept()
    assert (ordinary, medium) == (10, 10)
    assert 0 < large <= regex.TIERS[-1][1]


def test_kept_patterns_are_compiled_once() -> None:
    for pattern in (ORDINARY, r"^\p{L}{1,16}$", LARGE):
        assert regex.compile(pattern) is regex.compile(pattern)


def test_library_keeps_no_patterns() -> None:
    regex.compile(LARGE)
    assert re2._Regexp._make.cache_info().currsize == 0


def test_too_large_pattern_is_an_error() -> None:
    with pytest.raises(regex.RegexError, match="pattern too large"):
        regex.compile(r"\p{L}{1,1000}")
    assert kept() == [0, 0, 0]


def test_costly_pattern_leaves_the_event_loop_once() -> None:
    async def compile_aside() -> None:
        regex.compile_aside("^a$")
        with pytest.raises(Lengthy):
            regex.compile_aside(LARGE)
        compiled = stay(regex.compile_aside, LARGE)
        assert regex.compile_aside(LARGE) is compiled

    asyncio.run(compile_aside())
