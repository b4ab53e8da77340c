"""Properties of decoding and encoding that hold for every kind and any JSON."""

import contextlib
from typing import Any
from unittest import mock

import orjson
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from kubist.base.jsontext.errors import DecodeError
from kubist.model.codec import protobuf
from kubist.model.schema import catalog
from kubist.model.schema import decode as decoder
from kubist.model.schema.decode import decode
from kubist.model.schema.node import Schema
from kubist.model.schema.strict import decode_body

from .strategies import JSON, fitting, nearly_fitting

KINDS = sorted(catalog._data()["kinds"].values())
PROTOBUF_KINDS = sorted(
    name for name in set(KINDS) if catalog.by_name(name).proto and "WatchEvent" not in name
)
FAST = settings(
    max_examples=150,
    deadline=None,
    database=None,
    suppress_health_check=[HealthCheck.too_slow, HealthCheck.data_too_large],
)


def schemas(names: list[str]) -> st.SearchStrategy[Schema]:
    return st.sampled_from(names).map(catalog.by_name)


@FAST
@given(st.data())
def test_any_json_decodes_or_is_rejected(data: st.DataObject) -> None:
    schema = data.draw(schemas(KINDS))
    value = data.draw(nearly_fitting(schema) | JSON)
    with contextlib.suppress(DecodeError):
        decoded = decode_body(schema, orjson.dumps(value)).object
        assert orjson.loads(orjson.dumps(decoded)) == decoded


def outcome(schema: Schema, value: Any) -> tuple[bytes, list[Any]] | str:
    """Canonical object and findings, or the error."""
    flags: list[Any] = []
    try:
        return orjson.dumps(decode(schema, value, flags)), flags
    except DecodeError as error:
        return str(error)


@FAST
@given(st.data())
def test_decoder_that_stops_early_equals_one_that_looks_for_every_field(data: st.DataObject) -> None:
    schema = data.draw(schemas(KINDS))
    value = data.draw(fitting(schema) | nearly_fitting(schema))
    found = outcome(schema, value)
    with (
        mock.patch.object(decoder, "PART", 1000),
        mock.patch.dict(decoder._compiled, clear=True),
        mock.patch.dict(decoder._compiled_lists, clear=True),
    ):
        assert outcome(schema, value) == found


@FAST
@given(st.data())
def test_decoding_again_changes_nothing(data: st.DataObject) -> None:
    schema = data.draw(schemas(KINDS))
    once = decode(schema, data.draw(fitting(schema)))
    assert orjson.dumps(decode(schema, orjson.loads(orjson.dumps(once)))) == orjson.dumps(once)


@FAST
@given(st.data())
def test_canonical_objects_survive_protobuf(data: st.DataObject) -> None:
    schema = data.draw(schemas(PROTOBUF_KINDS))
    canonical = decode(schema, data.draw(fitting(schema)))
    message = protobuf.encode(schema, canonical)
    assert without_empties(protobuf.decode(schema, message)) == without_empties(canonical)
    assert protobuf.encode(schema, protobuf.decode(schema, message)) == message


def without_empties(value: Any) -> Any:
    """Object without empty lists, because only JSON distinguishes them from null."""
    if isinstance(value, dict):
        return {key: without_empties(item) for key, item in value.items()}
    if isinstance(value, list):
        return [without_empties(item) for item in value] or None
    return value
