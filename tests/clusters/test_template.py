"""Templates of new clusters: a host may stop while one is being made."""

from __future__ import annotations

import asyncio

import pytest

from kubist.api.config import Config
from kubist.server.clusters import sources
from kubist.server.clusters.logical_server import LogicalServer
from kubist.server.clusters.sources import Templates
from kubist.server.clusters.spec import ALL_LOOPS


@pytest.mark.parametrize("phase", ["start_behind", "_settled", "stop"])
def test_unfinished_template_leaves_no_task(phase: str, monkeypatch: pytest.MonkeyPatch) -> None:
    reached: asyncio.Event
    owner = sources if phase == "_settled" else LogicalServer
    original = getattr(owner, phase)

    async def observed(*arguments: object) -> object:
        reached.set()
        await asyncio.sleep(0.01 if phase == "stop" else 0)
        return await original(*arguments)

    async def work() -> set[str]:
        nonlocal reached
        reached = asyncio.Event()
        templates = Templates(Config(), 6443)
        making = asyncio.ensure_future(templates.image(ALL_LOOPS))
        await reached.wait()
        making.cancel()
        await templates.close()
        await asyncio.gather(making, return_exceptions=True)
        return {str(task.get_coro()) for task in asyncio.all_tasks() - {asyncio.current_task()}}

    monkeypatch.setattr(owner, phase, observed)
    assert asyncio.run(work()) == set()
