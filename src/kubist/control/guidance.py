"""Guidance for users of `kubist serve` without workload controllers: an Event on workloads that nobody works on."""

from __future__ import annotations

import functools

from kubist.control.loop import Loop, controller_of, entry_of
from kubist.meta.object import Object
from kubist.objectclient import ObjectClient
from kubist.storage.cache import Change

KINDS = {
    "deployments": "apps",
    "replicasets": "apps",
    "statefulsets": "apps",
    "daemonsets": "apps",
    "replicationcontrollers": "",
    "jobs": "batch",
}
"""Resources whose controllers note in the status that they have seen an object, with their groups."""
PATIENCE = 5.0
"""Seconds in which a controller is expected to act."""
MOST = 1000
"""Maximum number of objects that get an Event, because a load test may create any number."""
REASON = "NoController"


class Guidance(Loop):
    """Records one Event for each workload that no controller has seen."""

    name = "guidance"
    component = "kubist"

    def __init__(self, client: ObjectClient) -> None:
        super().__init__(client)
        self._told = 0

    def follow(self) -> None:
        for resource, group in KINDS.items():
            self.watch(resource, functools.partial(self._workload_changed, resource), group=group)

    def _workload_changed(self, resource: str, change: Change) -> None:
        if change.old is None and self._told < MOST:
            entry = entry_of(change)
            self.queue.add_after((resource, entry.namespace, entry.name), PATIENCE)

    async def reconcile(self, key: tuple[str, str, str]) -> None:
        resource, namespace, name = key
        found = self.client.get(resource, name, namespace, group=KINDS[resource])
        if found is None or is_seen(found) or controller_of(found) is not None or self._told >= MOST:
            return
        uid = found["metadata"]["uid"].encode()
        events = self.client.labelled("events", namespace)
        if any(uid in event.tail and REASON.encode() in event.tail for event in events):
            return
        self._told += 1
        self.events.emit(found, "Warning", REASON, guidance(found["kind"]))


def is_seen(workload: Object) -> bool:
    """Whether a controller has worked on an object, or the object is being deleted."""
    status = workload.get("status") or {}
    if "deletionTimestamp" in workload["metadata"]:
        return True
    if workload["kind"] == "Job":
        return bool(workload["spec"].get("managedBy")) or bool(status)
    return bool(status.get("observedGeneration"))


def guidance(kind: str) -> str:
    return f"no {kind} controller is running; start kubist serve --workloads or a kube-controller-manager"
