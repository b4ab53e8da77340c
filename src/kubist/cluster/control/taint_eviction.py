"""Taint eviction controller: deletes pods that do not tolerate a NoExecute taint of their node, or whose toleration has
ended."""

from __future__ import annotations

from kubist.api.kinds.shared.pod_conditions import mark_disrupted
from kubist.api.object_client import ObjectClient
from kubist.cluster.control.indexes import Key, PodsByNode
from kubist.cluster.control.loop import Loop, entry_of
from kubist.cluster.control.node_fit import tolerated
from kubist.model.meta.object import Object
from kubist.model.meta.status import APIError
from kubist.storage.cache.cache import Change


class TaintEviction(Loop):
    name = "taint-eviction"
    component = "taint-eviction-controller"

    def __init__(self, client: ObjectClient) -> None:
        super().__init__(client)
        self._pods = PodsByNode()
        self._taints: dict[str, list[Object]] = {}
        """NoExecute taints of nodes that have any."""
        self._planned: dict[Key, tuple[str, float]] = {}
        """Pods that tolerate a taint for some time: their UIDs, and the time at which the taint was noticed."""

    def follow(self) -> None:
        self.watch("nodes", self._node_changed)
        self.watch("pods", self._pod_changed)

    def _node_changed(self, change: Change) -> None:
        name = entry_of(change).name
        node = self.client.parsed(change.new) if change.new is not None else {"spec": {}}
        taints = [taint for taint in node["spec"].get("taints") or () if taint.get("effect") == "NoExecute"]
        if taints == self._taints.get(name, []):
            return
        if taints:
            self._taints[name] = taints
        else:
            del self._taints[name]
        for key in self._pods.on(name):
            self.queue.add(key)

    def _pod_changed(self, change: Change) -> None:
        node = self._pods.apply(change)
        if not self._taints and not self._planned:
            return
        entry = entry_of(change)
        key = (entry.namespace, entry.name)
        if node in self._taints or key in self._planned:
            self.queue.add(key)

    async def reconcile(self, key: Key) -> None:
        pod = self.client.get("pods", key[1], key[0])
        if pod is None or "deletionTimestamp" in pod["metadata"]:
            self._planned.pop(key, None)
            return
        seconds = tolerated_for(pod, self._taints.get(pod["spec"].get("nodeName", ""), ()))
        uid = pod["metadata"]["uid"]
        planned = self._planned.get(key)
        if planned is not None and planned[0] != uid:
            planned = self._planned.pop(key) and None
        if seconds is None:
            if self._planned.pop(key, None) is not None:
                message = f"Cancelling deletion of Pod {key[0]}/{key[1]}"
                self.events.emit(pod, "Normal", "TaintManagerEviction", message)
            return
        now = self.clock.monotonic()
        since = planned[1] if planned is not None else now
        if now < since + seconds:
            self._planned[key] = (uid, since)
            self.queue.add_after(key, since + seconds - now)
            return
        self._planned.pop(key, None)
        message = f"Marking for deletion Pod {key[0]}/{key[1]}"
        self.events.emit(pod, "Normal", "TaintManagerEviction", message)
        await self._evict(pod)

    async def _evict(self, pod: Object) -> None:
        metadata, now = pod["metadata"], self.stamp()

        def mark(current: Object) -> Object | None:
            if current["metadata"]["uid"] != metadata["uid"]:
                return None
            message = "Taint manager: deleting due to NoExecute taint"
            mark_disrupted(current, "DeletionByTaintManager", message, now)
            return current

        place = (metadata["name"], metadata["namespace"])
        await self.client.update("pods", *place, mark, subresource="status")
        try:
            await self.client.delete("pods", *place, preconditions={"uid": metadata["uid"]})
        except APIError as error:
            if error.code not in (404, 409):
                raise


def tolerated_for(pod: Object, taints: list[Object] | tuple[()]) -> float | None:
    """Seconds for which a pod tolerates the NoExecute taints of its node. None if forever."""
    tolerations = pod["spec"].get("tolerations") or ()
    limits = []
    for taint in taints:
        used = next((toleration for toleration in tolerations if tolerated(taint, (toleration,))), None)
        if used is None:
            return 0.0
        if used.get("tolerationSeconds") is not None:
            limits.append(max(float(used["tolerationSeconds"]), 0.0))
    return min(limits, default=None)
