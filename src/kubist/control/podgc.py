"""Pod garbage collector: marks terminating pods without a node, or on a deleted node, as failed after their grace
period and force-deletes them."""

from __future__ import annotations

from kubist import clock
from kubist.control.loop import Loop
from kubist.meta.object import Object
from kubist.meta.status import APIError
from kubist.meta.times import parse_time
from kubist.storage.cache import Change

TERMINAL = ("Succeeded", "Failed")


def _failed(pod: Object) -> Object | None:
    """Pod with the phase Failed. None if it has already ended or is not being deleted."""
    if pod["status"].get("phase") in TERMINAL or "deletionTimestamp" not in pod["metadata"]:
        return None
    pod["status"] |= {"phase": "Failed", "observedGeneration": pod["metadata"].get("generation", 0)}
    return pod


class PodGarbageCollector(Loop):
    name = "pod-garbage-collector"

    def follow(self) -> None:
        self.watch("pods", self._pod_changed)
        self.watch("nodes", self._node_changed)

    def _pod_changed(self, change: Change) -> None:
        if change.new is not None and b'"deletionTimestamp":"' in change.new.tail:
            self.enqueue(change)

    def _node_changed(self, change: Change) -> None:
        if change.new is None:
            for entry in self.client.collection("pods").entries.values():
                if b'"deletionTimestamp":"' in entry.tail:
                    self.queue.add((entry.namespace, entry.name))

    async def reconcile(self, key: tuple[str, str]) -> None:
        namespace, name = key
        pod = self.client.get("pods", name, namespace)
        if pod is None or "deletionTimestamp" not in pod["metadata"]:
            return
        node = pod["spec"].get("nodeName")
        if node and self.client.get("nodes", node) is not None:
            return
        left = parse_time(pod["metadata"]["deletionTimestamp"]) - clock.now()
        if left > 0:
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
