"""ReplicaSet and ReplicationController controllers: keep the wanted number of pods."""

from __future__ import annotations

import asyncio
from typing import ClassVar

from kubist.cluster.control.loop import controller_of
from kubist.cluster.control.values import pod_active, pod_ready
from kubist.cluster.control.workloads import pods as of_pods
from kubist.cluster.control.workloads.pods import PodOwnerLoop
from kubist.cluster.control.workloads.victims import victims
from kubist.model.meta.conditions import find
from kubist.model.meta.object import Object
from kubist.model.meta.selectors import label_selector
from kubist.model.meta.status import APIError

BURST = 500
"""Maximum number of pods created or deleted in one pass."""
FAILURE = "ReplicaFailure"


class ReplicaSets(PodOwnerLoop):
    name = "replicaset"
    component = "replicaset-controller"
    resource = "replicasets"
    counts_terminating: ClassVar[bool] = True

    def may_claim(self, owner: Object, obj: Object) -> bool:
        return pod_active(obj)

    async def reconcile(self, key: tuple[str, str]) -> None:
        owner = self.find(key)
        if owner is None:
            return
        pods = await self.claim(owner)
        failure: APIError | None = None
        if "deletionTimestamp" not in owner["metadata"]:
            try:
                await self._scale(owner, pods)
            except APIError as error:
                failure = error
        now = self.clock.now()
        status = replica_status(owner, pods, str(failure) if failure else "", now, self.stamp())
        if self.counts_terminating:
            status["terminatingReplicas"] = self._terminating(owner)
        await self.write_status(owner, status)
        if failure is not None:
            raise failure
        self.check_later(key, pods, owner["spec"].get("minReadySeconds", 0), now)

    async def _scale(self, owner: Object, pods: list[Object]) -> None:
        missing = owner["spec"].get("replicas", 1) - len(pods)
        if missing > 0:
            template = owner["spec"]["template"]
            await of_pods.slow_start(
                min(missing, BURST), lambda _: self.create_pod(owner, of_pods.from_template(template, owner))
            )
        elif missing < 0:
            chosen = victims(pods, self._related(owner), min(-missing, BURST), self.clock.now())
            await asyncio.gather(*(self.delete_pod(owner, pod) for pod in chosen))

    def _related(self, owner: Object) -> list[Object]:
        """Pods of all ReplicaSets of the same Deployment."""
        above = controller_of(owner)
        if above is None:
            return []
        uids = [owner["metadata"]["uid"]]
        for entry in self.client.labelled(self.resource, owner["metadata"]["namespace"], group=self.group):
            if above["uid"].encode() in entry.tail:
                uids.append(self.client.parsed(entry)["metadata"]["uid"])
        return [self.client.parsed(entry) for uid in {*uids} for entry in self.index.owned(uid)]

    def _terminating(self, owner: Object) -> int:
        """Number of pods that are being deleted and have not finished."""
        selector = self.selector(owner)
        return sum(
            self.client.parsed(entry)["status"].get("phase") not in ("Succeeded", "Failed")
            for entry in self.index.owned(owner["metadata"]["uid"])
            if of_pods.DELETED in entry.tail and selector.matches(entry.labels)
        )


class ReplicationControllers(ReplicaSets):
    name = "replicationcontroller"
    component = "replication-controller"
    resource = "replicationcontrollers"
    group = ""
    counts_terminating = False


def replica_status(owner: Object, pods: list[Object], failure: str, now: float, stamp: str) -> Object:
    """Status from the active pods. `failure` is the error of the last creation or deletion."""
    labels = (owner["spec"].get("template") or {}).get("metadata", {}).get("labels") or {}
    full = label_selector({"matchLabels": labels})
    least = owner["spec"].get("minReadySeconds", 0)
    ready = [pod for pod in pods if pod_ready(pod)]
    available = sum(of_pods.available_in(pod, least, now) == 0 for pod in ready) if least else len(ready)
    return {
        "replicas": len(pods),
        "fullyLabeledReplicas": sum(full.matches(pod["metadata"].get("labels")) for pod in pods) or None,
        "readyReplicas": len(ready) or None,
        "availableReplicas": available or None,
        "observedGeneration": owner["metadata"].get("generation"),
        "conditions": _conditions(owner, len(pods), failure, stamp),
    }


def _conditions(owner: Object, count: int, failure: str, stamp: str) -> list[Object]:
    conditions = list(owner["status"].get("conditions") or ())
    held = find(conditions, FAILURE)
    if not failure:
        return [condition for condition in conditions if condition["type"] != FAILURE]
    if held is None:
        missing = owner["spec"].get("replicas", 1) - count
        reason = "FailedCreate" if missing > 0 else "FailedDelete"
        state = {"type": FAILURE, "status": "True", "lastTransitionTime": stamp}
        conditions.append({**state, "reason": reason, "message": failure})
    return conditions
