"""Job controller: runs pods until enough have succeeded or too many have failed."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable

from kubist.api.kinds.batch.jobstatus import is_finished
from kubist.api.object_client import ObjectClient
from kubist.cluster.control.loop import controller_of, entry_of
from kubist.cluster.control.values import pod_ready
from kubist.cluster.control.workloads import pods as of_pods
from kubist.cluster.control.workloads.job_pods import FINALIZER, is_tracked, new_pod
from kubist.cluster.control.workloads.job_sync import (
    COMPLETE,
    Backoff,
    Outcome,
    Plan,
    Progress,
    is_complete,
    is_suspended,
    plan,
    seconds_to_deadline,
    survey,
)
from kubist.cluster.control.workloads.job_tracking import (
    copy_status,
    finish,
    set_suspended,
    settle,
    shown_status,
    track,
)
from kubist.cluster.control.workloads.pods import PodOwnerLoop
from kubist.model.meta.object import Object
from kubist.model.meta.status import APIError
from kubist.storage.cache.cache import Change

CONTROLLER = "kubernetes.io/job-controller"
"""Value of managedBy that names this controller."""
AT_ONCE = 100
"""Maximum number of pods that are written concurrently."""
TRACKED = FINALIZER.encode()

Key = tuple[str, ...]
"""Namespace and name of a Job; or `orphan`, namespace and name of a pod that no Job tracks."""
Errors = list[APIError]


class Jobs(PodOwnerLoop):
    name = "job"
    component = "job-controller"
    resource = "jobs"
    group = "batch"
    finalizer = FINALIZER

    def __init__(self, client: ObjectClient) -> None:
        super().__init__(client)
        self._backoffs: dict[Key, Backoff] = {}
        """Failures since the last success, by namespace and name."""

    def _manager_changed(self, change: Change) -> None:
        entry = entry_of(change)
        if change.new is None:
            self._backoffs.pop((entry.namespace, entry.name), None)
        job = self.client.parsed(entry)
        if change.new is None or is_finished(job):
            for pod in self.index.owned(job["metadata"]["uid"]):
                if TRACKED in pod.tail:
                    self.queue.add(("orphan", pod.namespace, pod.name))
        super()._manager_changed(change)

    def _managed_changed(self, change: Change) -> None:
        super()._managed_changed(change)
        if change.new is not None and TRACKED in change.new.tail:
            job = self._job_of(self.client.parsed(change.new))
            if job is None or is_finished(job):
                self.queue.add(("orphan", change.new.namespace, change.new.name))

    def _job_of(self, pod: Object) -> Object | None:
        """Job that controls a pod. It is shared and must not be changed."""
        reference = controller_of(pod)
        if reference is None or reference["kind"] != "Job":
            return None
        jobs = self.client.collection("jobs", group="batch")
        key = self.client.resource("jobs", "batch").key(pod["metadata"]["namespace"], reference["name"])
        entry = jobs.entries.get(key)
        job = self.client.parsed(entry) if entry is not None else None
        return job if job is not None and job["metadata"]["uid"] == reference["uid"] else None

    async def reconcile(self, key: Key) -> None:
        if len(key) == 3:
            await self._release_orphan(key)
            return
        job = self.find((key[0], key[1]))
        if job is None or is_managed_elsewhere(job):
            return
        if is_finished(job):
            self._backoffs.pop(key, None)
            return
        await self._sync(key, job)

    async def _release_orphan(self, key: Key) -> None:
        """Removes the finalizer from a pod whose Job has finished or is gone."""
        pod = self.client.get("pods", key[2], key[1])
        if pod is None or not is_tracked(pod):
            return
        reference = controller_of(pod)
        if reference is not None:
            if (reference["kind"], reference["apiVersion"]) != ("Job", "batch/v1"):
                return
            job = self._job_of(pod)
            if job is not None and (is_managed_elsewhere(job) or not is_finished(job)):
                return
        await self._remove_finalizer(pod)

    async def _sync(self, key: Key, stored: Object) -> None:
        now, stamp = self.clock.now(), self.stamp()
        pods = await self.claim(stored)
        status = copy_status(stored)
        if "startTime" not in status and not is_suspended(stored):
            status["startTime"] = stamp
        job = {**stored, "status": dict(status)}
        progress = survey(job, pods, self._backoffs.get(key, Backoff()), now)
        left = seconds_to_deadline(job, now)
        if left is not None and left > 0:
            self.queue.add_after(key, left)
        errors: Errors = []
        active, outcome = len(progress.active), progress.outcome
        is_deleted = "deletionTimestamp" in job["metadata"]
        if outcome is not None:
            active -= await self._delete_pods(progress, progress.active, errors, untrack=False)
            outcome = None if active else outcome
        else:
            if not is_deleted:
                active = await self._carry_out(key, progress, plan(progress, now), errors)
            if is_complete(progress, active):
                outcome = COMPLETE
            elif not is_deleted and (event := set_suspended(status, job, stamp)):
                self.events.emit(job, "Normal", event, f"Job {event.lower()}")
        status |= {"active": active, "ready": progress.ready, "terminating": progress.terminating}
        await self._track(key, stored, progress, outcome, status, errors)
        if errors:
            raise errors[0]

    async def _carry_out(self, key: Key, progress: Progress, planned: Plan, errors: Errors) -> int:
        """Deletes or creates pods. Returns the number of pods that are active afterwards."""
        active = len(progress.active)
        if planned.retry_after:
            self.queue.add_after(key, planned.retry_after)
        if planned.delete:
            return active - await self._delete_pods(progress, planned.delete, errors, untrack=True)
        job, indexes = progress.job, planned.create

        async def create(number: int) -> None:
            nonlocal active
            index = indexes[number]
            await self.create_pod(job, new_pod(job, index, progress.delayed.get(index)))
            active += 1

        try:
            await of_pods.slow_start(len(indexes), create)
        except APIError as error:
            errors.append(error)
        return active

    async def _delete_pods(
        self, progress: Progress, pods: list[Object], errors: Errors, *, untrack: bool
    ) -> int:
        """Deletes pods; with `untrack` they are not counted as failed. Returns the number of deleted pods."""

        async def delete(pod: Object) -> None:
            if untrack:
                await self._remove_finalizer(pod)
            await self.delete_pod(progress.job, pod)
            progress.terminating += 1
            progress.ready -= pod_ready(pod)

        return sum(await _at_once(delete, pods, errors))

    async def _track(
        self,
        key: Key,
        stored: Object,
        progress: Progress,
        outcome: Outcome | None,
        status: Object,
        errors: Errors,
    ) -> None:
        """Counts finished pods in the status, removes their finalizers, and finishes the Job."""
        stamp = self.stamp()
        tracking = track(progress, outcome, status, stamp)
        job = await self._write(key, stored, status)
        if job is None:
            return
        if job is not stored:
            self._backoffs[key] = progress.backoff
        released = await _at_once(self._remove_finalizer, tracking.release, errors)
        gone = {pod["metadata"]["uid"] for pod, done in zip(tracking.release, released, strict=True) if done}
        settle(status, {pod["metadata"]["uid"] for pod in progress.pods if is_tracked(pod)} - gone)
        if tracking.is_partial:
            self.queue.add(key)
            outcome = None
        is_done = outcome is not None and finish(outcome, status, stamp)
        if await self._write(key, job, status) is not None and outcome is not None and is_done:
            self._record_outcome(job, outcome, status)

    async def _write(self, key: Key, job: Object, status: Object) -> Object | None:
        """Writes the status unless it is the same. Returns the Job with its new status. If spec or status have
        changed since they were read, nothing is written, the Job is queued again, and the result is None."""
        values = shown_status(status)
        if values == job["status"]:
            return job
        metadata = job["metadata"]

        def edit(current: Object) -> Object | None:
            if (
                current["metadata"].get("generation") != metadata.get("generation")
                or current["status"] != job["status"]
            ):
                self.queue.add(key)
                return None
            current["status"] = values
            return current

        self._written[metadata["namespace"], metadata["name"]] = (values, metadata.get("annotations") or {})
        written = await self.client.update(
            "jobs", metadata["name"], metadata["namespace"], edit, group="batch", subresource="status"
        )
        return None if written is None else {**job, "status": values}

    async def _remove_finalizer(self, pod: Object) -> None:
        def edit(current: Object) -> Object | None:
            metadata = current["metadata"]
            if metadata["uid"] != pod["metadata"]["uid"] or not is_tracked(current):
                return None
            metadata["finalizers"] = [name for name in metadata["finalizers"] if name != FINALIZER]
            if not metadata["finalizers"]:
                del metadata["finalizers"]
            return current

        metadata = pod["metadata"]
        await self.client.update("pods", metadata["name"], metadata["namespace"], edit)

    def _record_outcome(self, job: Object, outcome: Outcome, status: Object) -> None:
        if not outcome.is_success:
            self.events.emit(job, "Warning", outcome.reason, outcome.message)
            return
        completions = job["spec"].get("completions")
        if completions is not None and (status.get("succeeded") or 0) > completions:
            message = "Too many succeeded pods running after completion count reached"
            self.events.emit(job, "Warning", "TooManySucceededPods", message)
        self.events.emit(job, "Normal", "Completed", "Job completed")


def is_managed_elsewhere(job: Object) -> bool:
    """Whether managedBy names another controller."""
    return bool(job["spec"].get("managedBy", CONTROLLER) != CONTROLLER)


async def _at_once(
    act: Callable[[Object], Awaitable[None]], pods: list[Object], errors: Errors
) -> list[bool]:
    """Calls `act` for all pods, AT_ONCE concurrently. Returns for each pod whether that succeeded."""

    async def attempt(pod: Object) -> bool:
        try:
            await act(pod)
        except APIError as error:
            errors.append(error)
            return False
        return True

    done: list[bool] = []
    for start in range(0, len(pods), AT_ONCE):
        done += await asyncio.gather(*map(attempt, pods[start : start + AT_ONCE]))
    return done
