"""Admission by the simulated kubelet: rejects pods that bypassed the scheduler and do not fit on their node."""

from __future__ import annotations

from collections.abc import Iterable
from typing import NamedTuple

from kubist.cluster.control.node_fit import tolerated
from kubist.cluster.simulation.containers import PodEvent
from kubist.cluster.simulation.pod_status import TERMINAL
from kubist.cluster.simulation.scheduler.cycle import ports_conflict
from kubist.cluster.simulation.scheduler.pod_info import PodInfo
from kubist.cluster.simulation.scheduler.snapshot import NodeInfo
from kubist.model.meta.conditions import find
from kubist.model.meta.object import Object

SCARCE = {
    "cpu": "OutOfcpu",
    "memory": "OutOfmemory",
    "ephemeral-storage": "OutOfephemeral-storage",
    "pods": "OutOfpods",
}


class Rejection(NamedTuple):
    reason: str
    message: str

    def event(self) -> PodEvent:
        return PodEvent("Warning", self.reason, self.message)

    def status(self, pod: Object, stamp: str) -> Object:
        status = {**pod["status"], "phase": "Failed", "startTime": stamp}
        return status | {"reason": self.reason, "message": f"Pod was rejected: {self.message}"}


def needs_admission(pod: Object) -> bool:
    """Whether a pod is new on its node and was not bound by a scheduler."""
    status = pod["status"]
    if "startTime" in status or status.get("phase") in TERMINAL or "deletionTimestamp" in pod["metadata"]:
        return False
    return (find(status.get("conditions"), "PodScheduled") or {}).get("status") != "True"


def rejection_of(pod: Object, node: Object, others: Iterable[Object]) -> Rejection | None:
    """Reason to reject a pod. `others` are the pods of the node that the kubelet admitted before."""
    info, place = PodInfo(pod), NodeInfo(node["metadata"]["name"])
    place.set_node(node)
    count = 0
    for other in others:
        place.count(PodInfo(other), 1)
        count += 1
    if count + 1 > (room := place.allocatable.get("pods", 0)):
        return _short("pods", 1, count, room)
    for name, amount in info.requests.items():
        used, size = place.requested.get(name, 0), place.allocatable.get(name)
        if size is not None and amount > size - used:
            return _short(name, amount, used, size)
    if info.node_rule is not None and not info.node_rule(place.name, place.labels):
        return _failed("NodeAffinity", "node(s) didn't match Pod's node affinity/selector")
    if ports_conflict(info.ports, place.ports):
        return _failed("NodePorts", "node(s) didn't have free ports for the requested pod ports")
    tolerations = pod["spec"].get("tolerations") or ()
    taints = [taint for taint in place.hard_taints if taint.get("effect") == "NoExecute"]
    if not all(tolerated(taint, tolerations) for taint in taints):
        return _failed("TaintToleration", "node(s) had taints that the pod didn't tolerate")
    return None


def _failed(predicate: str, why: str) -> Rejection:
    return Rejection(predicate, f"Predicate {predicate} failed: {why}")


def _short(resource: str, requested: int, used: int, capacity: int) -> Rejection:
    reason = SCARCE.get(resource, f"OutOf{resource}")
    return Rejection(
        reason,
        f"Node didn't have enough resource: {resource}, requested: {requested}, used: {used}, capacity: {capacity}",
    )
