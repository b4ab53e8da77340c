"""RangeAllocation: numbers are unique among servers of one store, in the form that kube-apiserver uses."""

from __future__ import annotations

import asyncio
import base64
import json
from collections.abc import Awaitable, Callable
from typing import Any

import pytest

from kubist.api.object_store.range_allocation import RangeAllocation
from kubist.model.codec import protobuf
from kubist.model.codec import protobuf_wire as wire
from kubist.model.meta.status import APIError
from kubist.storage.etcd.store import EtcdStore
from kubist.storage.memory import MemoryStore
from kubist.storage.store import Store
from tests.storage.etcd_server import EtcdServer

KEY = "/registry/ranges/servicenodeports"
NUMBERS = range(30000, 30200)
Scene = Callable[[Store], Awaitable[None]]
Play = Callable[[Scene], None]


@pytest.fixture(params=["sqlite", pytest.param("etcd", marks=pytest.mark.etcd)])
def play(request: pytest.FixtureRequest) -> Play:
    """Runs a scene on an empty store of each kind."""

    def make() -> Store:
        if request.param == "sqlite":
            return MemoryStore()
        etcd: EtcdServer = request.getfixturevalue("real_etcd")
        prefix = f"/{request.node.name}"
        return EtcdStore([etcd.endpoint], prefix=prefix, root="/registry", compaction_interval=0)

    async def run(scene: Scene) -> None:
        store = make()
        await store.open()
        try:
            await scene(store)
        finally:
            await store.close()

    return lambda scene: asyncio.run(run(scene))


def ports(store: Store, in_use: tuple[int, ...] = (), reserved: int = 16) -> RangeAllocation:
    return RangeAllocation(store, KEY, NUMBERS, lambda: in_use, reserved=reserved)


async def allocated(of: RangeAllocation) -> set[int]:
    return of.allocated(await of.read())


def as_protobuf(span: str, data: bytes) -> bytes:
    """A record as kube-apiserver stores it: metadata, range and data are the fields 1, 2 and 3."""
    metadata = wire.delimited(b"\x0a", b"\x0a\x00\x12\x00\x1a\x00\x22\x00\x2a\x00\x32\x00\x38\x00\x42\x00")
    raw = metadata + wire.delimited(b"\x12", span.encode()) + wire.delimited(b"\x1a", data)
    return protobuf.wrap("v1", "RangeAllocation", raw)


def test_first_use_records_the_numbers_in_use(play: Play) -> None:
    async def scene(store: Store) -> None:
        assert await ports(store, in_use=(30001, 30009, 99)).allocate(30002)
        held = await store.get(KEY)
        assert held is not None
        record: dict[str, Any] = json.loads(held.value)
        assert (record["kind"], record["apiVersion"], record["range"]) == (
            "RangeAllocation",
            "v1",
            "30000-30199",
        )
        assert base64.b64decode(record["data"]) == bytes([0b10, 0b110])

    play(scene)


def test_two_servers_never_allocate_one_number_twice(play: Play) -> None:
    async def scene(store: Store) -> None:
        servers = [ports(store), ports(store)]
        found = await asyncio.gather(*(servers[i % 2].allocate_any() for i in range(len(NUMBERS) + 6)))
        assert sorted(number for number in found if number is not None) == list(NUMBERS)
        assert found.count(None) == 6

    play(scene)


def test_one_of_many_gets_a_requested_number(play: Play) -> None:
    async def scene(store: Store) -> None:
        servers = [ports(store), ports(store)]
        found = await asyncio.gather(*(servers[i % 2].allocate(30100) for i in range(8)))
        assert sorted(found) == [False] * 7 + [True]

    play(scene)


def test_number_released_by_another_server_is_free_at_once(play: Play) -> None:
    async def scene(store: Store) -> None:
        one, other = ports(store), ports(store)
        assert await one.allocate(30100)
        assert not await other.allocate(30100)
        await one.release([30100, 30101, 5])
        assert await other.allocate(30100)
        assert not await one.allocate(30100)
        assert await allocated(one) == {30100}

    play(scene)


def test_low_numbers_are_used_last(play: Play) -> None:
    async def scene(store: Store) -> None:
        of = ports(store)
        found = [await of.allocate_any() for _ in NUMBERS]
        assert set(found[:184]) == set(NUMBERS[16:])
        assert set(found[184:]) == set(NUMBERS[:16])

    play(scene)


def test_protobuf_record_of_kube_apiserver_is_respected(play: Play) -> None:
    async def scene(store: Store) -> None:
        await store.create(KEY, as_protobuf("30000-30199", bytes([0b10, 0b110])))
        of = ports(store, in_use=(30050,))
        assert await allocated(of) == {30001, 30002, 30009}
        assert not await of.allocate(30009)
        assert await of.allocate(30010)
        assert await allocated(ports(store)) == {30001, 30002, 30009, 30010}

    play(scene)


def test_changes_at_the_same_time_share_a_write(play: Play) -> None:
    async def scene(store: Store) -> None:
        of = ports(store)
        await of.read()
        before = await store.revision()
        await asyncio.gather(*(of.allocate_any() for _ in range(50)))
        assert await store.revision() - before <= 2

    play(scene)


def test_record_of_another_range_is_an_error_until_it_is_replaced(play: Play) -> None:
    async def scene(store: Store) -> None:
        await store.create(KEY, as_protobuf("20000-20199", b"\1"))
        of = ports(store)
        with pytest.raises(APIError, match="the provided range does not match the current range"):
            await of.allocate_any()
        old = await of.read()
        assert of.allocated(old) == {20000}
        assert await of.replace(old, of.bitmap({30005}))
        assert not await of.replace(old, 0)
        assert not await of.allocate(30005)
        assert await of.allocate(30006)

    play(scene)
