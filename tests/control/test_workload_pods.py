"""Index of managed objects, and batches of a slow start."""

from __future__ import annotations

import asyncio
from typing import Any

import orjson
import pytest

from kubist.cluster.control.workloads.pods import ORPHAN, OwnedIndex, Owner, slow_start
from kubist.storage.cache.entry import Change, Entry, StoredKind

KIND = StoredKind("/registry/pods/", "v1", "Pod", lambda _: {}, orjson.loads)


def entry(name: str, *owners: dict[str, Any], revision: int = 1) -> Entry:
    metadata: dict[str, Any] = {"name": name, "namespace": "default"}
    if owners:
        metadata["ownerReferences"] = list(owners)
    tail = orjson.dumps({"metadata": metadata})[1:]
    return Entry(f"/registry/pods/default/{name}", revision, tail, KIND)


def reference(kind: str, name: str, *, controller: bool = True) -> dict[str, Any]:
    return {"kind": kind, "name": name, "uid": f"uid-{name}", "controller": controller}


def names(entries: Any) -> list[str]:
    return sorted(found.name for found in entries)


def test_objects_are_found_by_owner_and_orphans_by_namespace() -> None:
    index = OwnedIndex("ReplicaSet", Entry.object)
    web = Owner("uid-web", "web")
    mine = entry("mine", reference("Other", "x", controller=False), reference("ReplicaSet", "web"))
    assert index.apply(Change(1, None, mine)) == (None, web)
    assert index.apply(Change(1, None, entry("free"))) == (None, ORPHAN)
    assert index.apply(Change(1, None, entry("job", reference("Job", "j")))) == (None, None)
    assert names(index.owned("uid-web")) == ["mine"]
    assert names(index.orphans("default")) == ["free"]
    assert names(index.orphans("other")) == []
    released = entry("mine", reference("Other", "x", controller=False), revision=2)
    assert index.apply(Change(2, mine, released)) == (web, ORPHAN)
    assert names(index.owned("uid-web")) == []
    assert names(index.orphans("default")) == ["free", "mine"]
    assert index.apply(Change(3, released, None)) == (ORPHAN, None)
    assert names(index.orphans("default")) == ["free"]


def test_slow_start_doubles_its_batches() -> None:
    sizes: list[int] = []
    running = 0

    async def step(_number: int) -> None:
        nonlocal running
        running += 1
        await asyncio.sleep(0)
        if running:
            sizes.append(running)
            running = 0

    asyncio.run(slow_start(12, step))
    assert sizes == [1, 2, 4, 5]


def test_slow_start_stops_after_a_batch_with_a_failure() -> None:
    done: list[int] = []

    async def step(number: int) -> None:
        if number == 2:
            raise ValueError("no quota")
        done.append(number)

    with pytest.raises(ValueError, match="no quota"):
        asyncio.run(slow_start(100, step))
    assert done == [0, 1]
