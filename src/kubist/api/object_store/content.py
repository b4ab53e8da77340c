"""Content of a server as stored values by key, for snapshots."""

from __future__ import annotations

import asyncio
from collections.abc import Mapping
from pathlib import Path

from kubist.api.object_store.registry import Registry
from kubist.storage.backup.restoring import read_values, restore_values
from kubist.storage.encryption.unreadable import ENCRYPTED
from kubist.storage.image import innermost
from kubist.storage.store import OpenFailed


async def read_content(registry: Registry) -> dict[str, bytes]:
    """All values as they are stored; encrypted ones stay encrypted."""
    return await read_values(innermost(registry.store))


async def restore_content(registry: Registry, values: Mapping[str, bytes]) -> None:
    """Replaces the content of a server with these values. Watchers see the changes, and resource versions keep
    increasing. Returns when the cache has all changes. Raises OpenFailed if a value is encrypted and the server has no
    keys."""
    encrypted = registry.encrypted
    sealed = sum(value.startswith(ENCRYPTED) for value in values.values())
    if encrypted is None and sealed:
        raise OpenFailed(
            f"{sealed} values are encrypted: the server needs the --encryption-provider-config file"
        )
    if encrypted is not None and sealed < len(values):
        values = {
            key: value if value.startswith(ENCRYPTED) else encrypted.values.seal(key, value)
            for key, value in values.items()
        }
    lifetimes = registry.lifetimes()
    prefixes = tuple(lifetimes)

    def ttl(key: str) -> int:
        if not key.startswith(prefixes):
            return 0
        return next(seconds for prefix, seconds in lifetimes.items() if key.startswith(prefix))

    await restore_values(innermost(registry.store), values, ttl)
    await registry.cache.catch_up()


async def restore_file(registry: Registry, path: Path) -> None:
    """Restores the content of a server from a snapshot or backup file. The file is not changed. Raises OpenFailed."""
    # Saves start-up time: few servers read snapshots, and a server in memory needs no SQLite.
    from kubist.storage.backup import snapshot_file

    image = await asyncio.to_thread(snapshot_file.read_image, path)
    await restore_content(registry, {key: kv.value for key, kv in image.values.items()})
