"""YAML emitter: the same text as libyaml's emitter, except where the reference differs."""

from __future__ import annotations

import asyncio
from typing import Any

import orjson
import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st

from kubist.api.verbs.responses import representation
from kubist.model.codec import yaml, yaml_emit
from kubist.model.codec.negotiate import JSON, YAML, MediaType

from .stored import config_map, entry, resource

WORDS = (
    "", "~", "null", "Null", "y", "N", "yes", "ON", "off", "true", "False", "<<", "=", "a", "2001-01-01",
    "2001-01-01T00:00:00Z", "1:30", "190:20:30.15", "0b11", "1_000", "+1", "-1", "0o17", "017", "0x1F", ".5",
    "5.", "1e3", "1e", ".inf", "-.INF", ".nan", "12345678901234567890123", "a: b", "a:b", "a:", ":a", ": a", "#a",
    "a #b", "a#b", "-", "- a", "-a", "--- a", "...", "?", "? a", "?a", "!a", "&a", "*a", "%a", "@a", "`a", "[a]",
    "{a}", "a,b", ",a", "'a'", '"a"', "it's", 'say "a"', "\\", " a", "a ", "  ", "\t", "a\tb", "\n", "\n\n", "a\n",
    "a\n\n", "\na", "a\nb", " a\nb", "a\n b", "a \nb", "a\nb ", "\x01", "\x7f", "\xa0", "é", "漢字", "😀", "\ufffe",
    "k" * 128, "k" * 129, "é" * 70, "word " * 30, ("word " * 30).strip(), "word  " * 25, "#" + "word " * 30,
    "'" + "word " * 30, "yes: " * 30, '"q" ' * 30, "\t" + "word " * 30, "\t" + "word  " * 30, "é " * 60 + ".",
    'k:{"name":"main"}', "f:metadata", ".", "v:\"" + "x" * 200 + '"',
)  # fmt: skip
CHARS = "abyn019 .:,-_#?'\"\\[]{}&*!|>%@`~=<+/é漢😀\t\n\r\x01\x7f\xa0\ufffe"
STRINGS = (
    st.sampled_from(WORDS) | st.text(CHARS, max_size=12) | st.text("ab cd#:'\"é", min_size=60, max_size=200)
)
SCALARS = STRINGS | st.none() | st.booleans() | st.integers(-(1 << 63), (1 << 64) - 1)
VALUES = st.recursive(
    SCALARS, lambda of: st.lists(of, max_size=4) | st.dictionaries(STRINGS, of, max_size=5), max_leaves=25
)


def by_libyaml(value: Any) -> bytes:
    return yaml_emit._by_events(value)


@given(st.dictionaries(STRINGS, VALUES, min_size=1, max_size=4) | st.lists(VALUES, min_size=1, max_size=4))
@example({word: word for word in WORDS})
@example([{word: [word, [word]]} for word in WORDS])
@example({"a" * 130: {"b" * 130: ["c", ["d"], {"e": "word " * 30}]}})
@settings(max_examples=200, deadline=None)
def test_emitted_yaml_equals_libyaml(value: Any) -> None:
    assert yaml.dumps(value) == by_libyaml(value)


@pytest.mark.parametrize("text", [text for text in WORDS if text != "<<"])
def test_emitted_yaml_round_trips(text: str) -> None:
    value = {text: text, "list": [text, {text: text}]}
    assert yaml.parse(yaml.dumps(value)).value == value


@pytest.mark.parametrize(
    ("value", "text"),
    [
        (1.5, "1.5"),
        (1e21, "1e+21"),
        (12345678.9, "1.23456789e+07"),
        (1e-5, "1e-05"),
        (0.0001, "0.0001"),
        (100000.5, "100000.5"),
        (1 << 70, "1.1805916207174113e+21"),
        (-2.5e-300, "-2.5e-300"),
        (0.0, "0"),
    ],
)
def test_large_and_small_yaml_floats_have_an_exponent(value: float, text: str) -> None:
    assert yaml.dumps({"a": value}) == f"a: {text}\n".encode()


@pytest.mark.parametrize(
    ("value", "text"),
    [
        ("a \x85 b", "a b"),
        ("a\x85\x85b", "|-\n  a\n  b"),
        ("\ufeff9", '"\\uFEFF\\x39"'),
        ("a\n\n", "|+\n  a\n"),
    ],
)
def test_special_characters_are_escaped_like_the_reference(value: str, text: str) -> None:
    assert yaml.dumps({"a": value}).decode() == f"a: {text}\n"


def test_yaml_of_any_depth_is_emitted() -> None:
    value: Any = "leaf"
    for _ in range(5000):
        value = {"a": [value]}
    assert yaml.dumps(value).count(b"a:") == 5000


@pytest.mark.parametrize("count", [0, 1, 3])
@pytest.mark.parametrize("serializer", [JSON, YAML])
@pytest.mark.parametrize("shown", ["", "PartialObjectMetadataList", "Table"])
def test_yaml_list_of_items_equals_the_whole_list(serializer: str, shown: str, count: int) -> None:
    entries = [config_map(f"map-{number}") for number in range(count)]
    meta = {"resourceVersion": "9", "continue": "x: y"}
    version = "v1" if shown else ""
    plain = representation(resource("ConfigMap"), MediaType(JSON, shown, version), "None")
    written = representation(
        resource("ConfigMap"), MediaType(serializer, shown, version, serializer == JSON), "None"
    )
    whole = orjson.loads(b"".join(plain.list(entries, meta)))
    expected = yaml.dumps(whole) if serializer == YAML else orjson.dumps(whole, option=orjson.OPT_INDENT_2)
    assert b"".join(written.list(entries, meta)) == expected


def test_long_yaml_list_does_not_block_the_loop() -> None:
    data = {f"key-{number}": "some text: with a colon" for number in range(30)}
    entries = [
        entry(resource("ConfigMap"), {"metadata": {"name": f"m{n}"}, "data": data}) for n in range(1500)
    ]
    shown = representation(resource("ConfigMap"), MediaType(YAML))
    turns = 0

    async def others() -> None:
        nonlocal turns
        while True:
            await asyncio.sleep(0)
            turns += 1

    async def both() -> list[bytes]:
        task = asyncio.ensure_future(others())
        chunks = await shown.whole_list(entries, {"resourceVersion": "9"})
        task.cancel()
        return chunks

    assert len(asyncio.run(both())) == 1502
    assert turns > 5
