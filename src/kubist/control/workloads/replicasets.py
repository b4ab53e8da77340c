"""ReplicaSet and ReplicationController controllers: keep the wanted number of pods."""

from __future__ import annotations

import asyncio

from kubist.control.values import pod_active, pod_ready
from kubist.control.workloads import pods as of_pods
from kubist.control.workloads.pods import PodOwnerLoop
from kubist.meta import times
from kubist.meta.conditions import set_condition
from kubist.meta.object import Object
from kubist.meta.selectors import label_selector
from kubist.meta.status import APIError

AT_ONCE = 100
"""Maximum number of pods created or deleted in one pass."""


class ReplicaSets(PodOwnerLoop):
    name = "replicaset"
    resource = "replicasets"

    async def reconcile(self, key: tuple[str, str]) -> None:
        owner = self.find(key)
        if owner is None:
            return
        pods = [pod for pod in await of_pods.claim(self.client, "pods", owner) if pod_active(pod)]
        failure = ""
        if "deletionTimestamp" not in owner["metadata"]:
            try:
                await self._scale(owner, pods)
            except APIError as error:
                failure = str(error)
                self.queue.add_after(key, 1.0)
        await self._status(key, owner, pods, failure)

    async def _scale(self, owner: Object, pods: list[Object]) -> None:
        missing = owner["spec"].get("replicas", 1) - len(pods)
        if missing > 0:
            namespace = owner["metadata"]["namespace"]
            new = [
                of_pods.from_template(owner["spec"]["template"], owner) for _ in range(min(missing, AT_ONCE))
            ]
            await self.client.create("pods", new[0], namespace)  # fails early if it is not allowed
            await asyncio.gather(*(self.client.create("pods", pod, namespace) for pod in new[1:]))
        elif missing < 0:
            last = sorted(pods, key=_dispensable)[missing:] if missing else []
            await asyncio.gather(*(of_pods.delete(self.client, pod) for pod in last[:AT_ONCE]))

    async def _status(self, key: tuple[str, str], owner: Object, mine: list[Object], failure: str) -> None:
        labels = (owner["spec"].get("template") or {}).get("metadata", {}).get("labels") or {}
        full = label_selector({"matchLabels": labels})
        least = owner["spec"].get("minReadySeconds", 0)
        waits = [of_pods.available_in(pod, least) for pod in mine]
        later = [wait for wait in waits if wait]
        if later:
            self.queue.add_after(key, min(later) + 0.01)
        conditions = [c for c in owner["status"].get("conditions") or () if c["type"] != "ReplicaFailure"]
        if failure:
            why = {"type": "ReplicaFailure", "status": "True", "reason": "FailedCreate", "message": failure}
            set_condition(conditions, why, times.now())
        status = {
            "replicas": len(mine),
            "fullyLabeledReplicas": sum(full.matches(pod["metadata"].get("labels")) for pod in mine) or None,
            "readyReplicas": sum(pod_ready(pod) for pod in mine) or None,
            "availableReplicas": sum(wait == 0 for wait in waits) or None,
            "observedGeneration": owner["metadata"].get("generation"),
            "conditions": conditions,
        }
        await self.write_status(owner, status)


class ReplicationControllers(ReplicaSets):
    name = "replicationcontroller"
    resource = "replicationcontrollers"
    group = ""


def _dispensable(pod: Object) -> tuple[bool, bool, str]:
    """Sort key: scheduled, ready and old pods come first. Pods at the end are deleted first."""
    return (not pod["spec"].get("nodeName"), not pod_ready(pod), pod["metadata"].get("creationTimestamp", ""))
