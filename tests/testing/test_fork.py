"""Forks of a cluster: the same content, then independence in everything."""

from __future__ import annotations

import asyncio
import gc
import json
import ssl
import urllib.request
import weakref
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

import kubist
from kubist.storage.cache.cache import ROOT
from kubist.storage.memory import MemoryStore
from kubist.testing import Cluster, Host
from kubist.testing.cluster import Refused
from tests.storage.etcd_server import running_etcd
from tests.testing.test_plugin import run_pytest
from tests.waiting import wait_for

WIDGETS = {
    "apiVersion": "apiextensions.k8s.io/v1",
    "kind": "CustomResourceDefinition",
    "metadata": {"name": "widgets.example.com"},
    "spec": {
        "group": "example.com",
        "scope": "Namespaced",
        "names": {"plural": "widgets", "singular": "widget", "kind": "Widget"},
        "versions": [
            {
                "name": "v1",
                "served": True,
                "storage": True,
                "schema": {
                    "openAPIV3Schema": {
                        "type": "object",
                        "properties": {
                            "spec": {
                                "type": "object",
                                "properties": {"size": {"type": "integer", "default": 3}},
                            }
                        },
                    }
                },
            }
        ],
    },
}
WIDGET = {"apiVersion": "example.com/v1", "kind": "Widget", "metadata": {"name": "one"}, "spec": {}}
FORKING_TESTS = """
forks = []

def test_first(cluster):
    forks.append(cluster.fork())
    forks.append(forks[0].fork())

def test_second():
    assert [fork.loop for fork in forks] == [None, None]
"""
CONFIG_MAPS = "/api/v1/namespaces/default/configmaps"


def config_map(name: str, value: str = "") -> dict[str, Any]:
    return {"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": name}, "data": {"value": value}}


@pytest.fixture(scope="module")
def host() -> Iterator[Host]:
    host = Host()
    yield host
    host.stop()


def stored(cluster: Cluster) -> dict[str, tuple[bytes, int, int]]:
    """Stored values with their create and mod revisions by key."""
    scan = cluster.run(cluster.inner.store.scan(ROOT))
    return {kv.key: (kv.value, kv.create_revision, kv.mod_revision) for kv in scan.items}


def test_fork_has_the_same_objects_uids_and_resource_versions(cluster: Cluster) -> None:
    cluster.load(WIDGETS, WIDGET, config_map("shared", "1"))
    other = cluster.fork()
    for reference in ("widget/one", "configmap/shared", "namespace/default", "crd/widgets.example.com"):
        assert other.get(reference) == cluster.get(reference)
    assert cluster.url != other.url
    assert other.get("widget/one")["spec"] == {"size": 3}


def test_writes_in_one_are_not_seen_in_the_other(cluster: Cluster) -> None:
    cluster.load(config_map("changed", "old"), config_map("deleted"))
    other = cluster.fork()
    before, before_other = stored(cluster), stored(other)
    assert before == before_other
    other.load(config_map("changed", "new"), config_map("created"))
    other.delete("configmap/deleted")
    assert stored(cluster) == before
    cluster.load(config_map("changed", "newer"))
    assert other.get("configmap/changed")["data"] == {"value": "new"}
    assert {kept["metadata"]["name"] for kept in cluster.list("configmaps")} >= {"changed", "deleted"}
    with pytest.raises(Refused) as refused:
        cluster.get("configmap/created")
    assert refused.value.code == 404


def test_fork_of_a_fork_outlives_both(host: Host) -> None:
    cluster = host.cluster()
    cluster.load(WIDGETS, WIDGET)
    other = cluster.fork()
    cluster.stop()
    other.load(config_map("second"))
    third = other.fork()
    other.stop()
    with third:
        assert third.get("widget/one")["spec"] == {"size": 3}
        assert third.get("configmap/second")
        third.load(config_map("third"))
        assert third.get("configmap/third")
    assert third.loop is None


def test_parent_with_a_thread_of_its_own_may_stop_first() -> None:
    with Cluster() as cluster:
        cluster.load(config_map("shared"))
        other = cluster.fork()
    with other:
        assert other.get("configmap/shared")
        assert other.kubeconfig.exists() and other.ca.exists()
        directory = other.kubeconfig.parent
    assert not directory.exists()


def test_stopped_parent_is_freed_though_its_fork_shares_its_entries() -> None:
    cluster = Cluster()
    cluster.start()
    cluster.load(config_map("shared"), WIDGETS, WIDGET)
    other = cluster.fork()
    inner = weakref.ref(cluster.inner.registry)
    cluster.stop()
    del cluster
    with other:
        assert other.get("configmap/shared")
        wait_for(lambda: gc.collect() >= 0 and inner() is None, explain=lambda: gc.get_referrers(inner()))


def test_entries_are_the_same_objects(cluster: Cluster) -> None:
    cluster.load(config_map("shared"), WIDGETS, WIDGET)
    other = cluster.fork()

    def entry(of: Cluster, prefix: str, name: str) -> Any:
        return of.inner.registry.cache.collections[prefix].get(f"{prefix}default/{name}")

    prefix = f"{ROOT}configmaps/"
    assert entry(other, prefix, "shared") is entry(cluster, prefix, "shared")
    custom = f"{ROOT}example.com/widgets/"
    assert entry(other, custom, "one") is not entry(cluster, custom, "one")
    assert entry(other, custom, "one").tail is entry(cluster, custom, "one").tail
    values = [of.inner.store._values[f"{prefix}default/shared"] for of in (cluster, other)]  # type: ignore[attr-defined]
    assert values[0] is values[1]


def test_changed_crd_in_the_fork_leaves_the_parent_alone(cluster: Cluster) -> None:
    cluster.load(WIDGETS, WIDGET)
    other = cluster.fork()
    other.delete("crd/widgets.example.com")
    other.wait("crd/widgets.example.com", "delete")
    with pytest.raises(Refused):
        other.request("GET", "/apis/example.com/v1/namespaces/default/widgets")
    assert cluster.get("widget/one")
    cluster.load({**WIDGET, "spec": {"size": 5}})
    assert cluster.get("widget/one")["spec"] == {"size": 5}


def events_since(cluster: Cluster, version: str) -> list[tuple[str, str | int]]:
    """Type and name, or code, of the events of a watch that ends after one second."""
    context = ssl.create_default_context(cafile=str(cluster.ca))
    query = f"watch=1&resourceVersion={version}&timeoutSeconds=1"
    request = urllib.request.Request(
        f"{cluster.url}{CONFIG_MAPS}?{query}", headers={"Authorization": f"Bearer {cluster.token}"}
    )
    with urllib.request.urlopen(request, context=context) as response:
        events = [json.loads(line) for line in response]
    return [
        (event["type"], event["object"].get("code") or event["object"]["metadata"]["name"])
        for event in events
    ]


def test_watch_in_the_fork_starts_at_versions_of_the_parent(cluster: Cluster) -> None:
    first = cluster.load(config_map("a"))[0]["metadata"]["resourceVersion"]
    cluster.load(config_map("b"))
    other = cluster.fork()
    cluster.load(config_map("only-in-the-parent"))
    other.load(config_map("c"))
    assert events_since(other, first) == [("ADDED", "b"), ("ADDED", "c")]
    assert events_since(other, "1") == [("ERROR", 410)]


def test_list_pages_go_on_in_the_fork(cluster: Cluster) -> None:
    cluster.load(*(config_map(name) for name in "abcd"))
    page = cluster.request("GET", f"{CONFIG_MAPS}?limit=2")
    other = cluster.fork()
    other.delete("configmap/d")
    rest = other.request("GET", f"{CONFIG_MAPS}?limit=10&continue={page['metadata']['continue']}")
    assert rest["metadata"]["resourceVersion"] == page["metadata"]["resourceVersion"]
    assert [each["metadata"]["name"] for each in page["items"] + rest["items"]][:4] == ["a", "b", "c", "d"]


def test_credentials_of_the_parent_are_valid_in_the_fork(cluster: Cluster) -> None:
    alice = cluster.user("alice", rules=[{"apiGroups": [""], "resources": ["configmaps"], "verbs": ["list"]}])
    robot = cluster.service_account(
        "robot", rules=[{"apiGroups": [""], "resources": ["configmaps"], "verbs": ["list"]}]
    )
    other = cluster.fork()
    assert other.request("GET", CONFIG_MAPS, token=robot.token)["kind"] == "ConfigMapList"
    assert other.request("GET", CONFIG_MAPS, token=alice.token)["kind"] == "ConfigMapList"
    with pytest.raises(Refused) as refused:
        other.request("GET", "/api/v1/nodes", token=robot.token)
    assert refused.value.code == 403


def test_clock_starts_where_the_parent_is_and_moves_alone(cluster: Cluster) -> None:
    cluster.clock.freeze()
    cluster.clock.advance("1h")
    other = cluster.fork()
    assert other.clock.now == cluster.clock.now
    now = cluster.clock.now
    other.clock.advance("1h")
    assert cluster.clock.now == now != other.clock.now
    made = other.load(config_map("later"))[0]["metadata"]["creationTimestamp"]
    assert made == other.clock.now.strftime("%Y-%m-%dT%H:%M:%SZ")


def test_expiry_goes_on_in_the_fork(cluster: Cluster) -> None:
    event = {
        "apiVersion": "v1",
        "kind": "Event",
        "metadata": {"name": "old", "namespace": "default"},
        "involvedObject": {"kind": "Pod", "name": "a", "namespace": "default"},
    }
    cluster.request("POST", "/api/v1/namespaces/default/events", event)
    other = cluster.fork()
    other.clock.advance("2h")
    wait_for(lambda: not [e for e in other.list("events") if e["metadata"]["name"] == "old"])
    assert cluster.get("event/old")


def test_control_loops_of_each_work_alone(cluster: Cluster) -> None:
    cluster.load({"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": "team"}})
    cluster.wait("serviceaccount/default", lambda _: True, namespace="team")
    other = cluster.fork()
    other.delete("namespace/team")
    other.wait("namespace/team", "delete")
    assert cluster.get("namespace/team")["status"]["phase"] == "Active"


@pytest.mark.kubist(workloads=True)
def test_simulated_workloads_go_on_in_the_fork(cluster: Cluster) -> None:
    labels = {"app": "web"}
    cluster.load(
        {
            "apiVersion": "apps/v1",
            "kind": "Deployment",
            "metadata": {"name": "web"},
            "spec": {
                "replicas": 2,
                "selector": {"matchLabels": labels},
                "template": {
                    "metadata": {"labels": labels},
                    "spec": {"containers": [{"name": "web", "image": "web:1"}]},
                },
            },
        }
    )
    cluster.wait("deployment/web", "Available", timeout=30)
    other = cluster.fork()
    scale = "/apis/apps/v1/namespaces/default/deployments/web/scale"
    other.request("PATCH", scale, {"spec": {"replicas": 3}}, "application/merge-patch+json")
    other.wait("deployment/web", lambda found: found["status"].get("readyReplicas") == 3, timeout=30)
    assert len(cluster.list("pods")) == 2
    name = cluster.list("pods")[0]["metadata"]["name"]
    other.pod(name).fail(exit_code=3)
    other.wait(
        f"pod/{name}", lambda pod: pod["status"]["containerStatuses"][0]["restartCount"] > 0, timeout=30
    )
    assert cluster.get(f"pod/{name}")["status"]["containerStatuses"][0]["restartCount"] == 0


def test_fixture_stops_forks(tmp_path: Path) -> None:
    (tmp_path / "test_it.py").write_text(FORKING_TESTS)
    assert "2 passed" in run_pytest(tmp_path)


def test_fork_of_a_server_on_disk_is_in_memory(tmp_path: Path) -> None:
    with Cluster(data_dir=str(tmp_path / "data")) as cluster:
        cluster.load(WIDGETS, WIDGET)
        with cluster.fork() as other:
            assert isinstance(other.inner.store, MemoryStore)
            assert other.get("widget/one") == cluster.get("widget/one")
            other.delete("widget/one")
            assert cluster.get("widget/one")


def test_fork_in_the_event_loop_of_the_caller() -> None:
    async def main() -> None:
        async with kubist.Server() as server, await server.fork_here() as other:
            assert other.port != server.port
            revision = await server.inner.store.revision()
            await other.inner.store.create(f"{ROOT}configmaps/default/a", b"{}")
            assert await server.inner.store.revision() == revision

    asyncio.run(main())


def test_fork_needs_a_running_cluster() -> None:
    with pytest.raises(RuntimeError, match="not running"):
        Cluster().fork()


@pytest.mark.etcd
def test_cluster_on_etcd_can_be_forked_and_restored(tmp_path: Path) -> None:
    with running_etcd(tmp_path) as etcd, Cluster(etcd_servers=(etcd.endpoint,)) as cluster:
        cluster.load(config_map("kept"))
        taken = cluster.snapshot()
        with cluster.fork() as other:
            assert other.get("configmap/kept") == cluster.get("configmap/kept")
            other.delete("configmap/kept")
        cluster.load(config_map("later"))
        cluster.delete("configmap/kept")
        cluster.restore(taken)
        names = {found["metadata"]["name"] for found in cluster.list("configmaps")}
        assert "kept" in names and "later" not in names
