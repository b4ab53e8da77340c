"""SQLite files made from store images."""

from __future__ import annotations

import asyncio
from pathlib import Path

from kubist.storage.memory import MemoryStore
from kubist.storage.sqlite.file import write_database
from kubist.storage.sqlite.store import SqliteStore


def test_store_on_disk_continues_from_an_image(tmp_path: Path) -> None:
    async def scenario() -> None:
        memory = MemoryStore()
        await memory.open()
        first = await memory.create("/registry/a", b"1")
        second = await memory.update("/registry/a", b"2", first)
        await memory.create("/registry/b", b"3", ttl=1000)
        gone = await memory.create("/registry/c", b"4")
        revision = await memory.delete("/registry/c", gone)
        write_database(tmp_path / "kubist.db", memory.image())
        await memory.close()

        disk = SqliteStore(str(tmp_path / "kubist.db"))
        await disk.open()
        assert await disk.revision() == revision
        scan = await disk.scan("/registry/")
        assert [(kv.key, kv.value) for kv in scan.items] == [("/registry/a", b"2"), ("/registry/b", b"3")]
        assert (scan.items[0].create_revision, scan.items[0].mod_revision) == (first, second)
        assert await disk.update("/registry/a", b"5", second) == revision + 1
        assert disk._writer._expiry is not None
        await disk.close()

    asyncio.run(scenario())
    assert (tmp_path / "kubist.db").stat().st_mode & 0o777 == 0o600
