"""Content of a store as values by key: reading it, and putting it back by writes that watchers see."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Mapping

from kubist.storage.cache.cache import ROOT
from kubist.storage.store import AtomicStore, Conflict, Store, Write

Values = Mapping[str, bytes]
TRIES = 10
PAUSE = 0.02
"""Number of attempts, and seconds by which each pause between attempts exceeds the one before."""


async def read_values(store: Store) -> dict[str, bytes]:
    scan = await store.scan(ROOT)
    return {kv.key: kv.value for kv in scan.items}


async def restore_values(store: Store, values: Values, ttl: Callable[[str], int]) -> None:
    """Makes `values` the content of the store: at once, or key by key in a store that other servers share.

    `ttl` returns the seconds until a key expires. Other clients may write meanwhile; keys that they change are written
    again. Raises Conflict if they keep writing for too long.
    """
    lost: Conflict | None = None
    for tries in range(TRIES):
        await asyncio.sleep(tries * PAUSE)
        writes = await _difference(store, values, ttl)
        lost = await (
            _write_at_once(store, writes) if isinstance(store, AtomicStore) else _write_each(store, writes)
        )
        if lost is None:
            return
    assert lost is not None
    raise lost


async def _write_at_once(store: AtomicStore, writes: list[Write]) -> Conflict | None:
    try:
        await store.write_all(writes)
    except Conflict as lost:
        return lost
    return None


async def _write_each(store: Store, writes: list[Write]) -> Conflict | None:
    """Makes all changes that do not conflict. Returns the last conflict."""
    conflict: Conflict | None = None
    for write in writes:
        try:
            await _apply(store, write)
        except Conflict as lost:
            conflict = lost
    return conflict


async def _difference(store: Store, values: Values, ttl: Callable[[str], int]) -> list[Write]:
    """Writes that turn the content of the store into `values`."""
    current = {kv.key: kv for kv in (await store.scan(ROOT)).items}
    writes = [Write(key, None, kv.mod_revision) for key, kv in current.items() if key not in values]
    for key, value in values.items():
        kv = current.get(key)
        if kv is None:
            writes.append(Write(key, value, 0, ttl(key)))
        elif kv.value != value:
            writes.append(Write(key, value, kv.mod_revision, ttl(key)))
    return writes


async def _apply(store: Store, write: Write) -> None:
    if write.value is None:
        await store.delete(write.key, write.expected)
    elif write.expected:
        await store.update(write.key, write.value, write.expected, ttl=write.ttl)
    else:
        await store.create(write.key, write.value, ttl=write.ttl)
