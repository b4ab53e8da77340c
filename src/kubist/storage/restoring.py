"""Content of a store as values by key: reading it, and putting it back by writes that watchers see."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Mapping

from kubist.storage.cache import ROOT
from kubist.storage.store import AtomicStore, Conflict, Store, Write

Values = Mapping[str, bytes]
TRIES = 10


async def read_values(store: Store) -> dict[str, bytes]:
    scan = await store.scan(ROOT)
    return {kv.key: kv.value for kv in scan.items}


async def restore_values(store: Store, values: Values, ttl: Callable[[str], int]) -> None:
    """Makes `values` the content of the store: at once, or key by key in a store that other servers share.

    `ttl` returns the seconds until a key expires. Other clients may write meanwhile; it then starts again.
    """
    for tries in range(TRIES):
        try:
            if isinstance(store, AtomicStore):
                await store.write_all(await _difference(store, values, ttl))
                return
            for write in await _difference(store, values, ttl):
                await _apply(store, write)
            if await read_values(store) == values:
                return
        except Conflict:
            if tries == TRIES - 1:
                raise
            await asyncio.sleep(0)


async def _difference(store: Store, values: Values, ttl: Callable[[str], int]) -> list[Write]:
    """Writes that turn the content of the store into `values`."""
    held = {kv.key: kv for kv in (await store.scan(ROOT)).items}
    writes = [Write(key, None, kv.mod_revision) for key, kv in held.items() if key not in values]
    for key, value in values.items():
        kv = held.get(key)
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
