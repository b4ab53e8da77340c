"""Retention of history: an idle store has no timer."""

from __future__ import annotations

import asyncio

from kubist.storage.retention import Retention


def test_idle_store_has_no_timer_and_a_write_starts_it_again() -> None:
    async def scenario() -> None:
        compacted: list[int] = []
        revision = 5
        retention = Retention(0.01, lambda: revision, compacted.append)

        async def asleep() -> None:
            for _ in range(5000):
                if retention._timer is None:
                    return
                await asyncio.sleep(0.001)
            raise AssertionError("the timer still runs")

        await asleep()
        assert compacted[-1] == 5
        revision = 7
        retention.resume()
        assert retention._timer is not None
        await asleep()
        assert compacted[-1] == 7
        retention.resume()
        retention.stop()
        assert retention._timer is None

    asyncio.run(scenario())
