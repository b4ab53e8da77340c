"""Several servers on one store: one runs the controllers, and another takes over."""

from __future__ import annotations

import asyncio
import contextlib
from collections.abc import AsyncIterator
from typing import Any

import pytest

import kubist
from kubist.api.object_client import CONTROLLER_MANAGER, ObjectClient
from kubist.cluster.control.leader import GROUP, NAME, NAMESPACE, Leader
from kubist.server.runtime.identity import Identity
from tests.storage.etcd_server import EtcdServer

pytestmark = pytest.mark.etcd


@contextlib.asynccontextmanager
async def servers(
    etcd: EtcdServer, identity: Identity, **settings: Any
) -> AsyncIterator[list[kubist.Server]]:
    async with contextlib.AsyncExitStack() as stack:
        made = [kubist.Server(identity=identity, etcd_servers=(etcd.endpoint,), **settings) for _ in range(2)]
        yield [await stack.enter_async_context(server) for server in made]


@pytest.fixture(scope="module")
def identity(tmp_path_factory: pytest.TempPathFactory) -> Identity:
    return Identity(tmp_path_factory.mktemp("identity"), kubist.Server().config)


def test_stale_lease_is_taken_over_and_its_holder_steps_down(
    real_etcd: EtcdServer, identity: Identity
) -> None:
    async def work() -> None:
        async with servers(real_etcd, identity, controllers=()) as pair:
            clients = [ObjectClient(server.inner.api, CONTROLLER_MANAGER) for server in pair]
            first, second = (Leader(client, duration=1.0, renewal=0.2) for client in clients)
            await asyncio.wait_for(first.acquire(), 5)
            holding = asyncio.ensure_future(first.hold())
            waiting = asyncio.ensure_future(second.acquire())
            await asyncio.sleep(1.5)
            assert not waiting.done()
            holding.cancel()  # the first dies without a word
            await asyncio.wait_for(waiting, 5)
            await asyncio.wait_for(first.hold(), 5)
            await second.release()
            await asyncio.wait_for(first.acquire(), 2)
            await pair[1].inner.registry.cache.catch_up()
            lease = pair[1].inner.api.cluster.get("leases", NAME, NAMESPACE, group=GROUP)
            assert lease is not None
            assert lease["spec"]["holderIdentity"] == first.identity
            assert lease["spec"]["leaseTransitions"] == 2
            await first.release()

    asyncio.run(work())


def test_only_the_leader_runs_controllers_and_another_takes_over(
    real_etcd: EtcdServer, identity: Identity
) -> None:
    async def until(check: Any) -> None:
        async with asyncio.timeout(10):
            while not check():  # noqa: ASYNC110
                await asyncio.sleep(0.02)

    async def work() -> None:
        async with servers(real_etcd, identity) as pair:
            managers = [server.inner._loops for server in pair]
            await until(lambda: any(manager is not None and manager.loops for manager in managers))
            assert sum(bool(manager is not None and manager.loops) for manager in managers) == 1
            leader = next(s for s in pair if s.inner._loops is not None and s.inner._loops.loops)
            other = next(server for server in pair if server is not leader)
            await leader.stop_here()
            cluster = ObjectClient(other.inner.api, CONTROLLER_MANAGER)
            await cluster.create("namespaces", {"metadata": {"name": "taken-over"}})
            await until(lambda: cluster.get("serviceaccounts", "default", "taken-over"))
            await cluster.delete("namespaces", "taken-over")
            await until(lambda: cluster.get("namespaces", "taken-over") is None)

    asyncio.run(work())
