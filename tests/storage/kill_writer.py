"""Program for `test_kill`: writes with 16 writers until it is killed, and prints each acknowledged change."""

from __future__ import annotations

import asyncio
import os
import random
import sys

from kubist.storage.store import Store

WRITERS = 16


async def write(store: Store, writer: int) -> None:
    """Changes keys that no other writer uses, so that their final values follow from the acknowledged writes."""
    keys = {kv.key: kv.mod_revision for kv in (await store.scan(f"/r/{writer}/")).items}
    number = 0
    while True:
        number += 1
        key = f"/r/{writer}/{random.randrange(8)}"
        value = f"{os.getpid()}-{number}"
        stored = f"{value}|{'x' * random.randrange(6000)}|end".encode()
        if key not in keys:
            revision = await store.create(key, stored)
        elif random.random() < 0.2:
            revision, value = await store.delete(key, keys[key]), "-"
        else:
            revision = await store.update(key, stored, keys[key])
        if value == "-":
            del keys[key]
        else:
            keys[key] = revision
        os.write(1, f"{revision} {key} {value}\n".encode())


async def main(kind: str, where: str, prefix: str = "") -> None:
    store: Store
    if kind == "sqlite":
        from kubist.storage.sqlite.store import SqliteStore

        store = SqliteStore(where)
    else:
        from kubist.storage.etcd.store import EtcdStore

        store = EtcdStore([where], prefix=prefix)
    await store.open()
    os.write(1, b"open\n")
    await asyncio.gather(*(write(store, writer) for writer in range(WRITERS)))


if __name__ == "__main__":
    asyncio.run(main(*sys.argv[1:]))
