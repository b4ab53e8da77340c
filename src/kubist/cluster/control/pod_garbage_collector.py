"""Pod garbage collector: marks terminating pods as failed and force-deletes them. Pods without a node, or on a deleted
node, get their grace period first. Pods on a node that is not ready and out of service get none."""

from __future__ import annotations

from kubist.base import clock
from kubist.cluster.control.loop import Loop
from kubist.model.meta.conditions import find
from kubist.model.meta.object import Object
from kubist.model.meta.status import APIError
from kubist.model.meta.times import parse_time
from kubist.storage.cache.cache import Change

TERMINAL = ("Succeeded", "Failed")
OUT_OF_SERVICE = "node.kubernetes.io/out-of-service"
"""Taint that users add to a node that was shut down, so that its pods need not wait for its kubelet."""


def _failed(pod: Object) -> Object | None:
    """Pod with the phase Failed. None if it has already ended or is not being deleted."""
    if pod["status"].get("phase") in TERMINAL or "deletionTimestamp" not in pod["metadata"]:
        return None
    pod["status"] |= {"phase": "Failed", "observedGeneration": pod["metadata"].get("generation", 0)}
    return pod


def _is_out_of_service(node: Object) -> bool:
    ready = find((node.get("status") or {}).get("conditions"), "Ready") or {}
    taints = node["spec"].get("taints") or ()
    return ready.get("status") != "True" and any(taint["key"] == OUT_OF_SERVICE for taint in taints)


class PodGarbageCollector(Loop):
    name = "pod-garbage-collector"

    def follow(self) -> None:
        self.watch("pods", self._pod_changed)
        self.watch("nodes", self._node_changed)

    def _pod_changed(self, change: Change) -> None:
        if change.new is not None and b'"deletionTimestamp":"' in change.new.tail:
            self.enqueue(change)

    def _node_changed(self, change: Change) -> None:
        if change.new is None or OUT_OF_SERVICE.encode() in change.new.tail:
            for entry in self.client.collection("pods").entries.values():
                if b'"deletionTimestamp":"' in entry.tail:
                    self.queue.add((entry.namespace, entry.name))

    async def reconcile(self, key: tuple[str, str]) -> None:
        namespace, name = key
        pod = self.client.get("pods", name, namespace)
        if pod is None or "deletionTimestamp" not in pod["metadata"]:
            return
        name_of_node = pod["spec"].get("nodeName")
        node = self.client.get("nodes", name_of_node) if name_of_node else None
        if node is not None and not _is_out_of_service(node):
            return
        left = parse_time(pod["metadata"]["deletionTimestamp"]) - clock.now()
        if left > 0 and node is None:
            self.queue.add_after(key, left)
            return
        # A finalizer may hold the pod; its controller then waits for the end of the pod.
        await self.client.update("pods", name, namespace, _failed, subresource="status")
        try:
            conditions = {"uid": pod["metadata"]["uid"]}
            await self.client.delete("pods", name, namespace, gracePeriodSeconds=0, preconditions=conditions)
        except APIError as error:
            if error.code not in (404, 409):
                raise
