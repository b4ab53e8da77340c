"""A stopped cluster is freed: nothing in the process keeps its server."""

from __future__ import annotations

import asyncio
import gc
import os
import re
import subprocess
import sys
import weakref
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

import kubist
from kubist.testing import Cluster, Host
from tests.simulation.stages.making import CRD, pod, stage
from tests.waiting import wait_for

GROWTH = """
import gc, sys
from kubist.testing import Cluster, Host

def resident() -> float:
    gc.collect()
    return int(open("/proc/self/statm").read().split()[1]) * 4096 / 1e6

host = Host()
parent = host.cluster(workloads=True)
makers = {
    "plain": lambda: host.cluster(),
    "workloads": lambda: host.cluster(workloads=True),
    "fork": lambda: parent.fork(),
    "hosted": lambda: host.clusters.create(workloads=True),
    "own thread": lambda: Cluster(workloads=True),
}
make, count = makers[sys.argv[1]], int(sys.argv[2])
sizes = []
for number in range(count):
    with make() as cluster:
        cluster.wait("node/kubist-node-0", "Ready") if sys.argv[1] != "plain" else cluster.list("namespaces")
    if number == 19:
        first = resident()
print(resident() - first)
"""


@pytest.fixture(scope="module")
def host() -> Iterator[Host]:
    made = Host()
    yield made
    made.stop()


def plain(host: Host) -> Cluster:
    return host.cluster()


def with_workloads(host: Host) -> Cluster:
    cluster = host.cluster(workloads=True)
    cluster.load(pod("web"))
    cluster.wait("pod/web", "Ready")
    cluster.clock.advance(600)
    return cluster


def with_stages(host: Host) -> Cluster:
    cluster = host.cluster(workloads=True)
    cluster.load(CRD)
    cluster.load(stage("all", next={"statusTemplate": "reason: Staged"}))
    cluster.load(pod("staged"))
    wait_for(lambda: cluster.get("pod/staged")["status"].get("reason") == "Staged")
    return cluster


def forked(host: Host) -> Cluster:
    with host.cluster(workloads=True) as parent:
        return parent.fork()


def hosted(host: Host) -> Cluster:
    cluster = host.clusters.create(workloads=True)
    cluster.wait("node/kubist-node-0", "Ready")
    return cluster


def with_own_thread(_host: Host) -> Cluster:
    cluster = Cluster(workloads=True)
    cluster.start()
    return cluster


def well_used(host: Host) -> Cluster:
    cluster = host.cluster()
    cluster.load(CRD)
    cluster.faults.add(verb="get", resource="pods", status=500)
    with cluster.recording():
        cluster.load(stage("all", next={"statusTemplate": "reason: Staged"}))
    cluster.restore(cluster.snapshot())
    cluster.user("ann", rules=[{"apiGroups": [""], "resources": ["pods"], "verbs": ["get"]}])
    cluster.request("GET", "/openapi/v3")
    assert cluster.clients.kubernetes
    return cluster


@pytest.mark.filterwarnings("ignore::kubist.testing.plugin.UnusedFaultWarning")
@pytest.mark.parametrize(
    "make", [plain, with_workloads, with_stages, forked, hosted, with_own_thread, well_used]
)
def test_stopped_cluster_is_freed(host: Host, make: Callable[[Host], Cluster]) -> None:
    cluster = make(host)
    parts = [weakref.ref(part) for part in (cluster, cluster.inner, cluster.inner.registry)]
    cluster.stop()
    del cluster
    gc.collect()
    assert [part() for part in parts] == [None, None, None]


def test_stopped_server_of_an_event_loop_is_freed() -> None:
    async def run() -> weakref.ref[Any]:
        async with kubist.Server(workloads=True) as server:
            return weakref.ref(server.inner)

    server = asyncio.run(run())
    gc.collect()
    assert server() is None


def test_no_module_has_state_of_servers() -> None:
    """A value of a WeakKeyDictionary that refers to its key keeps the key for ever. State belongs to the server."""
    source = Path(kubist.__file__).parent
    keyed = re.compile(r"^\w.*\bWeakKeyDictionary\b.*=", re.MULTILINE)
    assert [path for path in source.rglob("*.py") if keyed.search(path.read_text())] == []


@pytest.mark.slow
@pytest.mark.parametrize("kind", ["plain", "workloads", "fork", "hosted", "own thread"])
@pytest.mark.skipif(sys.platform != "linux", reason="reads /proc")
def test_memory_does_not_grow_with_stopped_clusters(kind: str) -> None:
    # Several arenas of malloc grow by chance, with the threads that happen to use them.
    environment = os.environ | {"MALLOC_ARENA_MAX": "1"}
    command = [sys.executable, "-c", GROWTH, kind, "200"]
    run = subprocess.run(command, capture_output=True, text=True, check=True, env=environment)
    assert float(run.stdout) <= 5, "MB of 180 clusters"
