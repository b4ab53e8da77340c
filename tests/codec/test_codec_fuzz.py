"""Fuzzed bodies: any bytes give a value or a `DecodeError` within a time limit."""

import contextlib
from json import loads
from pathlib import Path
from typing import Any

from hypothesis import given, settings
from hypothesis import strategies as st

from kubist.base.jsontext import json
from kubist.base.jsontext.errors import DecodeError
from kubist.model.codec import protobuf, yaml
from kubist.model.schema.catalog import schema_for
from kubist.model.schema.strict import decode_body, decode_value

FAST = settings(max_examples=300, deadline=None, database=None)
POD = schema_for("", "v1", "Pod")
SAMPLE = protobuf.unwrap((Path(__file__).parent / "data/core.v1.Pod.pb").read_bytes()).raw
TEXT = (Path(__file__).parent / "data/core.v1.Service.json").read_bytes()
YAMLISH = st.text("abny0x1: -[]{}&*!|>'\"\\/#%@,.?\n\t<~", max_size=60).map(str.encode)
JSONISH = st.text('{}[]":,0123456789.eE+-truefalsn\\ud8 \n', max_size=60).map(str.encode)


@st.composite
def damaged(draw: st.DrawFn, sample: bytes) -> bytes:
    """Real body with a piece replaced by other bytes."""
    begin = draw(st.integers(0, len(sample)))
    end = draw(st.integers(begin, min(len(sample), begin + 40)))
    return sample[:begin] + draw(st.binary(max_size=8)) + sample[end:]


@FAST
@given(st.binary(max_size=80) | damaged(SAMPLE))
def test_protobuf(data: bytes) -> None:
    with contextlib.suppress(DecodeError):
        protobuf.unwrap(b"k8s\0" + data)
    with contextlib.suppress(DecodeError):
        decoded = protobuf.decode(POD, data)
        assert protobuf.decode(POD, protobuf.encode(POD, decoded)) == decoded
        json.dumps(decoded)


@FAST
@given(YAMLISH | st.binary(max_size=60) | damaged(TEXT))
def test_yaml(data: bytes) -> None:
    with contextlib.suppress(DecodeError):
        value = yaml.parse(data).value
        assert yaml.parse(yaml.dumps(value)).value == value
    with contextlib.suppress(DecodeError):
        decode_value(POD, yaml.parse(data).value)


@FAST
@given(JSONISH | st.binary(max_size=60) | damaged(TEXT))
def test_json(data: bytes) -> None:
    with contextlib.suppress(DecodeError):
        json.dumps(json.read_repeats(data)[0])
    with contextlib.suppress(DecodeError):
        json.dumps(decode_body(POD, data).object)


NUMBERS = st.sampled_from(("-0", "1.0", "1e400", "-1e-400", "9223372036854775808", "1" * 300, "1E5"))
KEYS = st.sampled_from(("metadata", "spec", "labels", "name", "a", "containers", "ports", "kind", "image"))


def objects(inner: st.SearchStrategy[str]) -> st.SearchStrategy[str]:
    pairs = st.lists(st.tuples(KEYS, inner), max_size=5)
    return pairs.map(
        lambda found: f"{{{','.join(f'{json.dumps(key).decode()}:{text}' for key, text in found)}}}"
    )


def lists(inner: st.SearchStrategy[str]) -> st.SearchStrategy[str]:
    return st.lists(inner, max_size=3).map(lambda found: f"[{','.join(found)}]")


SCALARS = NUMBERS | st.sampled_from(("null", "true", '"a"', "1"))
REPEATING = objects(st.recursive(SCALARS, lambda inner: objects(inner) | lists(inner), max_leaves=20))


@FAST
@given(REPEATING.map(str.encode))
def test_repeated_keys(data: bytes) -> None:
    """All parsers return plain values and find the same duplicate keys."""
    try:
        value, repeats = json.read_repeats(data)
    except DecodeError:  # a number that no float can hold
        return
    assert plain(value)
    assert value == loads(data, parse_int=number)
    assert bool(repeats.duplicate(value)) == (value != loads(data, parse_int=number, object_pairs_hook=told))
    with contextlib.suppress(DecodeError):
        decoded = decode_body(POD, data)
        json.dumps(decoded.object)
        assert plain(decoded.object)
        assert {text for text in decoded.complaints if text.startswith("duplicate")} <= set(
            repeats.duplicate(value)
        )


def plain(value: Any) -> bool:
    """Whether a value has only JSON's types, without subclasses."""
    if isinstance(value, dict):
        return type(value) is dict and all(map(plain, value.values()))
    if isinstance(value, list):
        return type(value) is list and all(map(plain, value))
    return type(value) in (str, int, float, bool, type(None))


def number(digits: str) -> int | float:
    return int(digits) if -(1 << 63) <= int(digits) < 1 << 63 else float(digits)


def told(pairs: list[tuple[str, Any]]) -> Any:
    """Value that differs for an object with a duplicate key."""
    return dict(pairs) if len(dict(pairs)) == len(pairs) else pairs
