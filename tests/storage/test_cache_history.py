"""Collection compared with its recorded history: past states, ranges of changes, and labels."""

from __future__ import annotations

import asyncio
from typing import Any
from unittest import mock

import orjson
from hypothesis import given, settings
from hypothesis import strategies as st

from kubist.storage.cache.cache import ROOT, Cache, Collection, StoredKind
from kubist.storage.store import Event, KeyValue

PREFIX = ROOT + "things/"
KIND = StoredKind(PREFIX, "v1", "Thing", lambda obj: {"even": str(obj["data"] % 2 == 0)}, orjson.loads)
LABELS = ("app", "tier")

names = st.sampled_from([f"{namespace}/{name}" for namespace in "ab" for name in "xyz"])
labels = st.dictionaries(st.sampled_from(LABELS), st.sampled_from(["", "1", "2"]))
steps = st.lists(st.tuples(names, st.none() | labels, st.integers(1, 3)), max_size=40)
"""(name, labels or a deletion, by how much the revision rises)"""


class History:
    """Events of some steps, and the state after each step."""

    def __init__(self, taken: list[tuple[str, dict[str, str] | None, int]]) -> None:
        self.events: list[Event] = []
        self.states: dict[int, dict[str, int]] = {10: {}}
        self.labels: dict[str, dict[str, str]] = {}
        revision = 10
        current: dict[str, int] = {}
        for number, (name, given_labels, rise) in enumerate(taken):
            key = PREFIX + name
            if given_labels is None and key not in current:
                continue
            for _ in range(rise):
                revision += 1
                self.states[revision] = dict(current)
            if given_labels is None:
                del current[key], self.labels[key]
                kv = None
            else:
                current[key] = revision
                self.labels[key] = given_labels
                metadata: dict[str, Any] = {"name": name, "labels": given_labels}
                kv = KeyValue(key, KIND.encode({"metadata": metadata, "data": number}), revision, revision)
            self.states[revision] = dict(current)
            self.events.append(Event(revision, key, kv, None))


def collection(window: int = 1000) -> Collection:
    cache = Cache(None, window_changes=window)  # type: ignore[arg-type]
    made = cache.collection(KIND)
    made.fill([], 10)
    return made


@settings(max_examples=150, deadline=None)
@given(steps, st.integers(0, 20), st.integers(1, 5))
def test_past_states_within_the_window_are_exact(taken: Any, window: int, batch: int) -> None:
    history, things = History(taken), collection(window)
    for start in range(0, len(history.events), batch):
        things.apply(history.events[start : start + batch])
    applied = [event.revision for event in history.events]
    assert len(things.window) == min(window, len(applied))
    for revision, state in history.states.items():
        past, changes = things.at(revision), things.since(revision)
        reachable = sum(applied_at > revision for applied_at in applied) <= window
        if not reachable:
            assert past is None and changes is None
        elif past is not None:
            assert {key: entry.revision for key, entry in past.items()} == state
            assert list(past.irange()) == sorted(state)
            for key in (PREFIX, PREFIX + "a/", PREFIX + "b", *state):
                assert past.bisect_left(key) == sum(other < key for other in state)
                assert past.bisect_right(key) == sum(other <= key for other in state)
                assert list(past.irange(key, None, (True, False))) == sorted(k for k in state if k >= key)
            assert changes is not None
            assert [c.revision for c in changes] == [r for r in applied if r > revision]
        else:
            assert revision < things.window_start


@settings(max_examples=100, deadline=None)
@given(steps, st.integers(0, 40))
def test_label_index_equals_a_full_search(taken: Any, asked_after: int) -> None:
    history, things = History(taken), collection()
    things.apply(history.events[:asked_after])
    for label in LABELS:
        things.labelled(label, "1")
    things.apply(history.events[asked_after:])
    for label in LABELS:
        for value in ("", "1", "2", "3"):
            wanted = sorted(key for key, held in history.labels.items() if held.get(label) == value)
            assert [entry.key for entry in things.labelled(label, value)] == wanted


@settings(max_examples=100, deadline=None)
@given(steps, st.integers(0, 40))
def test_past_state_stays_exact_while_changes_arrive(taken: Any, asked_after: int) -> None:
    history, things = History(taken), collection()
    things.apply(history.events[:asked_after])
    now = max([10, *(event.revision for event in history.events[:asked_after])])
    revisions = [revision for revision in history.states if revision <= now][-3:]
    for event in history.events[asked_after:]:
        things.apply([event])
        for revision in revisions:
            past = things.at(revision)
            assert past is not None
            held = {key: past[key].revision for key in past.irange()}
            assert held == history.states[revision]


@settings(max_examples=30, deadline=None)
@given(steps, st.integers(0, 40))
def test_label_index_built_in_slices_misses_no_change(taken: Any, asked_after: int) -> None:
    history, things = History(taken), collection()
    things.apply(history.events[:asked_after])

    async def make() -> None:
        making = [asyncio.ensure_future(things.examine(label)) for label in (*LABELS, None)]
        for event in history.events[asked_after:]:
            things.apply([event])
            await asyncio.sleep(0)
        await asyncio.gather(*making)

    with mock.patch("kubist.storage.cache.label_index.SLICE", 1):
        asyncio.run(make())
    for label in LABELS:
        for value in ("", "1", "2", "3"):
            wanted = sorted(key for key, held in history.labels.items() if held.get(label) == value)
            assert [entry.key for entry in things.labelled(label, value)] == wanted


@settings(max_examples=50, deadline=None)
@given(steps)
def test_changes_are_linked_and_deletions_show_the_last_state(taken: Any) -> None:
    history, things = History(taken), collection()
    things.apply(history.events)
    current: dict[str, int] = {}
    for change in things.window:
        entry = change.new or change.old
        assert entry is not None
        assert (change.old.revision if change.old else None) == current.get(entry.key)
        if change.new is not None:
            current[entry.key] = change.new.revision
        else:
            del current[entry.key]
            assert change.old is not None
            gone, before = change.last().object(), change.old.object()
            assert gone["metadata"].pop("resourceVersion") == str(change.revision)
            del before["metadata"]["resourceVersion"]
            assert gone == before
    assert current == {key: entry.revision for key, entry in things.entries.items()}


@settings(max_examples=100, deadline=None)
@given(steps, st.integers(0, 40))
def test_events_older_than_the_load_are_ignored(taken: Any, read_after: int) -> None:
    history, reader = History(taken), collection()
    reader.apply(history.events[:read_after])
    revision = history.events[:read_after][-1].revision if history.events[:read_after] else 10
    things = collection()
    things.fill(list(reader.entries.items()), revision)
    things.apply(history.events)
    assert [c.revision for c in things.window] == [
        e.revision for e in history.events if e.revision > revision
    ]
    assert {key: e.revision for key, e in things.entries.items()} == history.states[max(history.states)]


@settings(max_examples=50, deadline=None)
@given(steps, st.sampled_from(["a/", "b/", ""]), names)
def test_range_of_a_collection_is_in_key_order_from_its_start(taken: Any, part: str, start: str) -> None:
    history, things = History(taken), collection()
    things.apply(history.events)
    found = [entry.key for entry in things.below(PREFIX + part, PREFIX + start)]
    keys = history.states[max(history.states)]
    assert found == sorted(k for k in keys if k.startswith(PREFIX + part) and k >= PREFIX + start)
