"""Decisions of the Job controller: the state of a Job by its pods, pods to create or delete, and the outcome.

All functions are pure: they read the Job, its pods and the time, and change nothing.
"""

from __future__ import annotations

import itertools
from dataclasses import dataclass, field
from typing import NamedTuple

from kubist.cluster.control.values import pod_active, pod_ready
from kubist.cluster.control.workloads.job_pods import (
    NO_INDEX,
    all_index_failures,
    completion_index,
    has_valid_index,
    index_failures,
    is_failed,
    is_indexed,
    is_terminating,
    is_tracked,
    replaces_only_failed,
    surplus,
)
from kubist.cluster.control.workloads.job_policies import Intervals, judge, met_success_rule, parse_indexes
from kubist.model.meta.conditions import find
from kubist.model.meta.object import Object
from kubist.model.meta.times import parse_time

AT_ONCE = 500
"""Maximum number of pods that are created or deleted in one pass."""


class Outcome(NamedTuple):
    """Result of a Job that will finish: Complete or Failed."""

    is_success: bool
    reason: str
    message: str


COMPLETE = Outcome(True, "CompletionsReached", "Reached expected number of succeeded pods")
BACKOFF = Outcome(False, "BackoffLimitExceeded", "Job has reached the specified backoff limit")
DEADLINE = Outcome(False, "DeadlineExceeded", "Job was active longer than specified deadline")
TOO_MANY_INDEXES = Outcome(
    False, "MaxFailedIndexesExceeded", "Job has exceeded the specified maximal number of failed indexes"
)
FAILED_INDEXES = Outcome(False, "FailedIndexes", "Job has failed indexes")


@dataclass(slots=True)
class Progress:
    """State of a Job by its pods."""

    job: Object
    pods: list[Object]
    active: list[Object]
    ready: int
    terminating: int
    succeeded: int
    failed: int
    backoff: Backoff
    outcome: Outcome | None = None
    succeeded_before: Intervals = field(default_factory=Intervals)
    """Completed indexes by the status."""
    succeeded_indexes: Intervals = field(default_factory=Intervals)
    failed_indexes: Intervals | None = None
    """None without backoffLimitPerIndex."""
    delayed: dict[int, Object] = field(default_factory=dict)
    """Failed pods whose index has no new pod yet, by index. They keep their finalizer until then."""


@dataclass(slots=True)
class Plan:
    """Changes to the pods of a Job."""

    delete: list[Object] = field(default_factory=list)
    create: list[int] = field(default_factory=list)
    """Indexes of new pods. NO_INDEX in a NonIndexed Job."""
    retry_after: float = 0.0
    """Seconds after which the Job must be reconciled again."""


def is_suspended(job: Object) -> bool:
    return bool(job["spec"].get("suspend"))


def survey(job: Object, pods: list[Object], backoff: Backoff, now: float) -> Progress:
    """Counts the pods of an unfinished Job and decides whether it has to finish. `backoff` is the record of
    earlier passes."""
    status = job["status"]
    uncounted = status.get("uncountedTerminatedPods") or {}
    known_succeeded, known_failed = set(uncounted.get("succeeded") or ()), set(uncounted.get("failed") or ())
    tracked = [pod for pod in pods if is_tracked(pod) and has_valid_index(job, pod)]
    succeeded = [
        pod
        for pod in tracked
        if pod["metadata"]["uid"] not in known_succeeded and pod["status"].get("phase") == "Succeeded"
    ]
    failed = [pod for pod in tracked if pod["metadata"]["uid"] not in known_failed and is_failed(job, pod)]
    counted = [pod for pod in failed if judge(job, pod).counts]
    active = [pod for pod in pods if pod_active(pod)]
    progress = Progress(
        job,
        pods,
        active,
        ready=sum(map(pod_ready, active)),
        terminating=sum(map(is_terminating, pods)),
        succeeded=status.get("succeeded", 0) + len(succeeded) + len(known_succeeded),
        failed=status.get("failed", 0) + len(counted) + len(known_failed),
        backoff=backoff.after(succeeded, failed),
    )
    progress.outcome = _decided(job) or _failed_outcome(progress, now)
    if is_indexed(job):
        _count_indexes(progress, tracked)
    return progress


def _decided(job: Object) -> Outcome | None:
    """Outcome that an earlier pass wrote into the status."""
    for kind in ("SuccessCriteriaMet", "FailureTarget"):
        condition = find(job["status"].get("conditions"), kind)
        if condition is not None and condition["status"] == "True":
            reason, message = condition.get("reason", ""), condition.get("message", "")
            return Outcome(kind == "SuccessCriteriaMet", reason, message)
    return None


def _failed_outcome(progress: Progress, now: float) -> Outcome | None:
    """Failure by the podFailurePolicy, the back-off limit or the deadline."""
    job = progress.job
    if "podFailurePolicy" in job["spec"]:
        for pod in progress.pods:
            if is_failed(job, pod) and (message := judge(job, pod).message):
                return Outcome(False, "PodFailurePolicy", message)
    if progress.failed > job["spec"]["backoffLimit"] or _restarts_exceed_limit(progress):
        return BACKOFF
    left = seconds_to_deadline(job, now)
    return DEADLINE if left is not None and left <= 0 else None


def _restarts_exceed_limit(progress: Progress) -> bool:
    """Whether the containers of pods with restartPolicy OnFailure have restarted too often."""
    spec = progress.job["spec"]
    if spec["template"]["spec"].get("restartPolicy") != "OnFailure":
        return False
    restarts = 0
    for pod in progress.pods:
        status = pod["status"]
        if status.get("phase") in ("Running", "Pending"):
            for part in ("initContainerStatuses", "containerStatuses"):
                restarts += sum(container.get("restartCount", 0) for container in status.get(part) or ())
    limit: int = spec["backoffLimit"]
    return restarts >= max(limit, 1)


def seconds_to_deadline(job: Object, now: float) -> float | None:
    """Seconds until activeDeadlineSeconds have passed. None if the Job has no deadline, or is suspended."""
    deadline, start = job["spec"].get("activeDeadlineSeconds"), job["status"].get("startTime")
    if deadline is None or start is None or is_suspended(job):
        return None
    return float(parse_time(start) + deadline - now)


def _count_indexes(progress: Progress, tracked: list[Object]) -> None:
    """Computes completed and failed indexes, and the outcome that follows from them."""
    job = progress.job
    spec, status = job["spec"], job["status"]
    completions = spec["completions"]
    progress.succeeded_before = parse_indexes(status.get("completedIndexes", ""), completions)
    progress.succeeded_indexes = progress.succeeded_before.with_indexes(
        completion_index(pod) for pod in tracked if pod["status"].get("phase") == "Succeeded"
    )
    progress.succeeded = len(progress.succeeded_indexes)
    if "backoffLimitPerIndex" in spec:
        before = parse_indexes(status.get("failedIndexes", ""), completions)
        failed = before.with_indexes(completion_index(pod) for pod in tracked if _fails_index(job, pod))
        progress.failed_indexes = failed
        if progress.outcome is None and failed.pairs:
            most = spec.get("maxFailedIndexes")
            if most is not None and len(failed) > most:
                progress.outcome = TOO_MANY_INDEXES
            elif len(failed) + progress.succeeded >= completions:
                progress.outcome = FAILED_INDEXES
        progress.delayed = _delayed_pods(progress, tracked)
    if progress.outcome is None:
        rule = met_success_rule(job, progress.succeeded_indexes)
        if rule is not None:
            progress.outcome = Outcome(True, "SuccessPolicy", f"Matched rules at index {rule}")


def _fails_index(job: Object, pod: Object) -> bool:
    """Whether a failed pod was the last try of its index."""
    if not is_failed(job, pod):
        return False
    verdict = judge(job, pod)
    return verdict.fails_index or (
        verdict.counts and index_failures(pod) >= job["spec"]["backoffLimitPerIndex"]
    )


def _delayed_pods(progress: Progress, tracked: list[Object]) -> dict[int, Object]:
    """Latest failed pod of every index that is neither finished nor active."""
    assert progress.failed_indexes is not None
    busy = {completion_index(pod) for pod in progress.active}
    delayed: dict[int, Object] = {}
    for pod in tracked:
        index = completion_index(pod)
        if (
            not is_failed(progress.job, pod)
            or index in busy
            or index in progress.succeeded_indexes
            or index in progress.failed_indexes
        ):
            continue
        other = delayed.get(index)
        if other is None or (
            all_index_failures(other) <= all_index_failures(pod) and finish_time(pod) >= finish_time(other)
        ):
            delayed[index] = pod
    return delayed


def plan(progress: Progress, now: float) -> Plan:
    """Pods to create or delete for a Job that has not finished."""
    job, spec = progress.job, progress.job["spec"]
    active = len(progress.active)
    if is_suspended(job):
        return Plan(delete=surplus(job, progress.active, active))
    target = _pods_to_run(progress)
    removed = surplus(job, progress.active, max(active - target, 0))[:AT_ONCE]
    if removed:
        return Plan(delete=removed)
    missing = target - active - (progress.terminating if replaces_only_failed(job) else 0)
    if missing <= 0:
        return Plan()
    per_index = "backoffLimitPerIndex" in spec
    wait = 0.0 if per_index else progress.backoff.remaining(now)
    if wait > 0:
        return Plan(retry_after=wait)
    missing = min(missing, AT_ONCE)
    if not is_indexed(job):
        return Plan(create=[NO_INDEX] * missing)
    indexes = list(itertools.islice(_taken_indexes(progress).gaps(spec["completions"]), missing))
    if not per_index:
        return Plan(create=indexes)
    waits = [_index_wait(progress.delayed.get(index), now) for index in indexes]
    due = [index for index, wait in zip(indexes, waits, strict=True) if wait == 0]
    return Plan(create=due, retry_after=0.0 if due else min(waits, default=0.0))


def _pods_to_run(progress: Progress) -> int:
    """Number of pods that should be active."""
    spec = progress.job["spec"]
    parallelism: int = spec["parallelism"]
    if "completions" not in spec:
        return len(progress.active) if progress.succeeded else parallelism
    missing: int = spec["completions"] - progress.succeeded
    return max(min(parallelism, missing), 0)


def _taken_indexes(progress: Progress) -> Intervals:
    """Indexes that need no new pod."""
    taken = {completion_index(pod) for pod in progress.active}
    if replaces_only_failed(progress.job):
        taken |= {completion_index(pod) for pod in progress.pods if is_terminating(pod)}
    taken.discard(NO_INDEX)
    busy = progress.succeeded_indexes.with_indexes(taken)
    return busy.merged(progress.failed_indexes) if progress.failed_indexes is not None else busy


def _index_wait(failed: Object | None, now: float) -> float:
    if failed is None:
        return 0.0
    return remaining(all_index_failures(failed) + 1, finish_time(failed), now)


def is_complete(progress: Progress, active: int) -> bool:
    """Whether enough pods have succeeded. `active` is the number of active pods after the plan."""
    if active:
        return False
    completions = progress.job["spec"].get("completions")
    return progress.succeeded > 0 if completions is None else progress.succeeded >= completions


# Back-off between failed pods: 10 seconds after the first failure, doubled up to 10 minutes

FIRST_SECONDS = 10.0
_LONGEST_SECONDS = 600.0


class Backoff(NamedTuple):
    """Failures since the last success of a Job."""

    failures: int = 0
    last_failure: float = 0.0

    def after(self, succeeded: list[Object], failed: list[Object]) -> Backoff:
        """Back-off after further pods have finished."""
        times = sorted(finish_time(pod) for pod in failed)
        if succeeded:
            last_success = max(finish_time(pod) for pod in succeeded)
            times = [time for time in times if time > last_success]
            return Backoff(len(times), times[-1]) if times else Backoff()
        return Backoff(self.failures + len(times), times[-1]) if times else self

    def remaining(self, now: float) -> float:
        return remaining(self.failures, self.last_failure, now)


def remaining(failures: int, last_failure: float, now: float) -> float:
    """Seconds until the next pod may be created."""
    if not failures:
        return 0.0
    delay = min(FIRST_SECONDS * 2.0 ** min(failures - 1, 30), _LONGEST_SECONDS)
    return max(last_failure + delay - now, 0.0)


def finish_time(pod: Object) -> int:
    """Time at which a pod finished, by its containers, its Ready condition, its deletion or else its creation."""
    metadata, status = pod["metadata"], pod.get("status") or {}
    ended = _containers_finished(pod)
    if ended is not None:
        return ended
    ready = find(status.get("conditions"), "Ready")
    if ready is not None and ready.get("status") == "False" and ready.get("lastTransitionTime"):
        return parse_time(ready["lastTransitionTime"])
    if "deletionTimestamp" in metadata:
        return parse_time(metadata["deletionTimestamp"]) - (metadata.get("deletionGracePeriodSeconds") or 0)
    return parse_time(metadata["creationTimestamp"])


def _containers_finished(pod: Object) -> int | None:
    """Time at which the last container or sidecar ended. None if one of them has not ended."""
    status = pod.get("status") or {}
    sidecars = {
        container["name"]
        for container in pod["spec"].get("initContainers") or ()
        if container.get("restartPolicy") == "Always"
    }
    statuses = [*(status.get("containerStatuses") or ())]
    statuses += [one for one in status.get("initContainerStatuses") or () if one["name"] in sidecars]
    times = [((one.get("state") or {}).get("terminated") or {}).get("finishedAt", "") for one in statuses]
    return max(map(parse_time, times)) if times and all(times) else None
