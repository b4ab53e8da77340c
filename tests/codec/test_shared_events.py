"""Watchers of one representation share the bytes of an event; those of a table until an age in it changes."""

from __future__ import annotations

import time
from itertools import product

import orjson
import pytest

from kubist.api.representation import budget as representation_budget
from kubist.api.representation.budget import Kept
from kubist.api.verbs.responses import representation
from kubist.model.codec.negotiate import JSON, PROTOBUF, MediaType
from kubist.storage.cache.cache import Change

from .stored import config_map, resource

TABLE = MediaType(JSON, "Table", "v1")
CREATED = 1_800_000_000.0
"""Creation time of the stored objects in these tests."""


@pytest.mark.parametrize(
    "media",
    [
        MediaType(JSON),
        MediaType(PROTOBUF),
        MediaType(JSON, "PartialObjectMetadata", "v1"),
        MediaType(PROTOBUF, "PartialObjectMetadata", "v1"),
    ],
)
def test_watchers_share_the_bytes_of_an_event(media: MediaType) -> None:
    entry = config_map()
    change = Change(7, None, entry)
    one, other = (representation(resource("ConfigMap"), media).for_watch() for _ in range(2))
    assert one.shared_event("ADDED", change, entry) is other.shared_event("ADDED", change, entry)
    assert one.shared_event("MODIFIED", change, entry) != one.shared_event("ADDED", change, entry)


def test_table_watchers_share_an_event_until_an_age_changes(monkeypatch: pytest.MonkeyPatch) -> None:
    now = CREATED + 10.25
    monkeypatch.setattr(time, "time", lambda: now)
    entry = config_map()
    first, change = Change(7, None, entry), Change(8, entry, entry)
    watchers = [representation(resource("ConfigMap"), TABLE).for_watch() for _ in range(3)]
    heads = [watcher.shared_event("ADDED", first, entry) for watcher in watchers]
    assert heads[0] is heads[1]
    assert orjson.loads(heads[0])["object"]["columnDefinitions"]
    rest = [watcher.shared_event("MODIFIED", change, entry) for watcher in watchers[:2]]
    assert rest[0] is rest[1]
    assert orjson.loads(rest[0])["object"]["columnDefinitions"] is None
    now += 1
    later = watchers[2].shared_event("MODIFIED", change, entry)
    cells = [orjson.loads(event)["object"]["rows"][0]["cells"][-1] for event in (rest[0], later)]
    assert cells == ["10s", "11s"]


def test_table_events_differ_by_include_object() -> None:
    entry = config_map()
    change = Change(7, None, entry)
    shown = {
        representation(resource("ConfigMap"), MediaType(JSON, "Table", version), include)
        .for_watch()
        .shared_event("ADDED", change, entry)
        for version, include in product(("v1", "v1beta1"), ("None", "Metadata", "Object"))
    }
    assert len(shown) == 6


def test_cached_events_are_bounded(monkeypatch: pytest.MonkeyPatch) -> None:
    bound = Kept(4000)
    monkeypatch.setattr("kubist.api.representation.representation.EVENTS", bound)
    shown = representation(resource("ConfigMap"), MediaType(JSON))
    changes = [Change(revision, None, config_map(str(revision))) for revision in range(1, 50)]
    for change in changes:
        assert change.new is not None
        shown.shared_event("ADDED", change, change.new)
    assert bound.size <= 4000 < representation_budget.EVENTS_LIMIT
    assert not changes[0].encoded
    assert changes[-1].encoded
