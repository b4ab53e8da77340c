"""Decisions of a Deployment's rollout: which ReplicaSet is new, and how many replicas each ReplicaSet gets."""

from __future__ import annotations

import math
from dataclasses import dataclass

from kubist.cluster.control.values import scaled
from kubist.model.meta.conditions import find
from kubist.model.meta.numerals import decimal
from kubist.model.meta.object import Object
from kubist.model.meta.times import parse_time

HASH = "pod-template-hash"
PREFIX = "deployment.kubernetes.io/"
REVISION = f"{PREFIX}revision"
HISTORY = f"{PREFIX}revision-history"
DESIRED = f"{PREFIX}desired-replicas"
MAX = f"{PREFIX}max-replicas"
ROLLBACK = "deprecated.deployment.rollback.to"
NOT_COPIED = (
    "kubectl.kubernetes.io/last-applied-configuration",
    ROLLBACK,
    REVISION,
    HISTORY,
    DESIRED,
    MAX,
)
HISTORY_LENGTH = 2000
"""Maximum length of the revision history in characters."""
NAME_LENGTH = 253


@dataclass(frozen=True, slots=True)
class Scaling:
    """New size of a ReplicaSet. With `always` its annotations are updated even if the size is the same."""

    replica_set: Object
    replicas: int
    always: bool = False


def replicas(obj: Object) -> int:
    """Wanted number of pods of a Deployment or ReplicaSet."""
    count: int = obj["spec"].get("replicas", 1)
    return count


def is_rolling(deployment: Object) -> bool:
    return bool((deployment["spec"].get("strategy") or {}).get("type", "RollingUpdate") == "RollingUpdate")


def bounds(deployment: Object) -> tuple[int, int]:
    """maxSurge and maxUnavailable as numbers of pods."""
    if not is_rolling(deployment):
        return 0, 0
    target = replicas(deployment)
    rolling = (deployment["spec"].get("strategy") or {}).get("rollingUpdate") or {}
    surge = scaled(rolling.get("maxSurge"), target, up=True)
    unavailable = scaled(rolling.get("maxUnavailable"), target, up=False)
    if not surge and not unavailable:
        unavailable = 1
    return surge, min(unavailable, target)


def by_age(sets: list[Object]) -> list[Object]:
    """ReplicaSets, oldest first."""
    return sorted(sets, key=lambda obj: (obj["metadata"]["creationTimestamp"], obj["metadata"]["name"]))


def newest(deployment: Object, sets: list[Object]) -> Object | None:
    """The ReplicaSet with the deployment's present template; the oldest of several."""
    template = unhashed(deployment["spec"]["template"])
    same = (each for each in by_age(sets) if unhashed(each["spec"]["template"]) == template)
    return next(same, None)


def unhashed(template: Object) -> Object:
    """Template without the label pod-template-hash."""
    metadata = template.get("metadata") or {}
    labels = {key: value for key, value in (metadata.get("labels") or {}).items() if key != HASH}
    return {**template, "metadata": {**metadata, "labels": labels}}


def set_name(deployment: Object, digest: str) -> str:
    """Name of the ReplicaSet of a template, shortened to the maximum length of a name."""
    return f"{deployment['metadata']['name'][: NAME_LENGTH - 1 - len(digest)]}-{digest}"


def revision(replica_set: Object) -> int:
    text = (replica_set["metadata"].get("annotations") or {}).get(REVISION, "0")
    number = decimal(text) if text.isdecimal() else 0
    return number if number < 1 << 63 else 0


def limits(deployment: Object) -> Object:
    """Annotations of a ReplicaSet that record the size of the deployment when it was scaled last."""
    target = replicas(deployment)
    return {DESIRED: str(target), MAX: str(target + bounds(deployment)[0])}


def copied_annotations(deployment: Object) -> Object:
    annotations = deployment["metadata"].get("annotations") or {}
    return {key: value for key, value in annotations.items() if key not in NOT_COPIED}


def updated_annotations(deployment: Object, replica_set: Object, old: list[Object]) -> Object:
    """Annotations of the new ReplicaSet. Its revision is higher than those of the old ReplicaSets. If it had another
    revision before, because a template is used again, that one is added to its history."""
    before = replica_set["metadata"].get("annotations") or {}
    annotations = {**before, **copied_annotations(deployment)}
    number = max((revision(other) for other in old), default=0) + 1
    if revision(replica_set) >= number or not before.get(REVISION, "0").isdecimal():
        return annotations
    annotations[REVISION] = str(number)
    if REVISION in before:
        past = [*filter(None, before.get(HISTORY, "").split(",")), before[REVISION]]
        while len(",".join(past)) > HISTORY_LENGTH:
            past.pop(0)
        annotations[HISTORY] = ",".join(past)
    return annotations


def is_scaled(deployment: Object, sets: list[Object]) -> bool:
    """Whether the deployment's size differs from the one that its active ReplicaSets have recorded."""
    for replica_set in sets:
        recorded = _recorded(replica_set, DESIRED)
        if replicas(replica_set) and recorded is not None and recorded != replicas(deployment):
            return True
    return False


def _recorded(replica_set: Object, annotation: str) -> int | None:
    text = (replica_set["metadata"].get("annotations") or {}).get(annotation, "")
    number = decimal(text) if text.isdecimal() else 2**31
    return number if number < 2**31 else None


def size_of_new(deployment: Object, sets: list[Object], current: int) -> int:
    """Size of the new ReplicaSet, which has `current` replicas: as large as maxSurge allows. `sets` contains it."""
    target = replicas(deployment)
    if not is_rolling(deployment) or current >= target:
        return target
    room = target + bounds(deployment)[0] - sum(map(replicas, sets))
    return current + min(max(room, 0), target - current)


def scale_down(deployment: Object, new: Object, old: list[Object]) -> list[Scaling]:
    """Reductions of old ReplicaSets in a rolling update: first their unhealthy pods, then available pods as long as
    maxUnavailable allows."""
    active = [replica_set for replica_set in by_age(old) if replicas(replica_set)]
    least = replicas(deployment) - bounds(deployment)[1]
    total = sum(map(replicas, (*active, new)))
    room = total - least - (replicas(new) - available(new))
    if not active or room <= 0:
        return []
    sizes = {replica_set["metadata"]["uid"]: replicas(replica_set) for replica_set in active}
    for replica_set in active:
        gone = max(min(room, replicas(replica_set) - available(replica_set)), 0)
        sizes[replica_set["metadata"]["uid"]] -= gone
        room -= gone
    spare = available(new, *active) - least
    for replica_set in active:
        gone = max(min(spare, sizes[replica_set["metadata"]["uid"]]), 0)
        sizes[replica_set["metadata"]["uid"]] -= gone
        spare -= gone
    return [
        Scaling(replica_set, sizes[replica_set["metadata"]["uid"]])
        for replica_set in active
        if sizes[replica_set["metadata"]["uid"]] != replicas(replica_set)
    ]


def resize(deployment: Object, new: Object | None, old: list[Object]) -> list[Scaling]:
    """New sizes after the deployment was scaled, or while it is paused. Several active ReplicaSets grow or shrink in
    proportion to their sizes."""
    target = replicas(deployment)
    sets = [*old, new] if new is not None else old
    active = [replica_set for replica_set in sets if replicas(replica_set)]
    if len(active) <= 1:
        chosen = active[0] if active else new or (by_age(old)[-1] if old else None)
        return [Scaling(chosen, target)] if chosen is not None and replicas(chosen) != target else []
    if new is not None and is_saturated(deployment, new):
        return [Scaling(replica_set, 0) for replica_set in old if replicas(replica_set)]
    return _proportional(deployment, active) if is_rolling(deployment) else []


def is_saturated(deployment: Object, new: Object) -> bool:
    target = replicas(deployment)
    return replicas(new) == _recorded(new, DESIRED) == available(new) == target


def _proportional(deployment: Object, active: list[Object]) -> list[Scaling]:
    target = replicas(deployment)
    surge = bounds(deployment)[0]
    allowed = target + surge if target else 0
    change = allowed - sum(map(replicas, active))
    # The largest come first; of equal ones the newest if the deployment grows, else the oldest.
    ordered = by_age(active)
    if change > 0:
        ordered.reverse()
    ordered.sort(key=replicas, reverse=True)
    sizes, left = [], change
    for replica_set in ordered:
        share = _share(deployment, replica_set) if change else 0
        share = min(share, left) if change > 0 else max(share, left)
        sizes.append(replicas(replica_set) + share)
        left -= share
    sizes[0] = max(sizes[0] + left, 0)
    return [Scaling(replica_set, size, always=True) for replica_set, size in zip(ordered, sizes, strict=True)]


def _share(deployment: Object, replica_set: Object) -> int:
    """Replicas that a ReplicaSet gets or loses so that its part of the whole stays the same."""
    target = replicas(deployment)
    if not target:
        return -replicas(replica_set)
    before = _recorded(replica_set, MAX) or deployment["status"].get("replicas", 0)
    if not before:
        return 0
    size = replicas(replica_set) * (target + bounds(deployment)[0]) / before
    return math.floor(size + 0.5) - replicas(replica_set)


def removable(deployment: Object, old: list[Object]) -> list[Object]:
    """Old ReplicaSets without pods above revisionHistoryLimit, lowest revision first."""
    limit = deployment["spec"].get("revisionHistoryLimit", 10)
    alive = [replica_set for replica_set in by_age(old) if "deletionTimestamp" not in replica_set["metadata"]]
    alive.sort(key=revision)
    return [
        replica_set
        for replica_set in alive[: max(len(alive) - limit, 0)]
        if not replicas(replica_set)
        and not replica_set["status"].get("replicas")
        and replica_set["metadata"].get("generation", 0) <= replica_set["status"].get("observedGeneration", 0)
    ]


def has_old_pods(old: list[Object]) -> bool:
    """Whether pods of old ReplicaSets run or are being deleted."""
    return any(
        replica_set["status"].get("replicas")
        or replica_set["status"].get("terminatingReplicas")
        or replica_set["metadata"].get("generation", 0) > replica_set["status"].get("observedGeneration", 0)
        for replica_set in old
    )


def available(*sets: Object) -> int:
    return sum(replica_set["status"].get("availableReplicas", 0) for replica_set in sets)


# Status of a Deployment: counts of its ReplicaSets, and the conditions Available, Progressing and
# ReplicaFailure

_UNLIMITED = 2**31 - 1
"""Value of progressDeadlineSeconds that means no deadline."""
PROGRESSING = "Progressing"


def set_condition(
    conditions: list[Object], kind: str, status: str, reason: str, message: str, now: str
) -> bool:
    """Replaces a condition whose status or reason changes, and puts it last. False if nothing changed."""
    old = find(conditions, kind)
    if old is not None and (old["status"], old.get("reason")) == (status, reason):
        return False
    _replace(conditions, kind, status, reason, message, now)
    return True


def _replace(conditions: list[Object], kind: str, status: str, reason: str, message: str, now: str) -> None:
    old = find(conditions, kind)
    since = old.get("lastTransitionTime", now) if old is not None and old["status"] == status else now
    _remove_condition(conditions, kind)
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


def _remove_condition(conditions: list[Object], kind: str) -> None:
    conditions[:] = [condition for condition in conditions if condition["type"] != kind]


def has_deadline(deployment: Object) -> bool:
    return bool(deployment["spec"].get("progressDeadlineSeconds", _UNLIMITED) != _UNLIMITED)


def mark_paused(deployment: Object, conditions: list[Object], now: str) -> None:
    """Sets Progressing to Unknown when a deployment was paused or resumed, which ends the present deadline."""
    condition = find(conditions, PROGRESSING)
    if not has_deadline(deployment) or (condition and condition.get("reason") == "ProgressDeadlineExceeded"):
        return
    was_paused = condition is not None and condition.get("reason") == "DeploymentPaused"
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
    return sum(replica_set["status"].get(count, 0) for replica_set in sets)


def _terminating(sets: list[Object]) -> int | None:
    """Pods that are being deleted; None if a ReplicaSet does not count them."""
    total = 0
    for replica_set in sets:
        count = replica_set["status"].get("terminatingReplicas")
        if count is None and replica_set["status"].get("observedGeneration"):
            return None
        total += count or 0
    return total


def set_progress(
    deployment: Object, sets: list[Object], new: Object | None, status: Object, now: float, stamp: str
) -> None:
    """Sets the conditions Progressing and ReplicaFailure during a rollout. `status` is the new one."""
    conditions = status["conditions"]
    if not has_deadline(deployment):
        _remove_condition(conditions, PROGRESSING)
    else:
        _set_progressing(deployment, new, status, now, stamp)
    failures = [
        find(each["status"].get("conditions"), "ReplicaFailure")
        for each in ([new] if new is not None else []) + sets
    ]
    failure = next((each for each in failures if each is not None), None)
    if failure is None:
        _remove_condition(conditions, "ReplicaFailure")
        return
    since = failure["lastTransitionTime"]
    told = ("ReplicaFailure", failure["status"], failure.get("reason", ""), failure.get("message", ""))
    set_condition(conditions, *told, since)


def _set_progressing(deployment: Object, new: Object | None, status: Object, now: float, stamp: str) -> None:
    conditions = status["conditions"]
    condition = find(conditions, PROGRESSING)
    complete_before = condition is not None and condition.get("reason") == "NewReplicaSetAvailable"
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
    target = replicas(deployment)
    counts = ("updatedReplicas", "replicas", "availableReplicas")
    return all((status.get(count) or 0) == target for count in counts) and (
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
    condition = find(conditions, PROGRESSING)
    if not has_deadline(deployment) or condition is None:
        return None
    if condition.get("reason") in ("NewReplicaSetAvailable", "ProgressDeadlineExceeded", "DeploymentPaused"):
        return None
    since = parse_time(condition.get("lastUpdateTime") or condition["lastTransitionTime"])
    return since + float(deployment["spec"]["progressDeadlineSeconds"]) - now
