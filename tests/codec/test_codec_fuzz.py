"""Fuzzed bodies: whatever the bytes, a value or a `DecodeError`, soon."""

import contextlib
from pathlib import Path

from hypothesis import given, settings
from hypothesis import strategies as st

from kubist.codec import json, protobuf, yaml
from kubist.codec.errors import DecodeError
from kubist.schema.catalog import schema_for
from kubist.schema.strict import decode_body, decode_value

FAST = settings(max_examples=300, deadline=None, database=None)
POD = schema_for("", "v1", "Pod")
SAMPLE = protobuf.unwrap((Path(__file__).parent / "data/core.v1.Pod.pb").read_bytes()).raw
TEXT = (Path(__file__).parent / "data/core.v1.Service.json").read_bytes()
YAMLISH = st.text("abny0x1: -[]{}&*!|>'\"\\/#%@,.?\n\t<~", max_size=60).map(str.encode)
JSONISH = st.text('{}[]":,0123456789.eE+-truefalsn\\ud8 \n', max_size=60).map(str.encode)


@st.composite
def damaged(draw: st.DrawFn, sample: bytes) -> bytes:
    """A real body with a piece cut out, and bytes put in its place."""
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
        json.dumps(json.loads_strict(data)[0])
    with contextlib.suppress(DecodeError):
        json.dumps(decode_body(POD, data).object)
