"""Acknowledged writes survive SIGKILL: a writing process is killed at random times and its store is opened
again.

`KUBIST_KILLS` sets the number of kills (10 by default).
"""

from __future__ import annotations

import asyncio
import os
import random
import subprocess
import sys
import time
from collections.abc import Callable
from pathlib import Path

import pytest

from kubist.storage.etcd.store import EtcdStore
from kubist.storage.sqlite.store import SqliteStore
from kubist.storage.store import Store

from .etcd_server import EtcdServer

KILLS = int(os.environ.get("KUBIST_KILLS", "10"))
WRITER = Path(__file__).with_name("kill_writer.py")


def write_until_killed(*arguments: str, seconds: float) -> list[tuple[int, str, str]]:
    """Acknowledged changes (revision, key, value) of a process that is killed. "-" is a deletion."""
    with subprocess.Popen([sys.executable, str(WRITER), *arguments], stdout=subprocess.PIPE) as writer:
        assert writer.stdout is not None
        assert writer.stdout.readline() == b"open\n"
        time.sleep(seconds)
        writer.kill()
        said = writer.stdout.read().decode()
    lines = said[: said.rfind("\n") + 1].splitlines()
    return [(int(revision), key, value) for revision, key, value in map(str.split, lines)]


async def check(store: Store, answered: list[tuple[int, str, str]], floor: int) -> int:
    """Checks that every acknowledged change is in the store at its revision. Returns the current revision."""
    await store.open()
    revision = await store.revision()
    assert revision >= max([floor, *(change[0] for change in answered)])
    for written, key, value in answered:
        kv = await store.get(key, written)
        if value == "-":
            assert kv is None
        else:
            assert kv is not None and kv.mod_revision == written and kv.value.startswith(f"{value}|".encode())
    for kv in (await store.scan("/r/")).items:
        assert kv.value.endswith(b"|end")
    await store.close()
    return revision


def survive(make: Callable[[], Store], *arguments: str) -> None:
    dice = random.Random()
    floor = answers = 0
    for _ in range(KILLS):
        answered = sorted(write_until_killed(*arguments, seconds=dice.random() * 0.15))
        assert not answered or answered[0][0] > floor
        answers += len(answered)
        floor = asyncio.run(check(make(), answered, floor))
    assert answers > 0


def test_sqlite_keeps_acknowledged_writes_when_killed(tmp_path: Path) -> None:
    path = str(tmp_path / "kubist.db")
    survive(lambda: SqliteStore(path), "sqlite", path)


@pytest.mark.etcd
def test_etcd_store_keeps_acknowledged_writes_when_killed(etcd: EtcdServer) -> None:
    prefix = f"/{os.urandom(8).hex()}"
    survive(lambda: EtcdStore([etcd.endpoint], prefix=prefix), "etcd", etcd.endpoint, prefix)
