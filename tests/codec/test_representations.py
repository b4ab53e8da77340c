"""PartialObjectMetadata, protobuf, and the bound on their cached pieces."""

from __future__ import annotations

import asyncio

import orjson
import pytest

from kubist.api.representation.budget import Kept
from kubist.api.verbs.responses import representation
from kubist.model.codec import protobuf
from kubist.model.codec import protobuf_wire as wire
from kubist.model.codec.negotiate import JSON, PROTOBUF, MediaType
from kubist.model.meta.object import Object
from kubist.model.meta.status import APIError
from tests.codec.stored import config_map, entry, resource

META = {"resourceVersion": "9", "continue": "abc"}


def test_metadata_is_a_slice_of_the_stored_bytes() -> None:
    shown = representation(resource("ConfigMap"), MediaType(JSON, "PartialObjectMetadataList", "v1"))
    stored = config_map()
    listed = orjson.loads(b"".join(shown.list([stored, config_map("b")], META)))
    assert listed["metadata"] == META
    assert [item["metadata"]["name"] for item in listed["items"]] == ["a", "b"]
    assert listed["items"][0] == {
        "kind": "PartialObjectMetadata",
        "apiVersion": "meta.k8s.io/v1",
        "metadata": stored.object()["metadata"],
    }
    assert isinstance((stored.reps or {})["metadata"], int)


def test_metadata_of_foreign_values_is_shown() -> None:
    stored = config_map()
    stored.tail = stored.tail.replace(b'"name":"a"', b'"name" : "\\u0061"')
    shown = representation(resource("ConfigMap"), MediaType(JSON, "PartialObjectMetadata", "v1"))
    assert orjson.loads(shown.object(stored))["metadata"]["name"] == "a"


def test_empty_partial_metadata_list_has_null_items() -> None:
    shown = representation(resource("ConfigMap"), MediaType(JSON, "PartialObjectMetadataList", "v1"))
    assert orjson.loads(b"".join(shown.list([], {"resourceVersion": "9", "continue": ""}))) == {
        "kind": "PartialObjectMetadataList",
        "apiVersion": "meta.k8s.io/v1",
        "metadata": {"resourceVersion": "9"},
        "items": None,
    }


@pytest.mark.parametrize("serializer", [JSON, PROTOBUF])
def test_partial_metadata_kind_must_match_object_or_list(serializer: str) -> None:
    of = resource("ConfigMap")
    one = representation(of, MediaType(serializer, "PartialObjectMetadata", "v1"))
    many = representation(of, MediaType(serializer, "PartialObjectMetadataList", "v1"))
    for attempt in (lambda: one.list([], {}), lambda: many.object(config_map())):
        with pytest.raises(APIError) as refused:
            attempt()
        assert (refused.value.code, refused.value.details) == (406, None)


def test_conversion_annotations_are_not_in_partial_metadata() -> None:
    of = resource("DaemonSet", "apps")
    obj: Object = {
        "metadata": {"name": "d", "annotations": {"deprecated.daemonset.template.generation": "1"}}
    }
    shown = representation(of, MediaType(JSON, "PartialObjectMetadata", "v1"))
    assert "annotations" not in orjson.loads(shown.object(entry(of, obj)))["metadata"]


def test_a_protobuf_list_is_its_items_joined() -> None:
    of = resource("ConfigMap")
    shown = representation(of, MediaType(PROTOBUF))
    entries = [config_map(), config_map("b")]
    api_version, kind, raw = protobuf.unwrap(b"".join(shown.list(entries, META)))
    assert (api_version, kind) == ("v1", "ConfigMapList")
    items = [value for number, value in wire.fields(raw, "ConfigMapList") if number == 2]
    assert items == [protobuf.encode(of.schema, stored.object()) for stored in entries]
    assert [protobuf.unwrap(shown.object(stored)).raw for stored in entries] == items


def test_a_protobuf_event_is_framed() -> None:
    shown = representation(resource("ConfigMap"), MediaType(PROTOBUF))
    frame = shown.event("ADDED", config_map())
    assert int.from_bytes(frame[:4], "big") == len(frame) - 4
    assert shown.stream_type == "application/vnd.kubernetes.protobuf;stream=watch"


def test_pieces_are_built_once_by_prepare() -> None:
    shown = representation(resource("ConfigMap"), MediaType(PROTOBUF))
    entries = [config_map(f"c{i}") for i in range(120)]
    asyncio.run(shown.prepare(entries))
    assert all(shown.key in (stored.reps or {}) for stored in entries)


def test_cached_pieces_are_bounded_and_the_oldest_is_dropped_first() -> None:
    kept = Kept(limit=1000)
    places: list[dict[str, bytes]] = [{} for _ in range(10)]
    for place in places:
        kept.keep(place, "key", b"x" * 100, 100)
    assert kept.size <= 1000
    assert "key" not in places[0]
    assert "key" in places[-1]
