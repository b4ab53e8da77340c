"""Cost of a scheduling decision: microseconds of CPU per pod, without any write.

python benchmarks/scheduling.py [--pods N]
"""

from __future__ import annotations

import argparse
import time
from collections.abc import Callable
from typing import Any

from kubist.cluster.simulation.scheduler.cycle import Cycle, choose
from kubist.cluster.simulation.scheduler.pod_info import PodInfo
from kubist.cluster.simulation.scheduler.snapshot import Snapshot
from kubist.cluster.simulation.scheduler.volumes import Volumes
from kubist.model.meta.object import Object

HOST, ZONE = "kubernetes.io/hostname", "topology.kubernetes.io/zone"
DEPLOYMENTS = 10


def node(number: int) -> Object:
    name = f"node-{number}"
    return {
        "metadata": {"name": name, "uid": name, "labels": {HOST: name, ZONE: f"zone-{number % 3}"}},
        "spec": {},
        "status": {"allocatable": {"cpu": "64", "memory": "256Gi", "pods": "1000"}},
    }


def pod(number: int, spec: Object) -> Object:
    owner = {"controller": True, "uid": f"rs-{number % DEPLOYMENTS}"}
    container = {"name": "c", "image": "i", "resources": {"requests": {"cpu": "10m"}}}
    return {
        "metadata": {
            "namespace": "default",
            "name": f"pod-{number}",
            "uid": f"pod-{number}",
            "labels": labels(number),
            "creationTimestamp": "2026-01-01T00:00:00Z",
            "ownerReferences": [owner],
        },
        "spec": {"containers": [container], **spec},
        "status": {},
    }


def labels(number: int) -> dict[str, str]:
    return {"app": f"web-{number % DEPLOYMENTS}"}


def spread(number: int) -> dict[str, Any]:
    constraint = {
        "maxSkew": 1,
        "topologyKey": ZONE,
        "whenUnsatisfiable": "DoNotSchedule",
        "labelSelector": {"matchLabels": labels(number)},
    }
    return {"topologySpreadConstraints": [constraint]}


def repelled(number: int) -> dict[str, Any]:
    term = {"topologyKey": HOST, "labelSelector": {"matchLabels": labels(number)}}
    preferred = [{"weight": 100, "podAffinityTerm": term}]
    return {"affinity": {"podAntiAffinity": {"preferredDuringSchedulingIgnoredDuringExecution": preferred}}}


KINDS: dict[str, Callable[[int], dict[str, Any]]] = {
    "plain": lambda _: {},
    "topology spread": spread,
    "preferred anti-affinity": repelled,
}


def cost(nodes: int, pods: int, spec: Callable[[int], dict[str, Any]]) -> float:
    snapshot = Snapshot()
    for number in range(nodes):
        snapshot.set_node(f"node-{number}", node(number))
    made = [pod(number, spec(number)) for number in range(pods)]
    volumes = Volumes(None)  # type: ignore[arg-type]
    start = 0
    begin = time.process_time()
    for one in made:
        info = PodInfo(one)
        fitting, _, seen = Cycle(info, snapshot, volumes).search(start)
        start = (start + seen) % nodes
        info.node = choose(info, snapshot, fitting).name
        snapshot.add(info)
    return (time.process_time() - begin) / pods * 1e6


def main() -> None:
    parser = argparse.ArgumentParser()
    parser.add_argument("--pods", type=int, default=1000)
    pods = parser.parse_args().pods
    for label, spec in KINDS.items():
        for nodes in (2, 10, 100, 1000):
            print(f"{label:25} {nodes:5} nodes {cost(nodes, pods, spec):8.0f} us per pod", flush=True)


if __name__ == "__main__":
    main()
