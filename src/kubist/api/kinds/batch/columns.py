"""Columns of Jobs and CronJobs."""

from __future__ import annotations

from dataclasses import replace

from kubist.api.tables.ages import Cell, since
from kubist.api.tables.cells import CONTAINERS, NONE, SELECTOR, UNSET, containers, is_true, selector, size
from kubist.api.tables.columns import AGE, NAME, Column, Table, flag, number, part
from kubist.model.meta.durations import human_duration
from kubist.model.meta.object import Object
from kubist.model.meta.times import parse_time


def _status(job: Object) -> str:
    conditions = part(job, "status").get("conditions")
    if is_true(conditions, "Complete"):
        return "Complete"
    if is_true(conditions, "Failed"):
        return "Failed"
    if "deletionTimestamp" in job["metadata"]:
        return "Terminating"
    for type in ("Suspended", "FailureTarget", "SuccessCriteriaMet"):
        if is_true(conditions, type):
            return type
    return "Running"


def _completions(job: Object) -> str:
    spec, succeeded = part(job, "spec"), part(job, "status").get("succeeded", 0)
    if "completions" in spec:
        return f"{succeeded}/{spec['completions']}"
    parallelism = spec.get("parallelism", 0)
    return f"{succeeded}/1 of {parallelism}" if parallelism > 1 else f"{succeeded}/1"


def _duration(job: Object) -> Cell:
    """Run time of a finished job, or time since the start of a running one."""
    status = part(job, "status")
    if not status.get("startTime"):
        return ""
    if not status.get("completionTime"):
        return since(status["startTime"])
    return human_duration(parse_time(status["completionTime"]) - parse_time(status["startTime"]))


def _suspend(cron_job: Object) -> str:
    return str(part(cron_job, "spec").get("suspend", UNSET))


def _last_schedule(cron_job: Object) -> Cell:
    last = part(cron_job, "status").get("lastScheduleTime")
    return since(last) if last else NONE


def _job_selector(cron_job: Object) -> str:
    return selector(part(cron_job, "spec", "jobTemplate", "spec").get("selector"))


TABLES = {
    "Job": Table(
        NAME,
        Column("Status", "State of the Job.", cell=_status),
        Column("Completions", "Number of succeeded pods and of required ones.", cell=_completions),
        Column("Duration", "Run time of the Job so far, or until its end.", cell=_duration),
        AGE,
        *CONTAINERS,
        SELECTOR,
    ),
    "CronJob": Table(
        NAME,
        Column("Schedule", "Times at which Jobs start, in cron format.", path="spec.schedule"),
        Column("Timezone", "Time zone of the schedule.", path="spec.timeZone", absent=NONE),
        flag("Suspend", "Whether no more jobs are started for now.", cell=_suspend),
        number("Active", "Number of running Jobs.", cell=size("status.active")),
        Column("Last Schedule", "Time since the last start of a Job.", cell=_last_schedule),
        AGE,
        *containers("spec.jobTemplate.spec.template.spec.containers"),
        replace(SELECTOR, cell=_job_selector),
    ),
}
