"""CronJob controller: creates Jobs on schedule and deletes finished ones above the history limits."""

from __future__ import annotations

import copy
import datetime

from kubist.control.loop import controller_of
from kubist.control.workloads import cron
from kubist.control.workloads import pods as of_pods
from kubist.control.workloads.pods import PodOwnerLoop
from kubist.kinds.batch.jobstatus import is_finished, is_true
from kubist.meta import times
from kubist.meta.object import Object
from kubist.meta.status import APIError
from kubist.storage.cache import Change

SCHEDULED = "batch.kubernetes.io/cronjob-scheduled-timestamp"


class CronJobs(PodOwnerLoop):
    name = "cronjob"
    resource = "cronjobs"
    group = "batch"
    managed, managed_group = "jobs", "batch"

    def _managed_changed(self, change: Change) -> None:
        for version in (change.old, change.new):
            if version is not None:
                reference = controller_of(version.object())
                if reference is not None and reference.get("kind") == "CronJob":
                    self.queue.add((version.namespace, reference["name"]))

    async def reconcile(self, key: tuple[str, str]) -> None:
        cronjob = self.find(key)
        if cronjob is None or "deletionTimestamp" in cronjob["metadata"]:
            return
        jobs = [job for job in self.client.list("jobs", key[0], group="batch") if of_pods.owned(job, cronjob)]
        await self._clean(cronjob, jobs)
        active = [job for job in jobs if not is_finished(job)]
        status: Object = dict(cronjob["status"])
        done = [job["status"].get("completionTime") for job in jobs if is_true(job, "Complete")]
        if completed := [when for when in done if when]:
            status["lastSuccessfulTime"] = max([*completed, status.get("lastSuccessfulTime", "")])
        if not cronjob["spec"].get("suspend"):
            due = self._due(key, cronjob)
            if due is not None:
                await self._run(cronjob, active, due, status)
        status["active"] = [_reference(job) for job in active]
        await self.write_status(cronjob, status)

    def _due(self, key: tuple[str, str], cronjob: Object) -> datetime.datetime | None:
        """The latest missed time within startingDeadlineSeconds, or None. Queues the key for the following time."""
        spec, metadata = cronjob["spec"], cronjob["metadata"]
        now = datetime.datetime.now(datetime.UTC)
        since = _time(cronjob["status"].get("lastScheduleTime") or metadata["creationTimestamp"])
        if spec.get("startingDeadlineSeconds") is not None:
            since = max(since, now - datetime.timedelta(seconds=spec["startingDeadlineSeconds"]))
        zone = spec.get("timeZone", "")
        due = None
        following = cron.next_after(spec["schedule"], zone, since)
        while following is not None and following <= now:
            due = following
            following = cron.next_after(spec["schedule"], zone, following)
        if following is not None:
            self.queue.add_after(key, min((following - now).total_seconds() + 0.01, 86_400))
        return due

    async def _run(
        self, cronjob: Object, active: list[Object], due: datetime.datetime, status: Object
    ) -> None:
        policy = cronjob["spec"].get("concurrencyPolicy", "Allow")
        if active and policy == "Forbid":
            return
        if policy == "Replace":
            for job in active:
                await of_pods.delete(self.client, job, "jobs", group="batch")
            active.clear()
        metadata = cronjob["metadata"]
        template = copy.deepcopy(cronjob["spec"]["jobTemplate"])
        kept = template.get("metadata") or {}
        new = {
            "metadata": {
                "name": f"{metadata['name']}-{int(due.timestamp()) // 60}",
                "labels": kept.get("labels") or {},
                "annotations": {
                    **(kept.get("annotations") or {}),
                    SCHEDULED: times.format_time(int(due.timestamp())),
                },
                "ownerReferences": [of_pods.owner_reference(cronjob)],
            },
            "spec": template["spec"],
        }
        try:
            active.append(await self.client.create("jobs", new, metadata["namespace"], group="batch"))
        except APIError as error:
            if error.reason != "AlreadyExists":
                raise
        status["lastScheduleTime"] = times.format_time(int(due.timestamp()))

    async def _clean(self, cronjob: Object, jobs: list[Object]) -> None:
        for kind, field, default in (
            ("Complete", "successfulJobsHistoryLimit", 3),
            ("Failed", "failedJobsHistoryLimit", 1),
        ):
            ended = [job for job in jobs if is_true(job, kind) and "deletionTimestamp" not in job["metadata"]]
            ended.sort(key=lambda job: job["status"].get("startTime") or times.now())
            for job in ended[: max(len(ended) - cronjob["spec"].get(field, default), 0)]:
                await of_pods.delete(self.client, job, "jobs", group="batch")


def _time(text: str) -> datetime.datetime:
    return datetime.datetime.fromtimestamp(times.parse_time(text), datetime.UTC)


def _reference(job: Object) -> Object:
    metadata = job["metadata"]
    return {
        "apiVersion": "batch/v1",
        "kind": "Job",
        "name": metadata["name"],
        "namespace": metadata["namespace"],
        "uid": metadata["uid"],
        "resourceVersion": metadata["resourceVersion"],
    }
