"""Guidance for users of `kubist serve` without workload controllers: an Event on workloads that no controller handles,
and on pods that no scheduler handles."""

from __future__ import annotations

import functools

from kubist.api.object_client import ObjectClient
from kubist.cluster.control.loop import Loop, controller_of, entry_of
from kubist.model.meta.object import Object
from kubist.storage.cache.cache import Change

KINDS = {
    "deployments": "apps",
    "replicasets": "apps",
    "statefulsets": "apps",
    "daemonsets": "apps",
    "replicationcontrollers": "",
    "jobs": "batch",
    "pods": "",
}
"""Resources whose controllers leave a trace in the objects that they have seen, with their groups."""
DEFAULT_SCHEDULER = "default-scheduler"
PATIENCE = 5.0
"""Seconds in which a controller is expected to act."""
MOST = 1000
"""Maximum number of objects that get an Event, because a load test may create any number."""
REASON, POD_REASON = "NoController", "NoScheduler"


class Guidance(Loop):
    """Records one Event for each workload that no controller has seen, and each pod that no scheduler has seen."""

    name = "guidance"
    component = "kubist"

    def __init__(self, client: ObjectClient) -> None:
        super().__init__(client)
        self._told = 0
        self._waiting = 0

    def follow(self) -> None:
        for resource, group in KINDS.items():
            self.watch(resource, functools.partial(self._workload_changed, resource), group=group)

    def _workload_changed(self, resource: str, change: Change) -> None:
        if change.old is not None or self._told >= MOST or self._waiting >= MOST:
            return
        entry = entry_of(change)
        if resource == "pods" and b'"nodeName":' in entry.tail:
            return
        self._waiting += 1
        self.queue.add_after((resource, entry.namespace, entry.name), PATIENCE)

    async def reconcile(self, key: tuple[str, str, str]) -> None:
        resource, namespace, name = key
        self._waiting = max(0, self._waiting - 1)
        obj = self.client.get(resource, name, namespace, group=KINDS[resource])
        if obj is None or is_seen(obj) or controller_of(obj) is not None or self._told >= MOST:
            return
        uid = obj["metadata"]["uid"].encode()
        reason = POD_REASON if resource == "pods" else REASON
        events = self.client.labelled("events", namespace)
        if any(uid in event.tail and reason.encode() in event.tail for event in events):
            return
        self._told += 1
        self.events.emit(obj, "Warning", reason, guidance(obj["kind"]))


def is_seen(workload: Object) -> bool:
    """Whether a controller or scheduler has worked on an object, or the object is being deleted."""
    status = workload.get("status") or {}
    if "deletionTimestamp" in workload["metadata"]:
        return True
    if workload["kind"] == "Job":
        return bool(workload["spec"].get("managedBy")) or bool(status)
    if workload["kind"] == "Pod":
        spec = workload["spec"]
        is_ours = spec.get("schedulerName", DEFAULT_SCHEDULER) == DEFAULT_SCHEDULER
        bound = bool(spec.get("nodeName") or spec.get("schedulingGates"))
        return bound or not is_ours or bool(status.get("conditions"))
    return bool(status.get("observedGeneration"))


def guidance(kind: str) -> str:
    if kind == "Pod":
        return "no scheduler is running; start kubist serve --workloads or a kube-scheduler"
    return f"no {kind} controller is running; start kubist serve --workloads or a kube-controller-manager"
