"""Fixtures that run each test of the contract on every store.

Tests may be coroutines. The `store` fixture is opened before and closed after the test, in the loop of the
test.
"""

from __future__ import annotations

import asyncio
import inspect
import os
from collections.abc import Iterator
from pathlib import Path
from typing import cast

import pytest

from kubist.storage.etcd.store import EtcdStore
from kubist.storage.memory import MemoryStore
from kubist.storage.sqlite.store import SqliteStore
from kubist.storage.store import Store

from .etcd_server import EtcdServer, running_etcd
from .owner import OwnedStore


@pytest.hookimpl(tryfirst=True)
def pytest_pyfunc_call(pyfuncitem: pytest.Function) -> bool | None:
    test = pyfuncitem.obj
    if not inspect.iscoroutinefunction(test):
        return None
    arguments = {name: pyfuncitem.funcargs[name] for name in inspect.signature(test).parameters}

    async def run() -> None:
        store = cast("Store | None", arguments.get("store"))
        if store is None:
            await test(**arguments)
            return
        await store.open()
        try:
            await test(**arguments)
        finally:
            await store.close()

    asyncio.run(run())
    return True


@pytest.fixture(scope="session")
def etcd(tmp_path_factory: pytest.TempPathFactory) -> Iterator[EtcdServer]:
    with running_etcd(tmp_path_factory.mktemp("etcd")) as server:
        yield server


@pytest.fixture(params=["memory", "sqlite", "remote", pytest.param("etcd", marks=pytest.mark.etcd)])
def store(request: pytest.FixtureRequest, tmp_path: Path) -> Store:
    """Store used by this test only. On the shared etcd it has a prefix of its own."""
    if request.param == "etcd":
        server: EtcdServer = request.getfixturevalue("etcd")
        return EtcdStore([server.endpoint], prefix=f"/{os.urandom(8).hex()}")
    if request.param == "remote":
        return OwnedStore(tmp_path)
    if request.param == "memory":
        return MemoryStore()
    return SqliteStore(str(tmp_path / "kubist.db"))
