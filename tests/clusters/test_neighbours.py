"""One noisy or broken cluster does not disturb the others: limits, turns, and errors."""

from __future__ import annotations

import asyncio
import gc
import threading
import weakref
from pathlib import Path
from typing import Any

import pytest

from kubist.base.http.messages import Answer, Request
from kubist.server.clusters.limits import REQUESTS, LimitedStore, Rate, RequestTurns
from kubist.server.clusters.spec import Limits
from kubist.storage.memory import MemoryStore
from kubist.testing import Cluster
from kubist.testing.errors import Refused
from kubist.testing.hosted_clusters import LogicalCluster
from tests.clusters.talking import connection
from tests.clusters.test_life_cycle import config_map, state
from tests.waiting import wait_for


def objects(cluster: LogicalCluster) -> int:
    return sum(len(each.entries) for each in cluster.inner.registry.cache.collections.values())


@pytest.mark.parametrize("storage", ["memory", "disk"])
def test_limit_of_objects(host: Cluster, storage: str) -> None:
    with host.clusters.create() as probe:
        held = objects(probe)
    with host.clusters.create(storage=storage, limits={"objects": held + 2}) as cluster:
        cluster.load(config_map("a"), config_map("b"))
        with pytest.raises(Refused, match=f"has a limit of {held + 2} objects") as refused:
            cluster.load(config_map("c"))
        assert (refused.value.code, refused.value.status["reason"]) == (403, "Forbidden")
        cluster.load(config_map("a", changed="1"))
        cluster.delete("configmap/b")
        cluster.load(config_map("c"))
        assert objects(cluster) == held + 2


def test_limit_of_bytes(host: Cluster) -> None:
    with host.clusters.create(limits={"bytes": 300_000}) as cluster:
        cluster.load(config_map("a", x="1"))
        with pytest.raises(Refused, match="has a limit of 300000 bytes"):
            cluster.load(config_map("b", x="y" * 300_000))
        with pytest.raises(Refused, match="has a limit of 300000 bytes"):
            cluster.load(config_map("a", x="y" * 300_000))
        assert cluster.get("configmap/a")["data"] == {"x": "1"}
        cluster.load(config_map("a", x=""))


def test_limit_of_bytes_holds_for_concurrent_updates() -> None:
    async def test() -> None:
        store = LimitedStore(MemoryStore(), "c", Limits(bytes=1000))
        await store.open()
        keys = [f"/registry/configmaps/default/{number}" for number in range(4)]
        revisions = [await store.create(key, b"") for key in keys]
        updates = (store.update(key, b"x" * 400, seen) for key, seen in zip(keys, revisions, strict=True))
        results = await asyncio.gather(*updates, return_exceptions=True)
        await store.close()
        assert [isinstance(result, int) for result in results] == [True, True, False, False]

    asyncio.run(test())


def test_limit_of_requests(host: Cluster) -> None:
    with host.clusters.create(limits={"requests_per_second": 5}) as cluster, host.clusters.create() as other:
        with connection(cluster) as made:
            answers = []
            for _ in range(40):
                made.request("GET", f"{cluster._prefix}/version")
                response = made.getresponse()
                answers.append((response.status, response.headers["Retry-After"], response.read()))
        rejected = [answer for answer in answers if answer[0] == 429]
        assert rejected and rejected[0][1] == "1"
        assert b"has a limit of 5 requests per second" in rejected[0][2]
        assert answers[0][0] == 200
        for _ in range(40):
            other.request("GET", "/version")


def test_rate_refills() -> None:
    rate = Rate(2)
    assert [rate.take() for _ in range(3)][:2] == [0, 0]
    rate._level, rate._seen = 0.0, rate._seen - 10
    assert [rate.take(), rate.take()] == [0, 0]


def test_requests_of_one_cluster_are_spread_over_turns() -> None:
    async def scenario() -> list[str]:
        noisy, quiet = RequestTurns(), RequestTurns()
        order: list[str] = []

        async def work(name: str, turns: RequestTurns) -> None:
            if (turn := turns.take()) is not None:
                await turn
            order.append(name)

        tasks = [asyncio.ensure_future(work("noisy", noisy)) for _ in range(10 * REQUESTS)]
        tasks.append(asyncio.ensure_future(work("quiet", quiet)))
        tasks[REQUESTS + 3].cancel()  # a client that leaves while it waits
        await asyncio.gather(*tasks, return_exceptions=True)
        return order

    order = asyncio.run(scenario())
    assert order.index("quiet") == REQUESTS
    assert len(order) in (10 * REQUESTS, 10 * REQUESTS + 1)


def test_waiting_requests_keep_their_order() -> None:
    async def scenario() -> list[int]:
        turns = RequestTurns()
        order: list[int] = []

        async def work(number: int) -> None:
            if (turn := turns.take()) is not None:
                await turn
            order.append(number)

        await asyncio.gather(*(work(number) for number in range(5 * REQUESTS)))
        return order

    assert asyncio.run(scenario()) == list(range(5 * REQUESTS))


def test_failing_application_does_not_reach_the_others(
    host: Cluster, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    async def broken(_: Request) -> Answer:
        raise RuntimeError("broken")

    with host.clusters.create("broken") as cluster, host.clusters.create("fine") as fine:
        monkeypatch.setattr(cluster.inner, "application", broken)
        with pytest.raises(Refused, match="the request failed unexpectedly") as refused:
            cluster.request("GET", "/api")
        assert refused.value.code == 500
        assert fine.request("GET", "/api") and host.request("GET", "/api")
        assert "the cluster broken failed on GET" in caplog.text


def test_damaged_cluster_does_not_reach_the_others(tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
    with Cluster(clusters=True, data_dir=str(tmp_path), clusters_idle_timeout=60) as host:
        cluster, fine = (
            host.clusters.create("bad", storage="disk"),
            host.clusters.create("fine", storage="disk"),
        )
        host.clock.advance("2m")
        wait_for(lambda: state(host, "bad") == "Unloaded" == state(host, "fine"))
        path = tmp_path / "clusters" / "bad" / "kubist.db"
        path.write_bytes(b"not a database" * 1000)
        for _ in range(2):
            with pytest.raises(Refused, match="the cluster bad cannot be loaded") as refused:
                cluster.request("GET", "/api")
            assert refused.value.code == 503
        assert "the file is damaged" in caplog.text
        assert fine.request("GET", "/api")
        host.clusters.delete("bad")
        assert not path.parent.exists()
    (tmp_path / "clusters" / "fine" / "cluster.json").write_text("{}")
    with Cluster(clusters=True, data_dir=str(tmp_path)) as host:
        assert list(host.clusters) == []
        assert "is left out" in caplog.text
        with pytest.raises(Refused, match="already exists"):
            host.clusters.create("fine", storage="disk")


def test_cluster_is_not_deleted_when_the_disk_fails_to_show_its_record(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    directory = tmp_path / "clusters" / "kept"
    directory.mkdir(parents=True)
    (directory / "kubist.db").write_bytes(b"")
    (directory / "cluster.json").symlink_to("cluster.json")  # the system answers with an error (ELOOP)
    with Cluster(clusters=True, data_dir=str(tmp_path)) as host:
        assert list(host.clusters) == []
    assert f"the cluster in {directory} is left out" in caplog.text
    assert (directory / "kubist.db").exists()


def test_clusters_are_created_and_deleted_concurrently(host: Cluster) -> None:
    errors: list[Any] = []

    def work(number: int) -> None:
        try:
            for turn in range(3):
                with host.clusters.create(
                    f"many-{number}", storage="disk" if turn == 1 else "memory"
                ) as made:
                    made.load(config_map(n=str(number)))
                    assert made.get("configmap/cm")["data"] == {"n": str(number)}
        except Exception as error:
            errors.append(error)

    threads = [threading.Thread(target=work, args=(number,)) for number in range(8)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert errors == []
    assert not [name for name in host.clusters if name.startswith("many-")]


def test_racing_creations_of_one_name_make_one_cluster(host: Cluster) -> None:
    codes: list[int] = []

    def work() -> None:
        try:
            host.request("POST", "/kubist/v1/clusters", {"name": "raced", "storage": "disk"})
            codes.append(201)
        except Refused as refused:
            codes.append(refused.code)

    threads = [threading.Thread(target=work) for _ in range(8)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert sorted(codes) == [201] + [422] * 7
    host.clusters.delete("raced")


def test_metrics_of_the_host_name_no_cluster(host: Cluster) -> None:
    with host.clusters.create("secret-name") as cluster:
        cluster.request("GET", "/api/v1/namespaces")
        assert "secret-name" not in host.request("GET", "/metrics")


def test_deleted_clusters_leave_memory(host: Cluster) -> None:
    servers = []
    for _ in range(3):
        with host.clusters.create() as cluster:
            cluster.load(config_map())
            with cluster.fork() as fork:
                fork.load(config_map(a="1"))
                servers.append(weakref.ref(fork.inner))
            servers.append(weakref.ref(cluster.inner))

    def collected() -> bool:
        gc.collect()
        return not any(server() for server in servers)

    wait_for(collected)
