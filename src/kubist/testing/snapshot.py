"""Snapshot of a store, and its restoration by writes that watchers see."""

from __future__ import annotations

from kubist.storage.cache import ROOT
from kubist.storage.store import Conflict, Store

Snapshot = dict[str, bytes]


async def take(store: Store) -> Snapshot:
    scan = await store.scan(ROOT)
    return {kv.key: kv.value for kv in scan.items}


async def restore(store: Store, snapshot: Snapshot) -> None:
    """Restores the content of the store. Raises Conflict if another client writes meanwhile."""
    scan = await store.scan(ROOT)
    held = {kv.key: kv for kv in scan.items}
    for key, kv in held.items():
        if key not in snapshot:
            await store.delete(key, kv.mod_revision)
    for key, value in snapshot.items():
        if key not in held:
            await store.create(key, value)
        elif held[key].value != value:
            await store.update(key, value, held[key].mod_revision)


async def restore_with_retries(store: Store, snapshot: Snapshot, tries: int = 10) -> None:
    """Restores, with retries if a controller wrote meanwhile."""
    for _ in range(tries - 1):
        try:
            await restore(store, snapshot)
        except Conflict:
            continue
        if await take(store) == snapshot:
            return
    await restore(store, snapshot)
