"""Nodes, pods and a snapshot for tests of the scheduler's functions."""

from __future__ import annotations

import itertools
from typing import Any

from kubist.cluster.simulation.scheduler.cycle import Cycle, Rejected, choose
from kubist.cluster.simulation.scheduler.pod_info import PodInfo
from kubist.cluster.simulation.scheduler.refusal import Refusal, summary
from kubist.cluster.simulation.scheduler.snapshot import Snapshot
from kubist.cluster.simulation.scheduler.volumes import Volumes
from kubist.model.meta.object import Object

_numbers = itertools.count()
KINDS = {
    "persistentvolumeclaims": "PersistentVolumeClaim",
    "persistentvolumes": "PersistentVolume",
    "storageclasses": "StorageClass",
}
HOST, ZONE = "kubernetes.io/hostname", "topology.kubernetes.io/zone"


def node(name: str, taints: list[Object] | None = None, unschedulable: bool = False, **labels: str) -> Object:
    """Node with 4 CPUs, 8 GiB and 10 pods. `zone` sets the zone label, `cpu`, `memory` and `pods` the size."""
    size = {"cpu": "4", "memory": "8Gi", "pods": "10"}
    size |= {part: labels.pop(part) for part in list(size) if part in labels}
    found = {HOST: name} | ({ZONE: labels.pop("zone")} if "zone" in labels else {}) | labels
    spec: Object = {"taints": taints or []}
    if unschedulable:
        spec["unschedulable"] = True
    return {
        "metadata": {"name": name, "uid": name, "labels": found},
        "spec": spec,
        "status": {"allocatable": size},
    }


def pod(
    name: str = "",
    on: str = "",
    namespace: str = "default",
    labels: dict[str, str] | None = None,
    requests: dict[str, str] | None = None,
    containers: list[Object] | None = None,
    started: int = 0,
    terminating: bool = False,
    **spec: Any,
) -> PodInfo:
    number = next(_numbers)
    metadata: Object = {
        "name": name or f"p{number}",
        "namespace": namespace,
        "uid": f"u{number}",
        "labels": labels or {},
        "creationTimestamp": f"2026-01-01T00:00:{started:02}Z",
    }
    if terminating:
        metadata["deletionTimestamp"] = "2026-01-01T01:00:00Z"
    held = containers or [{"name": "c", "image": "i", "resources": {"requests": requests or {}}}]
    if on:
        spec["nodeName"] = on
    return PodInfo({"metadata": metadata, "spec": {"containers": held, **spec}, "status": {}})


class Objects:
    """Claims, volumes and StorageClasses by name, in place of a client."""

    def __init__(self, *objects: Object) -> None:
        self.objects = objects

    def get(self, resource: str, name: str, namespace: str = "", *, group: str = "") -> Object | None:
        return next((o for o in self.list(resource, group=group) if o["metadata"]["name"] == name), None)

    def list(self, resource: str, namespace: str | None = "", *, group: str = "") -> list[Object]:
        return [held for held in self.objects if held["kind"] == KINDS[resource]]


class World:
    """A snapshot with nodes and pods."""

    def __init__(
        self, *nodes: Object, pods: list[PodInfo] | None = None, objects: Objects | None = None
    ) -> None:
        self.snapshot = Snapshot()
        self.volumes = Volumes(objects or Objects())  # type: ignore[arg-type]
        for one in nodes:
            self.snapshot.set_node(one["metadata"]["name"], one)
        for held in pods or ():
            self.snapshot.add(held)

    def refusals(self, wanted: PodInfo) -> dict[str, Refusal]:
        return Cycle(wanted, self.snapshot, self.volumes).search()[1]

    def fitting(self, wanted: PodInfo) -> list[str]:
        """Names of the nodes that fit."""
        return [info.name for info in Cycle(wanted, self.snapshot, self.volumes).search()[0]]

    def why(self, wanted: PodInfo) -> str:
        """Message about a pod that fits nowhere."""
        try:
            found = self.refusals(wanted)
        except Rejected as error:
            return str(error)
        assert len(found) == len(self.snapshot.nodes), f"fits: {self.fitting(wanted)}"
        return summary(len(found), found.values())

    def place(self, wanted: PodInfo) -> str:
        """Assigns a pod to the best node and returns its name."""
        fitting = Cycle(wanted, self.snapshot, self.volumes).search()[0]
        wanted.node = choose(wanted, self.snapshot, fitting).name
        self.snapshot.add(wanted)
        return wanted.node
