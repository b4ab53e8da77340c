"""Decisions of the StatefulSet controller: which pods to create and delete next, and its status."""

from __future__ import annotations

from dataclasses import dataclass, field

from kubist.cluster.control.values import pod_ready, scaled
from kubist.cluster.control.workloads.pods import available_in
from kubist.cluster.control.workloads.revisions import HASH_LABEL
from kubist.model.meta.object import Object

POD_NAME = "statefulset.kubernetes.io/pod-name"
POD_INDEX = "apps.kubernetes.io/pod-index"


@dataclass(slots=True)
class Plan:
    """Actions of one pass, in this order."""

    check: list[Object] = field(default_factory=list)
    """Pods whose labels and claims must be those of the set."""
    create: list[int] = field(default_factory=list)
    """Ordinals of missing pods."""
    delete: list[Object] = field(default_factory=list)
    update: list[Object] = field(default_factory=list)
    """Pods that are deleted because their revision is old."""


def ordinal(owner: Object, pod: Object) -> int:
    """Number in the name of a pod; -1 if the name is not one of the set's."""
    name, _, number = pod["metadata"]["name"].rpartition("-")
    if name != owner["metadata"]["name"] or not number.isdecimal() or int(number) >= 2**31:
        return -1
    return int(number) if number == str(int(number)) else -1


def ordinals(owner: Object) -> range:
    """Ordinals of the wanted pods."""
    start = (owner["spec"].get("ordinals") or {}).get("start", 0)
    return range(start, start + owner["spec"].get("replicas", 1))


def is_ordered(owner: Object) -> bool:
    return bool(owner["spec"].get("podManagementPolicy") != "Parallel")


def revision_of(pod: Object) -> str:
    label: str = (pod["metadata"].get("labels") or {}).get(HASH_LABEL, "")
    return label


def is_terminating(pod: Object) -> bool:
    return "deletionTimestamp" in pod["metadata"]


def is_finished(pod: Object) -> bool:
    return pod["status"].get("phase") in ("Failed", "Succeeded")


def _rolling(owner: Object) -> Object:
    rolling: Object = (owner["spec"].get("updateStrategy") or {}).get("rollingUpdate") or {}
    return rolling


def is_rolling(owner: Object) -> bool:
    return bool((owner["spec"].get("updateStrategy") or {}).get("type", "RollingUpdate") == "RollingUpdate")


def keeps_current(owner: Object, index: int) -> bool:
    """Whether a new pod gets the current revision, not the updated one."""
    place = index - ordinals(owner).start
    if "rollingUpdate" in (owner["spec"].get("updateStrategy") or {}):
        return bool(place < _rolling(owner).get("partition", 0))
    return is_rolling(owner) and bool(place < owner["status"].get("currentReplicas", 0))


def plan(owner: Object, pods: dict[int, Object], update: str, now: float) -> Plan:
    """Actions that are possible now. Unless the set is Parallel, every pod must be available before the next action.
    `update` is the name of the updated revision."""
    result = Plan()
    if not _plan_wanted(owner, pods, now, result) or not _plan_surplus(owner, pods, now, result):
        return result
    if is_rolling(owner):
        result.update = _outdated(owner, pods, update, now)
    return result


def _plan_wanted(owner: Object, pods: dict[int, Object], now: float, result: Plan) -> bool:
    """Plans for the wanted ordinals, lowest first. False if a pod must be waited for."""
    ordered = is_ordered(owner)
    for index in ordinals(owner):
        pod = pods.get(index)
        if pod is None:
            result.create.append(index)
        elif is_finished(pod):
            if not is_terminating(pod):
                result.delete.append(pod)
        else:
            if not is_terminating(pod):
                result.check.append(pod)
            if not is_unavailable(owner, pod, now):
                continue
        if ordered:
            return False
    return True


def _plan_surplus(owner: Object, pods: dict[int, Object], now: float, result: Plan) -> bool:
    """Plans the deletion of pods above the wanted ordinals, highest first. False if a pod must be waited for."""
    indexes, ordered = ordinals(owner), is_ordered(owner)
    surplus = [pods[index] for index in sorted(pods, reverse=True) if index not in indexes]
    result.check += [pod for pod in surplus if not is_terminating(pod)]
    unhealthy = [pod for pod in surplus if is_unavailable(owner, pod, now)]
    for pod in surplus:
        if not is_terminating(pod):
            if ordered and is_unavailable(owner, pod, now) and pod is not unhealthy[-1]:
                return False
            result.delete.append(pod)
        if ordered:
            return False
    return True


def _outdated(owner: Object, pods: dict[int, Object], update: str, now: float) -> list[Object]:
    """Pods to delete in a rolling update, highest ordinal first."""
    indexes, rolling = ordinals(owner), _rolling(owner)
    candidates = range(indexes.stop - 1, indexes.start + rolling.get("partition", 0) - 1, -1)
    bound = rolling.get("maxUnavailable")
    if bound is None:
        for index in candidates:
            pod = pods.get(index)
            if pod is not None and revision_of(pod) != update and not is_terminating(pod):
                return [pod]
            if pod is None or is_unavailable(owner, pod, now):
                return []
        return []
    allowed = max(scaled(bound, len(indexes), up=False), 1)
    allowed -= sum(index not in pods or is_unavailable(owner, pods[index], now) for index in indexes)
    outdated = [
        pods[index]
        for index in candidates
        if index in pods and revision_of(pods[index]) != update and not is_terminating(pods[index])
    ]
    return outdated[: max(allowed, 0)]


def is_unavailable(owner: Object, pod: Object, now: float) -> bool:
    least = owner["spec"].get("minReadySeconds", 0)
    return is_terminating(pod) or available_in(pod, least, now) != 0


def stateful_status(
    owner: Object, pods: list[Object], current: str, update: str, collisions: int, now: float
) -> Object:
    """Status from the pods. `current` and `update` are names of revisions."""
    least = owner["spec"].get("minReadySeconds", 0)
    ready = [pod for pod in pods if pod["status"].get("phase") == "Running" and pod_ready(pod)]
    alive = [pod for pod in pods if not is_terminating(pod)]
    counts = {name: sum(revision_of(pod) == name for pod in alive) for name in (current, update)}
    size = len(ordinals(owner))
    if is_rolling(owner) and counts[update] == len(ready) == len(pods) == size:
        current = update
    return {
        "observedGeneration": owner["metadata"].get("generation"),
        "replicas": len(pods),
        "readyReplicas": len(ready) or None,
        "availableReplicas": sum(available_in(pod, least, now) == 0 for pod in ready),
        "currentReplicas": counts[current] or None,
        "updatedReplicas": counts[update] or None,
        "currentRevision": current,
        "updateRevision": update,
        "collisionCount": collisions,
        "conditions": owner["status"].get("conditions"),
    }
