"""Unloading of clusters on disk, and the requests that load them again."""

from __future__ import annotations

import asyncio
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import cast

import pytest

from kubist.server.clusters import life_cycle
from kubist.server.clusters.hosting import Hosting
from kubist.testing import Cluster
from tests.clusters.talking import connection, open_watch
from tests.clusters.test_life_cycle import CRD, WIDGET, config_map, state
from tests.waiting import wait_for


def test_idle_cluster_on_disk_is_unloaded_and_reloaded(tmp_path: Path) -> None:
    with Cluster(clusters=True, data_dir=str(tmp_path), clusters_idle_timeout=600.0) as host:
        disk = host.clusters.create("disk", storage="disk", manifests=[CRD, WIDGET, config_map(a="1")])
        watched = host.clusters.create("watched", storage="disk")
        host.clusters.create("moved", storage="disk").clock.advance("1h")
        host.clusters.create("memory")
        version = disk.get("configmap/cm")["metadata"]["resourceVersion"]
        with open_watch(watched, "/api/v1/configmaps"):
            host.clock.advance("11m")
            wait_for(lambda: state(host, "disk") == "Unloaded")
            for name in ("watched", "moved", "memory"):
                assert state(host, name) == "Running"

        path = "/api/v1/namespaces/default/configmaps/cm"
        clients = [host.clusters["disk"] for _ in range(8)]
        with ThreadPoolExecutor(8) as pool:
            found = list(pool.map(lambda client: client.request("GET", path), clients))
        assert [each["metadata"]["resourceVersion"] for each in found] == [version] * 8
        assert disk.request("GET", "/apis/example.com/v1/widgets")["items"]
        assert state(host, "disk") == "Running"
        disk.load(config_map(a="2"))

        hosting = cast("Hosting", host.inner)
        assert hosting.clusters is not None
        table = hosting.clusters.by_name
        wait_for(lambda: not table["watched"].is_busy)
        host.clock.advance("11m")
        wait_for(lambda: state(host, "watched") == state(host, "disk") == "Unloaded")


def test_request_in_the_turn_in_which_unloading_ends_loads_the_cluster(tmp_path: Path) -> None:
    with Cluster(clusters=True, data_dir=str(tmp_path)) as host:
        host.clusters.create("disk", storage="disk")
        hosting = cast("Hosting", host.inner)
        assert hosting.clusters is not None
        cluster = hosting.clusters.by_name["disk"]

        async def race() -> bool:
            unloading = asyncio.ensure_future(cluster.unload())
            # Looks at each turn of the event loop.
            while (moving := cluster._moving) is None or not moving.done():  # noqa: ASYNC110
                await asyncio.sleep(0)
            server = await cluster.running()
            await unloading
            return server is cluster.server

        wait_for(lambda: cluster.can_unload)
        assert host.run(race())


def test_anonymous_client_keeps_few_clusters_loaded(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(life_cycle, "MOST_WITHOUT_CLIENTS", 2)
    names = ["a", "b", "c", "d", "e", "used"]
    with Cluster(clusters=True, data_dir=str(tmp_path)) as host:
        tokens = {name: host.clusters.create(name, storage="disk").token for name in names}
    with Cluster(clusters=True, data_dir=str(tmp_path)) as host, connection(host) as made:

        def ask(name: str, **headers: str) -> int:
            made.request("GET", f"/clusters/{name}/api", headers=headers)
            response = made.getresponse()
            response.read()
            return response.status

        def loaded() -> list[str]:
            return [name for name in names if state(host, name) == "Running"]

        assert ask("used", Authorization=f"Bearer {tokens['used']}") == 200
        for name in names[:4]:
            assert ask(name) == 403
        wait_for(lambda: loaded() == ["c", "d", "used"])
        # An invalid credential counts as none.
        assert ask("e", Authorization="Bearer unknown") == 401
        wait_for(lambda: loaded() == ["d", "e", "used"])
        # A client that authenticates keeps its cluster loaded.
        assert ask("d", Authorization=f"Bearer {tokens['d']}") == 200
        for name in names[:3]:
            assert ask(name) == 403
        wait_for(lambda: loaded() == ["b", "c", "d", "used"])
