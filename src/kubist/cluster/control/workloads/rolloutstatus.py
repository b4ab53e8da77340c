"""Status of a Deployment: counts of its ReplicaSets, and the conditions Available, Progressing and ReplicaFailure."""

from __future__ import annotations

from kubist.cluster.control.workloads.rollout import available, bounds, replicas
from kubist.model.meta.conditions import find
from kubist.model.meta.object import Object
from kubist.model.meta.times import parse_time

UNLIMITED = 2**31 - 1
"""Value of progressDeadlineSeconds that means no deadline."""
PROGRESSING = "Progressing"


def set_condition(
    conditions: list[Object], kind: str, status: str, reason: str, message: str, now: str
) -> bool:
    """Replaces a condition with another status or reason. The new one is the last. False if nothing changed."""
    held = find(conditions, kind)
    if held is not None and (held["status"], held.get("reason")) == (status, reason):
        return False
    _replace(conditions, kind, status, reason, message, now)
    return True


def _replace(conditions: list[Object], kind: str, status: str, reason: str, message: str, now: str) -> None:
    held = find(conditions, kind)
    since = held.get("lastTransitionTime", now) if held is not None and held["status"] == status else now
    remove_condition(conditions, kind)
    conditions.append(
        {
            "type": kind,
            "status": status,
            "reason": reason,
            "message": message,
            "lastUpdateTime": now,
            "lastTransitionTime": since,
        }
    )


def remove_condition(conditions: list[Object], kind: str) -> None:
    conditions[:] = [condition for condition in conditions if condition["type"] != kind]


def has_deadline(deployment: Object) -> bool:
    return bool(deployment["spec"].get("progressDeadlineSeconds", UNLIMITED) != UNLIMITED)


def mark_paused(deployment: Object, conditions: list[Object], now: str) -> None:
    """Sets Progressing to Unknown when a deployment was paused or resumed, which ends the present deadline."""
    held = find(conditions, PROGRESSING)
    if not has_deadline(deployment) or (held and held.get("reason") == "ProgressDeadlineExceeded"):
        return
    was_paused = held is not None and held.get("reason") == "DeploymentPaused"
    is_paused = bool(deployment["spec"].get("paused"))
    if is_paused and not was_paused:
        set_condition(conditions, PROGRESSING, "Unknown", "DeploymentPaused", "Deployment is paused", now)
    elif was_paused and not is_paused:
        set_condition(conditions, PROGRESSING, "Unknown", "DeploymentResumed", "Deployment is resumed", now)


def rollout_status(
    deployment: Object, sets: list[Object], new: Object | None, conditions: list[Object], now: str
) -> Object:
    """Counts, and the condition Available. `conditions` becomes part of the status."""
    status = {
        "observedGeneration": deployment["metadata"].get("generation"),
        "replicas": _sum(sets, "replicas") or None,
        "updatedReplicas": _sum([new] if new is not None else [], "replicas") or None,
        "readyReplicas": _sum(sets, "readyReplicas") or None,
        "availableReplicas": available(*sets) or None,
        "unavailableReplicas": max(sum(map(replicas, sets)) - available(*sets), 0) or None,
        "terminatingReplicas": _terminating(sets),
        "collisionCount": deployment["status"].get("collisionCount"),
        "conditions": conditions,
    }
    if available(*sets) >= replicas(deployment) - bounds(deployment)[1]:
        text = "Deployment has minimum availability."
        set_condition(conditions, "Available", "True", "MinimumReplicasAvailable", text, now)
    else:
        text = "Deployment does not have minimum availability."
        set_condition(conditions, "Available", "False", "MinimumReplicasUnavailable", text, now)
    return status


def _sum(sets: list[Object], count: str) -> int:
    return sum(held["status"].get(count, 0) for held in sets)


def _terminating(sets: list[Object]) -> int | None:
    """Pods that are being deleted; None if a ReplicaSet does not count them."""
    total = 0
    for held in sets:
        count = held["status"].get("terminatingReplicas")
        if count is None and held["status"].get("observedGeneration"):
            return None
        total += count or 0
    return total


def set_progress(
    deployment: Object, sets: list[Object], new: Object | None, status: Object, now: float, stamp: str
) -> None:
    """Sets the conditions Progressing and ReplicaFailure during a rollout. `status` is the new one."""
    conditions = status["conditions"]
    if not has_deadline(deployment):
        remove_condition(conditions, PROGRESSING)
    else:
        _set_progressing(deployment, new, status, now, stamp)
    failures = [
        find(held["status"].get("conditions"), "ReplicaFailure")
        for held in ([new] if new is not None else []) + sets
    ]
    failure = next((held for held in failures if held is not None), None)
    if failure is None:
        remove_condition(conditions, "ReplicaFailure")
        return
    since = failure["lastTransitionTime"]
    told = ("ReplicaFailure", failure["status"], failure.get("reason", ""), failure.get("message", ""))
    set_condition(conditions, *told, since)


def _set_progressing(deployment: Object, new: Object | None, status: Object, now: float, stamp: str) -> None:
    conditions = status["conditions"]
    held = find(conditions, PROGRESSING)
    complete_before = held is not None and held.get("reason") == "NewReplicaSetAvailable"
    if complete_before and status["replicas"] == status["updatedReplicas"]:
        return
    metadata = deployment["metadata"]
    name = (
        f'ReplicaSet "{new["metadata"]["name"]}"' if new is not None else f'Deployment "{metadata["name"]}"'
    )
    if is_complete(deployment, status):
        text = f"{name} has successfully progressed."
        set_condition(conditions, PROGRESSING, "True", "NewReplicaSetAvailable", text, stamp)
    elif made_progress(deployment["status"], status):
        text = f"{name} is progressing."
        _replace(conditions, PROGRESSING, "True", "ReplicaSetUpdated", text, stamp)
    elif (left := deadline_in(deployment, conditions, now)) is not None and left < 0:
        text = f"{name} has timed out progressing."
        set_condition(conditions, PROGRESSING, "False", "ProgressDeadlineExceeded", text, stamp)


def is_complete(deployment: Object, status: Object) -> bool:
    wanted = replicas(deployment)
    counts = ("updatedReplicas", "replicas", "availableReplicas")
    return all((status.get(count) or 0) == wanted for count in counts) and (
        status.get("observedGeneration") or 0
    ) >= deployment["metadata"].get("generation", 0)


def made_progress(before: Object, after: Object) -> bool:
    """Whether more pods are updated, ready or available, or fewer old pods exist."""

    def count(status: Object, part: str) -> int:
        return status.get(part) or 0

    def outdated(status: Object) -> int:
        return count(status, "replicas") - count(status, "updatedReplicas")

    growing = ("updatedReplicas", "readyReplicas", "availableReplicas")
    return outdated(after) < outdated(before) or any(
        count(after, part) > count(before, part) for part in growing
    )


def deadline_in(deployment: Object, conditions: list[Object], now: float) -> float | None:
    """Seconds until the progress deadline, negative after it; None if no rollout can miss it."""
    held = find(conditions, PROGRESSING)
    if not has_deadline(deployment) or held is None:
        return None
    if held.get("reason") in ("NewReplicaSetAvailable", "ProgressDeadlineExceeded", "DeploymentPaused"):
        return None
    since = parse_time(held.get("lastUpdateTime") or held["lastTransitionTime"])
    return since + float(deployment["spec"]["progressDeadlineSeconds"]) - now
