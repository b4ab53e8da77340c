"""Isolation of forks: a property test against plain dictionaries."""

from __future__ import annotations

import asyncio
from collections.abc import Sequence

from hypothesis import given, settings
from hypothesis import strategies as st

from kubist.storage.cache.cache import ROOT, Cache
from kubist.storage.cache.entry import StoredKind
from kubist.storage.image import take_image
from kubist.storage.memory import MemoryStore

KIND = StoredKind(f"{ROOT}pods/", "v1", "Pod", lambda _: {}, lambda _: {})
KEYS = [f"{ROOT}pods/default/{name}" for name in "abcde"]
Step = tuple[str, int, str]
STEPS = st.lists(
    st.tuples(
        st.sampled_from(["write", "write", "delete", "fork", "compact"]),
        st.integers(0, 9),
        st.sampled_from(KEYS),
    ),
    max_size=40,
)


class Branch:
    """A store with its cache, and the expected content."""

    def __init__(self, store: MemoryStore, expected: dict[str, bytes]) -> None:
        self.store = store
        self.cache = Cache(store)
        self.expected = expected
        self.past: dict[int, dict[str, bytes]] = {}

    async def write(self, key: str, value: bytes) -> None:
        held = await self.store.get(key)
        if held is None:
            revision = await self.store.create(key, value)
        else:
            revision = await self.store.update(key, value, held.mod_revision)
        self.expected[key] = value
        self.past[revision] = dict(self.expected)

    async def delete(self, key: str) -> None:
        held = await self.store.get(key)
        if held is not None:
            revision = await self.store.delete(key, held.mod_revision)
            del self.expected[key]
            self.past[revision] = dict(self.expected)

    async def compact(self) -> None:
        revision = await self.store.revision()
        await self.store.compact(revision)
        self.past = {at: state for at, state in self.past.items() if at >= revision}

    async def fork(self) -> Branch:
        image = await take_image(self.cache)
        made = Branch(MemoryStore(image=image.store), dict(self.expected))
        made.past = dict(self.past)
        made.cache.starts_from = image.cache
        await made.start()
        return made

    async def start(self) -> None:
        await self.store.open()
        await self.cache.start([KIND])

    async def check(self) -> None:
        scan = await self.store.scan(ROOT)
        assert {kv.key: kv.value for kv in scan.items} == self.expected
        await self.cache.catch_up()
        entries = self.cache.collection(KIND).entries
        assert {key: value_of(entry.tail) for key, entry in entries.items()} == self.expected
        for revision, state in self.past.items():
            earlier = await self.store.scan(ROOT, revision=revision)
            assert {kv.key: kv.value for kv in earlier.items} == state
            page = await self.store.scan(ROOT, start=KEYS[1], limit=2, revision=revision)
            rest = [kv for kv in earlier.items if kv.key >= KEYS[1]]
            assert (page.items, page.more) == (rest[:2], len(rest) > 2)
            for key in KEYS:
                kv = await self.store.get(key, revision)
                assert (kv.value if kv else None) == state.get(key)

    async def stop(self) -> None:
        await self.cache.stop()
        await self.store.close()


def value_for(number: int) -> bytes:
    return KIND.encode({"kind": "Pod", "apiVersion": "v1", "metadata": {"name": f"x{number}"}})


def value_of(tail: bytes) -> bytes:
    """Stored value of an entry: without the resource version."""
    return value_for(int(tail.rpartition(b'"name":"x')[2].partition(b'"')[0]))


async def run(steps: Sequence[Step]) -> None:
    branches = [Branch(MemoryStore(), {})]
    await branches[0].start()
    try:
        for number, (what, which, key) in enumerate(steps):
            branch = branches[which % len(branches)]
            if what == "write":
                await branch.write(key, value_for(number))
            elif what == "delete":
                await branch.delete(key)
            elif what == "compact":
                await branch.compact()
            elif len(branches) < 5:
                branches.append(await branch.fork())
        for branch in branches:
            await branch.check()
    finally:
        for branch in branches:
            await branch.stop()


@given(STEPS)
@settings(max_examples=60, deadline=None)
def test_every_branch_contains_exactly_its_own_writes(steps: list[Step]) -> None:
    asyncio.run(run(steps))


def test_fork_during_writes_is_the_state_at_one_revision() -> None:
    asyncio.run(fork_during_writes())


async def fork_during_writes() -> None:
    parent = Branch(MemoryStore(), {})
    await parent.start()

    async def write(number: int) -> None:
        for round_ in range(40):
            key = f"{ROOT}pods/default/{number}-{round_ % 4}"
            held = await parent.store.get(key)
            if held is None:
                await parent.store.create(key, value_for(round_))
            elif round_ % 3:
                await parent.store.update(key, value_for(round_), held.mod_revision)
            else:
                await parent.store.delete(key, held.mod_revision)

    writers = [asyncio.ensure_future(write(number)) for number in range(8)]
    forks: list[Branch] = []
    while not all(writer.done() for writer in writers):
        await asyncio.sleep(0)
        if len(forks) < 10:
            forks.append(await parent.fork())
    assert len(forks) > 3
    for fork in forks:
        now = await fork.store.scan(ROOT)
        assert now.items == (await parent.store.scan(ROOT, revision=now.revision)).items
        await fork.cache.catch_up()
        entries = fork.cache.collection(KIND).entries
        assert {key: entry.revision for key, entry in entries.items()} == {
            kv.key: kv.mod_revision for kv in now.items
        }
    for branch in (parent, *forks):
        await branch.stop()
