"""Pods of a Job: their completion index, tracking finalizer and state, new pods, and the order of removal."""

from __future__ import annotations

from kubist.cluster.control.values import pod_ready
from kubist.cluster.control.workloads import pods as of_pods
from kubist.cluster.control.workloads.job_policies import judge
from kubist.model.meta.conditions import find
from kubist.model.meta.numerals import decimal
from kubist.model.meta.object import Object
from kubist.model.meta.times import parse_time

FINALIZER = "batch.kubernetes.io/job-tracking"
INDEX = "batch.kubernetes.io/job-completion-index"
INDEX_FAILURES = "batch.kubernetes.io/job-index-failure-count"
INDEX_IGNORED_FAILURES = "batch.kubernetes.io/job-index-ignored-failure-count"
INDEX_VARIABLE = "JOB_COMPLETION_INDEX"
NO_INDEX = -1
GENERATED_NAME_LENGTH = 58
"""Maximum length of the prefix of a generated name."""
_PHASES = {"Pending": 0, "Unknown": 1, "Running": 2}


def is_indexed(job: Object) -> bool:
    return bool(job["spec"].get("completionMode") == "Indexed")


def completion_index(pod: Object) -> int:
    """Completion index of a pod, or NO_INDEX."""
    text = (pod["metadata"].get("annotations") or {}).get(INDEX, "")
    number = decimal(text) if text.isdecimal() else NO_INDEX
    return number if number < 2**31 else NO_INDEX


def has_valid_index(job: Object, pod: Object) -> bool:
    """Whether a pod counts by its index. The pods of a NonIndexed Job need none."""
    return not is_indexed(job) or 0 <= completion_index(pod) < job["spec"]["completions"]


def is_tracked(pod: Object) -> bool:
    """Whether a pod has the finalizer that holds it until it has been counted."""
    return FINALIZER in (pod["metadata"].get("finalizers") or ())


def replaces_only_failed(job: Object) -> bool:
    """Whether a terminating pod is replaced only after it has failed."""
    spec = job["spec"]
    return spec.get("podReplacementPolicy") == "Failed" or "podFailurePolicy" in spec


def is_failed(job: Object, pod: Object) -> bool:
    phase = (pod.get("status") or {}).get("phase")
    if phase == "Failed":
        return True
    terminating = "deletionTimestamp" in pod["metadata"] and phase != "Succeeded"
    return terminating and not replaces_only_failed(job)


def is_terminating(pod: Object) -> bool:
    phase = (pod.get("status") or {}).get("phase")
    return "deletionTimestamp" in pod["metadata"] and phase not in ("Succeeded", "Failed")


def index_failures(pod: Object) -> int:
    """Number of earlier failures of a pod's index that counted."""
    return _number(pod, INDEX_FAILURES)


def all_index_failures(pod: Object) -> int:
    """Number of earlier failures of a pod's index, with those that a podFailurePolicy ignored."""
    return _number(pod, INDEX_FAILURES) + _number(pod, INDEX_IGNORED_FAILURES)


def _number(pod: Object, annotation: str) -> int:
    text = (pod["metadata"].get("annotations") or {}).get(annotation, "")
    number = decimal(text) if text.isdecimal() else 0
    return number if number < 2**31 else 0


def new_pod(job: Object, index: int, replaced: Object | None) -> Object:
    """Pod of a Job for an index, or for none. `replaced` is the failed pod whose failures the new one continues."""
    pod = of_pods.from_template(job["spec"]["template"], job)
    metadata, spec = pod["metadata"], pod["spec"]
    finalizers = metadata.setdefault("finalizers", [])
    if FINALIZER not in finalizers:
        finalizers.append(FINALIZER)
    if index == NO_INDEX:
        return pod
    annotations = metadata.setdefault("annotations", {})
    annotations[INDEX] = metadata.setdefault("labels", {})[INDEX] = str(index)
    if "backoffLimitPerIndex" in job["spec"]:
        annotations |= _failure_annotations(job, replaced)
    name = job["metadata"]["name"]
    metadata["generateName"] = f"{name[: GENERATED_NAME_LENGTH - len(f'-{index}-')]}-{index}-"
    spec["hostname"] = f"{name}-{index}"
    for container in (*(spec.get("initContainers") or ()), *spec["containers"]):
        variables = container.setdefault("env", [])
        if all(variable["name"] != INDEX_VARIABLE for variable in variables):
            field = {"fieldPath": f"metadata.labels['{INDEX}']"}
            variables.append({"name": INDEX_VARIABLE, "valueFrom": {"fieldRef": field}})
    return pod


def _failure_annotations(job: Object, replaced: Object | None) -> dict[str, str]:
    if replaced is None:
        return {INDEX_FAILURES: "0"}
    counted, ignored = index_failures(replaced), _number(replaced, INDEX_IGNORED_FAILURES)
    if judge(job, replaced).counts:
        counted += 1
    else:
        ignored += 1
    annotations = {INDEX_FAILURES: str(counted)}
    return annotations | ({INDEX_IGNORED_FAILURES: str(ignored)} if ignored else {})


def surplus(job: Object, active: list[Object], least: int) -> list[Object]:
    """Active pods to remove, at least `least` of them: those without a valid index, duplicates of an index, then
    those that have done the least work."""
    if not is_indexed(job):
        return sorted(active, key=removal_order)[:least] if least else []
    by_index: dict[int, list[Object]] = {}
    for pod in active:
        by_index.setdefault(completion_index(pod), []).append(pod)
    removed: list[Object] = []
    kept: list[Object] = []
    for index in sorted(by_index):
        pods = by_index[index]
        if index == NO_INDEX or index >= job["spec"]["completions"]:
            removed += pods
        else:
            if len(pods) > 1:
                pods.sort(key=removal_order)
                removed += pods[:-1]
            kept.append(pods[-1])
    if len(removed) < least:
        removed += sorted(kept, key=removal_order)[: least - len(removed)]
    return removed


def removal_order(pod: Object) -> tuple[bool, int, bool, int, int, int]:
    """Sort key of active pods. The order of removal is: unscheduled, pending, unready, ready for a short time, often
    restarted, young."""
    status = pod.get("status") or {}
    ready = pod_ready(pod)
    since = (find(status.get("conditions"), "Ready") or {}).get("lastTransitionTime") if ready else None
    restarts = max((each.get("restartCount", 0) for each in status.get("containerStatuses") or ()), default=0)
    return (
        bool(pod["spec"].get("nodeName")),
        _PHASES.get(status.get("phase", ""), 0),
        ready,
        -parse_time(since) if since else 0,
        -restarts,
        -parse_time(pod["metadata"]["creationTimestamp"]),
    )
