"""Status of a Job: finished pods are counted exactly once, even if they are deleted or the controller restarts.

A finished pod is first listed in uncountedTerminatedPods, then loses its finalizer, and then moves from the list to the
counters. An Indexed Job counts its succeeded pods by their indexes at once.
"""

from __future__ import annotations

from typing import NamedTuple

from kubist.cluster.control.workloads.job_pods import (
    completion_index,
    has_valid_index,
    is_failed,
    is_indexed,
    is_tracked,
)
from kubist.cluster.control.workloads.job_policies import judge
from kubist.cluster.control.workloads.job_sync import Outcome, Progress, is_suspended
from kubist.model.meta.conditions import find
from kubist.model.meta.object import Object

MOST_UNCOUNTED = 500
"""Maximum number of pods that are counted in one pass."""


class Tracking(NamedTuple):
    release: list[Object]
    """Pods that were counted, so that they may lose their finalizer."""
    is_partial: bool
    """Whether more pods wait to be counted."""


def copy_status(job: Object) -> Object:
    """Copy of a Job's status whose conditions and uncounted pods may be changed."""
    status: Object = dict(job["status"])
    status["conditions"] = [dict(condition) for condition in status.get("conditions") or ()]
    uncounted = status.get("uncountedTerminatedPods") or {}
    status["uncountedTerminatedPods"] = {
        part: list(uncounted[part]) for part in ("succeeded", "failed") if uncounted.get(part)
    }
    return status


def shown_status(status: Object) -> Object:
    """Copy of a status as it is written: empty parts are absent, as in the reference."""
    result = {
        name: value
        for name, value in status.items()
        if value not in (None, [], {}) and not (value == 0 and name in ("active", "succeeded", "failed"))
    }
    if status["conditions"]:
        result["conditions"] = [dict(condition) for condition in status["conditions"]]
    uncounted = {part: list(uids) for part, uids in status["uncountedTerminatedPods"].items() if uids}
    return result | {"uncountedTerminatedPods": uncounted}


def set_job_condition(status: Object, kind: str, state: str, reason: str, message: str, stamp: str) -> bool:
    """Sets a condition of a Job. False if it does not change. A missing condition is not added as False."""
    condition = {
        "type": kind,
        "status": state,
        "lastProbeTime": stamp,
        "lastTransitionTime": stamp,
        "reason": reason,
        "message": message,
    }
    old = find(status["conditions"], kind)
    if old is None:
        if state != "False":
            status["conditions"].append(condition)
        return state != "False"
    if (old["status"], old.get("reason"), old.get("message")) == (state, reason, message):
        return False
    old.update(condition)
    return True


def set_suspended(status: Object, job: Object, stamp: str) -> str:
    """Sets the condition Suspended and the start time. Returns the reason of the Event, or an empty text."""
    if is_suspended(job):
        if not set_job_condition(status, "Suspended", "True", "JobSuspended", "Job suspended", stamp):
            return ""
        status.pop("startTime", None)
        return "Suspended"
    if not set_job_condition(status, "Suspended", "False", "JobResumed", "Job resumed", stamp):
        return ""
    status["startTime"] = stamp
    return "Resumed"


def track(progress: Progress, outcome: Outcome | None, status: Object, stamp: str) -> Tracking:
    """Lists finished pods in the status and announces the outcome. The status must be written before the pods lose
    their finalizers."""
    uncounted = status["uncountedTerminatedPods"]
    succeeded, failed = uncounted.setdefault("succeeded", []), uncounted.setdefault("failed", [])
    tracked = {pod["metadata"]["uid"]: pod for pod in progress.pods if is_tracked(pod)}
    settle(status, set(tracked))
    known = (set(succeeded), set(failed))
    pods = sorted(tracked.values(), key=completion_index) if is_indexed(progress.job) else tracked.values()
    release: list[Object] = []
    new_indexes: set[int] = set()
    is_partial = False
    for pod in pods:
        if not _may_be_released(progress, outcome, pod):
            continue
        release.append(pod)
        _list_pod(progress, outcome, pod, known, uncounted, new_indexes)
        if len(new_indexes) + len(succeeded) + len(failed) >= MOST_UNCOUNTED:
            is_partial = True
            break
    if is_indexed(progress.job):
        indexes = progress.succeeded_indexes
        status |= {"succeeded": len(indexes), "completedIndexes": str(indexes) or None}
        if progress.failed_indexes is not None:
            status["failedIndexes"] = str(progress.failed_indexes)
    if outcome is not None:
        kind = "SuccessCriteriaMet" if outcome.is_success else "FailureTarget"
        set_job_condition(status, kind, "True", outcome.reason, outcome.message, stamp)
    return Tracking(release, is_partial)


def _may_be_released(progress: Progress, outcome: Outcome | None, pod: Object) -> bool:
    if outcome is not None or "deletionTimestamp" in progress.job["metadata"]:
        return True
    if pod["status"].get("phase") == "Succeeded":
        return True
    # The failures of an index are counted in annotations, which its next pod continues.
    return is_failed(progress.job, pod) and progress.delayed.get(completion_index(pod)) is not pod


def _list_pod(
    progress: Progress,
    outcome: Outcome | None,
    pod: Object,
    known: tuple[set[str], set[str]],
    uncounted: Object,
    indexes: set[int],
) -> None:
    """Adds a pod to the uncounted pods, or its index to the new indexes. `known` are the UIDs that were listed
    before as succeeded and as failed."""
    job, uid = progress.job, pod["metadata"]["uid"]
    if pod["status"].get("phase") == "Succeeded" and uid not in known[1]:
        if is_indexed(job):
            index = completion_index(pod)
            if has_valid_index(job, pod) and index not in progress.succeeded_before:
                indexes.add(index)
        elif uid not in known[0]:
            uncounted["succeeded"].append(uid)
        return
    fails = is_failed(job, pod) or (outcome is not None and not outcome.is_success)
    if fails and uid not in known[1] and has_valid_index(job, pod) and judge(job, pod).counts:
        uncounted["failed"].append(uid)


def settle(status: Object, tracked: set[str]) -> None:
    """Moves uncounted pods that have lost their finalizer to the counters."""
    uncounted = status["uncountedTerminatedPods"]
    for part in ("succeeded", "failed"):
        listed = uncounted.get(part) or []
        kept = [uid for uid in listed if uid in tracked]
        if len(kept) != len(listed):
            status[part] = (status.get(part) or 0) + len(listed) - len(kept)
            listed[:] = kept


def finish(outcome: Outcome, status: Object, stamp: str) -> bool:
    """Sets the condition Complete or Failed. False as long as pods are uncounted or terminating."""
    uncounted = status["uncountedTerminatedPods"]
    if uncounted.get("succeeded") or uncounted.get("failed") or status["terminating"]:
        return False
    kind = "Complete" if outcome.is_success else "Failed"
    set_job_condition(status, kind, "True", outcome.reason, outcome.message, stamp)
    if outcome.is_success:
        status["completionTime"] = stamp
    return True
