"""Simulated scheduler: binds pods to nodes."""

from __future__ import annotations

from kubist.control.loop import Loop
from kubist.control.tolerations import tolerated
from kubist.meta.conditions import find, set_condition
from kubist.meta.object import Object
from kubist.meta.status import APIError
from kubist.simulation.actors import SCHEDULER
from kubist.storage.cache import Change


class Scheduler(Loop):
    """Binds pods to the first node that is ready, not cordoned, and allowed by nodeSelector and tolerations."""

    name = "simulated-scheduler"
    component = "default-scheduler"
    actor = SCHEDULER

    def follow(self) -> None:
        self.watch("pods", self._pod_changed)
        self.watch("nodes", self._node_changed)

    def _pod_changed(self, change: Change) -> None:
        if change.new is not None and b'"nodeName":"' not in change.new.tail:
            self.enqueue(change)

    def _node_changed(self, change: Change) -> None:
        for entry in self.client.collection("pods").entries.values():
            if b'"nodeName":"' not in entry.tail:
                self.queue.add((entry.namespace, entry.name))

    async def reconcile(self, key: tuple[str, str]) -> None:
        namespace, name = key
        pod = self.client.get("pods", name, namespace)
        if pod is None or pod["spec"].get("nodeName") or "deletionTimestamp" in pod["metadata"]:
            return
        if pod["spec"].get("schedulerName") != "default-scheduler" or pod["spec"].get("schedulingGates"):
            return
        node = next((node for node in self.client.list("nodes") if fits(pod, node)), None)
        now = self.stamp()

        def bind(held: Object) -> Object | None:
            if held["spec"].get("nodeName"):
                return None
            conditions = held["status"].setdefault("conditions", [])
            if node is None:
                why = {"status": "False", "reason": "Unschedulable", "message": "no node is suitable"}
                return held if set_condition(conditions, {"type": "PodScheduled", **why}, now) else None
            held["spec"]["nodeName"] = node["metadata"]["name"]
            set_condition(conditions, {"type": "PodScheduled", "status": "True"}, now)
            return held

        try:
            await self.client.mutate("pods", name, namespace, bind)
        except APIError as error:
            if error.code != 404:
                raise


def fits(pod: Object, node: Object) -> bool:
    spec = node["spec"]
    if (
        spec.get("unschedulable")
        or (find(node["status"].get("conditions"), "Ready") or {}).get("status") != "True"
    ):
        return False
    labels = node["metadata"].get("labels") or {}
    if any(labels.get(key) != value for key, value in (pod["spec"].get("nodeSelector") or {}).items()):
        return False
    return all(tolerated(taint, pod["spec"].get("tolerations") or ()) for taint in spec.get("taints") or ())
