"""ReplicaSet and ReplicationController controllers: keep the wanted number of pods."""

from __future__ import annotations

import asyncio
import functools
import math
import re
from collections import Counter
from collections.abc import Iterable
from typing import ClassVar, NamedTuple

from kubist.cluster.control.loop import controller_of
from kubist.cluster.control.values import pod_active, pod_ready
from kubist.cluster.control.workloads import pods as of_pods
from kubist.cluster.control.workloads.pods import PodOwnerLoop
from kubist.model.meta.conditions import find
from kubist.model.meta.object import Object
from kubist.model.meta.selectors import label_selector
from kubist.model.meta.status import APIError
from kubist.model.meta.times import parse_time

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
    failure_condition = find(conditions, FAILURE)
    if not failure:
        return [condition for condition in conditions if condition["type"] != FAILURE]
    if failure_condition is None:
        missing = owner["spec"].get("replicas", 1) - count
        reason = "FailedCreate" if missing > 0 else "FailedDelete"
        state = {"type": FAILURE, "status": "True", "lastTransitionTime": stamp}
        conditions.append({**state, "reason": reason, "message": failure})
    return conditions


# Pods that are deleted first when a ReplicaSet scales down, in kube-controller-manager's order

DELETION_COST = "controller.kubernetes.io/pod-deletion-cost"
_PHASES = {"Pending": 0, "Unknown": 1, "Running": 2}
_is_cost = re.compile("-[0-9]+|0|[1-9][0-9]*").fullmatch


class _Rank(NamedTuple):
    """Properties of a pod that decide its place. `first` is compared before the others."""

    first: tuple[bool, int, bool, int, int]
    ready_time: float
    """0 for a pod that is not ready."""
    restarts: tuple[int, int]
    created: float
    uid: str
    pod: Object


def victims(pods: list[Object], related: Iterable[Object], count: int, now: float) -> list[Object]:
    """The `count` pods to delete first: pods without a node, then pending, not ready, cheap to delete, sharing their
    node with many related pods, recently ready, often restarted, and young ones. Ages are compared by their order of
    magnitude."""
    if count >= len(pods):
        return pods
    on_node = Counter(pod["spec"].get("nodeName") for pod in related if pod_active(pod))
    ranks = [_rank(pod, on_node[pod["spec"].get("nodeName")]) for pod in pods]
    ranks.sort(key=functools.cmp_to_key(functools.partial(_compare, now)))
    return [rank.pod for rank in ranks[:count]]


def _rank(pod: Object, neighbours: int) -> _Rank:
    status, ready = pod["status"], pod_ready(pod)
    ready_since = (find(status.get("conditions"), "Ready") or {}).get("lastTransitionTime") if ready else None
    return _Rank(
        (
            bool(pod["spec"].get("nodeName")),
            _PHASES.get(status.get("phase", "Pending"), 0),
            ready,
            deletion_cost(pod),
            -neighbours,
        ),
        parse_time(ready_since) if ready_since else 0,
        (-_restarts(status.get("containerStatuses")), -_restarts(status.get("initContainerStatuses"))),
        parse_time(pod["metadata"]["creationTimestamp"]),
        pod["metadata"]["uid"],
        pod,
    )


def _compare(now: float, one: _Rank, other: _Rank) -> int:
    if one.first != other.first:
        return -1 if one.first < other.first else 1
    if one.ready_time != other.ready_time and one.ready_time and other.ready_time:
        return _compare_ages(now, one, other, one.ready_time, other.ready_time)
    if one.restarts != other.restarts:
        return -1 if one.restarts < other.restarts else 1
    if one.created != other.created:
        return _compare_ages(now, one, other, one.created, other.created)
    return 0


def _compare_ages(now: float, one: _Rank, other: _Rank, since: float, other_since: float) -> int:
    difference = _magnitude(now - since) - _magnitude(now - other_since)
    return difference or (-1 if one.uid < other.uid else 1)


def _magnitude(age: float) -> int:
    """Binary logarithm of an age in nanoseconds."""
    return int(math.log2(age * 1e9)) if age > 0 else -1


def deletion_cost(pod: Object) -> int:
    """Value of the annotation pod-deletion-cost, a signed 32-bit number; 0 if it is malformed."""
    text = (pod["metadata"].get("annotations") or {}).get(DELETION_COST, "0")
    cost = int(text) if len(text) < 12 and _is_cost(text) else 0
    return cost if -(2**31) <= cost < 2**31 else 0


def _restarts(statuses: list[Object] | None) -> int:
    return max((status.get("restartCount", 0) for status in statuses or ()), default=0)
