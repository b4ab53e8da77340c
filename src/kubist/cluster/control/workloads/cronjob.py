"""CronJob controller: creates Jobs on schedule and deletes finished ones above the history limits."""

from __future__ import annotations

import copy
import datetime
import email.utils
import zoneinfo
from typing import NamedTuple

from kubist.api.kinds.batch import schedule as schedules
from kubist.api.kinds.batch.jobstatus import is_finished, is_true
from kubist.base.jsontext.quoting import quoted
from kubist.cluster.control.events import reference_to
from kubist.cluster.control.loop import entry_of
from kubist.cluster.control.workloads import cron_schedule
from kubist.cluster.control.workloads import pods as of_pods
from kubist.cluster.control.workloads.cron_schedule import Schedule
from kubist.cluster.control.workloads.pods import PodOwnerLoop
from kubist.model.meta.object import Object
from kubist.model.meta.status import APIError
from kubist.model.meta.times import format_time, parse_time
from kubist.storage.cache.cache import Change

SCHEDULED = "batch.kubernetes.io/cronjob-scheduled-timestamp"
HISTORY = (("Complete", "successfulJobsHistoryLimit"), ("Failed", "failedJobsHistoryLimit"))
TOO_MANY = "too many missed start times. Set or decrease .spec.startingDeadlineSeconds or check clock skew"
FORBIDDEN = "Not starting job because prior execution is running and concurrency policy is Forbid"
SEE = "https://kubernetes.io/docs/concepts/workloads/controllers/cron-jobs/"


class CronJobs(PodOwnerLoop):
    name = "cronjob"
    component = "cronjob-controller"
    resource = "cronjobs"
    group = "batch"
    managed, managed_group = "jobs", "batch"

    def _manager_changed(self, change: Change) -> None:
        """Queues the CronJob. After a change of its schedule it waits for the next time of the new one."""
        if change.old is not None and change.new is not None:
            old, new = self.client.parsed(change.old)["spec"], self.client.parsed(change.new)
            if any(old.get(part) != new["spec"].get(part) for part in ("schedule", "timeZone")):
                entry = entry_of(change)
                self._look_again((entry.namespace, entry.name), new, _schedule(new))
                return
        super()._manager_changed(change)

    def _managed_changed(self, change: Change) -> None:
        """Queues the CronJob that controls a Job."""
        entry = entry_of(change)
        for owner in {*self.index.apply(change)}:
            if owner is not None and owner.name:
                self.queue.add((entry.namespace, owner.name))

    async def reconcile(self, key: tuple[str, str]) -> None:
        cronjob = self.find(key)
        if cronjob is None:
            return
        jobs = [self.client.parsed(entry) for entry in self.index.owned(cronjob["metadata"]["uid"])]
        status: Object = {**cronjob["status"], "active": list(cronjob["status"].get("active") or ())}
        await self._delete_old_jobs(cronjob, jobs, status)
        self._observe(cronjob, jobs, status)
        try:
            if "deletionTimestamp" not in cronjob["metadata"] and not cronjob["spec"].get("suspend"):
                await self._start_due_job(key, cronjob, status)
        finally:
            await self.write_status(cronjob, status)

    async def _delete_old_jobs(self, cronjob: Object, jobs: list[Object], status: Object) -> None:
        for kind, field in HISTORY:
            ended = [job for job in jobs if is_true(job, kind)]
            limit = cronjob["spec"].get(field, len(ended))
            ended.sort(key=lambda job: (job["status"].get("startTime", "~"), job["metadata"]["name"]))
            for job in ended[: max(len(ended) - limit, 0)]:
                if "deletionTimestamp" not in job["metadata"]:
                    await self._delete_job(cronjob, job, status)

    async def _delete_job(self, cronjob: Object, job: Object, status: Object) -> None:
        metadata = job["metadata"]
        try:
            await of_pods.delete(self.client, job, "jobs", group="batch")
        except APIError as error:
            self.events.emit(cronjob, "Warning", "FailedDelete", f"Deleted job: {error}")
            raise
        status["active"] = _without(status["active"], metadata["uid"])
        self.events.emit(cronjob, "Normal", "SuccessfulDelete", f"Deleted job {metadata['name']}")

    def _observe(self, cronjob: Object, jobs: list[Object], status: Object) -> None:
        """Updates the active Jobs and the time of the last success."""
        for job in jobs:
            name, uid = job["metadata"]["name"], job["metadata"]["uid"]
            is_listed = any(reference["uid"] == uid for reference in status["active"])
            if not is_finished(job):
                if not is_listed:
                    message = f"Saw a job that the controller did not create or forgot: {name}"
                    self.events.emit(cronjob, "Warning", "UnexpectedJob", message)
                continue
            if is_listed:
                condition = "Complete" if is_true(job, "Complete") else "Failed"
                status["active"] = _without(status["active"], uid)
                message = f"Saw completed job: {name}, condition: {condition}"
                self.events.emit(cronjob, "Normal", "SawCompletedJob", message)
            ended = job["status"].get("completionTime")
            if ended and is_true(job, "Complete"):
                status["lastSuccessfulTime"] = max(status.get("lastSuccessfulTime", ""), ended)
        known = {job["metadata"]["uid"] for job in jobs}
        for reference in status["active"]:
            name = reference["name"]
            if reference["uid"] not in known and self._find_job(cronjob, name) is None:
                status["active"] = _without(status["active"], reference["uid"])
                self.events.emit(cronjob, "Normal", "MissingJob", f"Active job went missing: {name}")

    async def _start_due_job(self, key: tuple[str, str], cronjob: Object, status: Object) -> None:
        """Creates a Job for the latest missed time, unless it is too late or the concurrency policy forbids it."""
        spec, now = cronjob["spec"], self.clock.now()
        try:
            if spec.get("timeZone") is not None:
                schedules.check_time_zone(spec["timeZone"])
        except schedules.ScheduleError as error:
            message = f"invalid timeZone: {quoted(spec['timeZone'])}: {error}"
            self.events.emit(cronjob, "Warning", "UnknownTimeZone", message)
            return
        if "TZ" in spec["schedule"]:
            message = f"CRON_TZ or TZ used in schedule {quoted(spec['schedule'])} is not officially supported"
            self.events.emit(
                cronjob, "Warning", "UnsupportedSchedule", f"{message}, see {SEE} for more details"
            )
        schedule = _schedule(cronjob)
        due = self._due(cronjob, schedule, now)
        if due is not None and not await self._is_prevented(cronjob, due, status):
            await self._start(cronjob, due, status)
        self._look_again(key, {**cronjob, "status": status}, schedule)

    def _look_again(self, key: tuple[str, str], cronjob: Object, schedule: cron_schedule.Schedule) -> None:
        """Queues a CronJob for its next time."""
        left = seconds_to_next(cronjob, schedule, self.clock.now())
        if left is not None:
            self.queue.add_after(key, left)

    def _due(self, cronjob: Object, schedule: cron_schedule.Schedule, now: float) -> int | None:
        """Latest missed time, if a Job can still be started for it."""
        try:
            missed = missed_times(cronjob, schedule, now)
        except ScheduleError as error:
            message = f"invalid schedule: {cronjob['spec']['schedule']} : {error}"
            self.events.emit(cronjob, "Warning", "InvalidSchedule", message)
            return None
        if missed.latest is None:
            return None
        if missed.number > MANY:
            self.events.emit(cronjob, "Warning", "TooManyMissedTimes", TOO_MANY)
        if is_too_late(cronjob, missed.latest, now):
            date = email.utils.format_datetime(datetime.datetime.fromtimestamp(missed.latest, datetime.UTC))
            message = f"Missed scheduled time to start a job: {date}"
            self.events.emit(cronjob, "Warning", "MissSchedule", message)
            return None
        return missed.latest

    async def _is_prevented(self, cronjob: Object, due: int, status: Object) -> bool:
        """Whether the due time was handled before, or the concurrency policy forbids a Job. With the policy
        Replace, the active Jobs are deleted."""
        policy, name = cronjob["spec"].get("concurrencyPolicy"), job_name(cronjob, due)
        if status.get("lastScheduleTime") == format_time(due):
            return True
        if any(reference["name"] == name for reference in status["active"]):
            return True
        if policy == "Forbid" and status["active"]:
            self.events.emit(cronjob, "Normal", "JobAlreadyActive", FORBIDDEN)
            return True
        if policy == "Replace":
            for reference in status["active"]:
                job = self._find_job(cronjob, reference["name"])
                if job is not None:
                    await self._delete_job(cronjob, job, status)
        return False

    async def _start(self, cronjob: Object, due: int, status: Object) -> None:
        namespace = cronjob["metadata"]["namespace"]
        try:
            job = await self.client.create("jobs", new_job(cronjob, due), namespace, group="batch")
        except APIError as error:
            if error.reason != "AlreadyExists":
                if not of_pods.is_namespace_terminating(error):
                    self.events.emit(cronjob, "Warning", "FailedCreate", f"Error creating job: {error}")
                raise
            existing_job = self._find_job(cronjob, job_name(cronjob, due))
            if existing_job is None or not of_pods.owned(existing_job, cronjob):
                return
            job = existing_job
        else:
            self.events.emit(cronjob, "Normal", "SuccessfulCreate", f"Created job {job['metadata']['name']}")
        status["active"] = [*status["active"], reference_to(job)]
        status["lastScheduleTime"] = format_time(due)

    def _find_job(self, cronjob: Object, name: str) -> Object | None:
        return self.client.get("jobs", name, cronjob["metadata"]["namespace"], group="batch")


def job_name(cronjob: Object, due: int) -> str:
    return f"{cronjob['metadata']['name']}-{due // 60}"


def new_job(cronjob: Object, due: int) -> Object:
    """Job for a scheduled time. Its annotation shows the time in the CronJob's time zone."""
    template = copy.deepcopy(cronjob["spec"]["jobTemplate"])
    metadata = template.get("metadata") or {}
    return {
        "metadata": {
            "name": job_name(cronjob, due),
            "labels": metadata.get("labels") or {},
            "annotations": {
                **(metadata.get("annotations") or {}),
                SCHEDULED: _local_time(due, cronjob["spec"].get("timeZone", "")),
            },
            "ownerReferences": [of_pods.owner_reference(cronjob)],
        },
        "spec": template["spec"],
    }


def _schedule(cronjob: Object) -> cron_schedule.Schedule:
    return cron_schedule.parse(cronjob["spec"]["schedule"], cronjob["spec"].get("timeZone", ""))


def _local_time(moment: int, zone: str) -> str:
    if zone in ("", "Local", "UTC"):
        return format_time(moment)
    text = datetime.datetime.fromtimestamp(moment, zoneinfo.ZoneInfo(zone)).isoformat()
    return f"{text[:-6]}Z" if text.endswith("+00:00") else text


def _without(references: list[Object], uid: str) -> list[Object]:
    return [reference for reference in references if reference["uid"] != uid]


# Start times: the latest missed time, and the time of the next check

MANY = 100
"""Number of missed times above which the controller warns."""
_DELTA = 0.1
"""Seconds after a scheduled time at which the controller checks, so that the time has certainly passed."""


class ScheduleError(ValueError):
    """Schedule that never fires."""


class _Missed(NamedTuple):
    """Scheduled times up to now that no Job was started for."""

    since: float
    """Time from which on scheduled times count."""
    latest: int | None = None
    number: int = 0
    """Number of missed times, estimated by the first two. 0 if at most one was missed."""


def missed_times(cronjob: Object, schedule: Schedule, now: float, *, deadline: bool = True) -> _Missed:
    """Finds the latest missed time. With `deadline`, startingDeadlineSeconds limits how far to look back."""
    last_time = cronjob["status"].get("lastScheduleTime") or cronjob["metadata"]["creationTimestamp"]
    since: float = parse_time(last_time)
    limit = cronjob["spec"].get("startingDeadlineSeconds")
    if deadline and limit is not None:
        since = max(since, now - limit)
    first = schedule.next_after(since)
    if first is not None and now < first:
        return _Missed(since)
    second = schedule.next_after(first) if first is not None else None
    if first is None or second is None:
        raise ScheduleError("time difference between two schedules is less than 1 second")
    if now < second:
        return _Missed(since, first)
    period = second - first
    count = int(now - first) // period + 1
    latest = None
    following = schedule.next_after(first + (count - 2) * period)
    while following is not None and following <= now:
        latest, following = following, schedule.next_after(following)
    return _Missed(since, latest, count)


def seconds_to_next(cronjob: Object, schedule: Schedule, now: float) -> float | None:
    """Seconds until the controller must check the CronJob again. None if the schedule never fires."""
    try:
        missed = missed_times(cronjob, schedule, now, deadline=False)
    except ScheduleError:
        start = now
    else:
        start = missed.latest or (now if missed.number else missed.since)
    following = schedule.next_after(start)
    return None if following is None else max(following + _DELTA - now, 0.0)


def is_too_late(cronjob: Object, scheduled: int, now: float) -> bool:
    limit = cronjob["spec"].get("startingDeadlineSeconds")
    return limit is not None and scheduled + limit < now
