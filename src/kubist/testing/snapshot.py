"""A copy of everything a store holds, and the way back to it: as changes that watchers see, at new versions."""

from __future__ import annotations

from kubist.storage.cache import ROOT
from kubist.storage.store import Conflict, Store

Snapshot = dict[str, bytes]


async def take(store: Store) -> Snapshot:
    scan = await store.scan(ROOT)
    return {kv.key: kv.value for kv in scan.items}


async def restore(store: Store, snapshot: Snapshot) -> None:
    """Make the store hold what it held. Raises Conflict if somebody else keeps writing."""
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


async def restore_calmly(store: Store, snapshot: Snapshot, tries: int = 10) -> None:
    """Restore, again if a control loop wrote in between."""
    for _ in range(tries - 1):
        try:
            await restore(store, snapshot)
        except Conflict:
            continue
        if await take(store) == snapshot:
            return
    await restore(store, snapshot)
