"""Job controller: runs pods until enough have succeeded or too many have failed."""

from __future__ import annotations

import copy
import time

from kubist.control.values import pod_active, pod_ready
from kubist.control.workloads import pods as of_pods
from kubist.control.workloads.pods import PodOwnerLoop
from kubist.kinds.batch.jobstatus import is_finished, is_true
from kubist.meta import times
from kubist.meta.conditions import set_condition
from kubist.meta.object import Object
from kubist.meta.times import parse_time

INDEX = "batch.kubernetes.io/job-completion-index"


class Jobs(PodOwnerLoop):
    name = "job"
    resource = "jobs"
    group = "batch"

    async def reconcile(self, key: tuple[str, str]) -> None:
        job = self.find(key)
        if job is None or is_finished(job) or job["spec"].get("managedBy"):
            return
        pods = await of_pods.claim(self.client, "pods", job)
        active = [pod for pod in pods if pod_active(pod)]
        status: Object = {
            **job["status"],
            "conditions": [dict(c) for c in job["status"].get("conditions") or ()],
        }
        if job["spec"].get("suspend"):
            self._set_condition(status, "Suspended", "JobSuspended", "Job suspended")
            status.pop("startTime", None)
            await self._stop(active)
            active = []
        else:
            if is_true(job, "Suspended"):
                self._set_condition(status, "Suspended", "JobResumed", "Job resumed", state="False")
            status.setdefault("startTime", times.now())
        outcome = _count(job, pods, status)
        left = self._time_left(job, status)
        if left is not None and left <= 0:
            outcome = ("Failed", "DeadlineExceeded", "Job was active longer than specified deadline")
        elif left is not None:
            self.queue.add_after(key, left)
        if outcome is not None and "deletionTimestamp" not in job["metadata"]:
            await self._stop(active)
            self._finish(status, *outcome)
            active = []
        elif "deletionTimestamp" not in job["metadata"] and not job["spec"].get("suspend"):
            active = await self._make(job, pods, active, status)
        status |= {
            "active": len(active) or None,
            "ready": sum(pod_ready(pod) for pod in active),
            "terminating": 0,
            "uncountedTerminatedPods": {},
        }
        await self.write_status(job, status)

    async def _make(
        self, job: Object, pods: list[Object], active: list[Object], status: Object
    ) -> list[Object]:
        spec = job["spec"]
        parallelism = spec.get("parallelism", 1)
        completions = spec.get("completions")
        succeeded = status.get("succeeded") or 0
        wanted = parallelism
        if completions is not None:
            wanted = min(parallelism, completions - succeeded)
        elif succeeded:
            wanted = len(active)
        if len(active) > wanted:
            await self._stop(active[wanted:])
            return active[:wanted]
        free = _free_indexes(job, pods)
        for _ in range(wanted - len(active)):
            pod = of_pods.from_template(spec["template"], job)
            if spec.get("completionMode") == "Indexed":
                if not free:
                    break
                _number(pod, job, free.pop(0))
            active.append(await self.client.create("pods", pod, job["metadata"]["namespace"]))
        return active

    async def _stop(self, pods: list[Object]) -> None:
        for pod in pods:
            await of_pods.delete(self.client, pod)

    def _time_left(self, job: Object, status: Object) -> float | None:
        deadline = job["spec"].get("activeDeadlineSeconds")
        if deadline is None or "startTime" not in status:
            return None
        return float(parse_time(status["startTime"]) + deadline - time.time())

    def _finish(self, status: Object, kind: str, reason: str, message: str) -> None:
        first = "SuccessCriteriaMet" if kind == "Complete" else "FailureTarget"
        self._set_condition(status, first, reason, message)
        self._set_condition(status, kind, reason, message)
        if kind == "Complete":
            status["completionTime"] = times.now()

    def _set_condition(
        self, status: Object, kind: str, reason: str, message: str, state: str = "True"
    ) -> None:
        now = times.now()
        condition = {
            "type": kind,
            "status": state,
            "reason": reason,
            "message": message,
            "lastProbeTime": now,
        }
        set_condition(status["conditions"], condition, now)


def _count(job: Object, pods: list[Object], status: Object) -> tuple[str, str, str] | None:
    """Counts finished pods into the status. Returns the outcome (condition, reason, message) if the job has ended."""
    spec = job["spec"]
    phases = [(pod["status"].get("phase"), pod) for pod in pods]
    failed = sum(phase == "Failed" for phase, _ in phases)
    if spec.get("completionMode") == "Indexed":
        indexes = sorted(
            {index for phase, pod in phases if phase == "Succeeded" and (index := _index(pod)) >= 0}
        )
        succeeded = len(indexes)
        status["completedIndexes"] = _intervals(indexes) or None
    else:
        succeeded = max(sum(phase == "Succeeded" for phase, _ in phases), status.get("succeeded") or 0)
    status["succeeded"] = succeeded or None
    status["failed"] = max(failed, status.get("failed") or 0) or None
    completions = spec.get("completions")
    if completions is not None and succeeded >= completions:
        return "Complete", "CompletionsReached", "Reached expected number of succeeded pods"
    if completions is None and succeeded and not any(pod_active(pod) for _, pod in phases):
        return "Complete", "CompletionsReached", "Reached expected number of succeeded pods"
    if (status["failed"] or 0) > spec.get("backoffLimit", 6):
        return "Failed", "BackoffLimitExceeded", "Job has reached the specified backoff limit"
    return None


def _index(pod: Object) -> int:
    text = (pod["metadata"].get("annotations") or {}).get(INDEX, "")
    return int(text) if text.isdigit() else -1


def _free_indexes(job: Object, pods: list[Object]) -> list[int]:
    taken = {_index(pod) for pod in pods if pod["status"].get("phase") != "Failed"}
    return [index for index in range(job["spec"].get("completions") or 0) if index not in taken]


def _number(pod: Object, job: Object, index: int) -> None:
    pod["metadata"].setdefault("annotations", {})[INDEX] = str(index)
    pod["metadata"].setdefault("labels", {})[INDEX] = str(index)
    pod["metadata"]["generateName"] = f"{job['metadata']['name']}-{index}-"
    pod["spec"] = copy.deepcopy(pod["spec"])
    pod["spec"].setdefault("hostname", f"{job['metadata']['name']}-{index}")
    for container in (*pod["spec"]["containers"], *(pod["spec"].get("initContainers") or ())):
        container.setdefault("env", []).append({"name": "JOB_COMPLETION_INDEX", "value": str(index)})


def _intervals(indexes: list[int]) -> str:
    """Indexes as ranges: `0,2-4` for 0, 2, 3 and 4."""
    parts: list[list[int]] = []
    for index in indexes:
        if parts and parts[-1][-1] == index - 1:
            parts[-1] = [parts[-1][0], index]
        else:
            parts.append([index])
    return ",".join("-".join(map(str, part)) for part in parts)
