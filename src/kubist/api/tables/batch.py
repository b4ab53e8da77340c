"""Tables of Jobs and CronJobs."""

from __future__ import annotations

from kubist.api.tables.ages import Cell, age, since
from kubist.api.tables.columns import AGE, NAME, Column, Table, flag, name_of, number
from kubist.api.tables.shared import NONE, UNSET, WORKLOAD, containers, is_true, part, selector
from kubist.model.meta.durations import human_duration
from kubist.model.meta.object import Object
from kubist.model.meta.times import parse_time


def _job(obj: Object) -> list[Cell]:
    spec = part(obj, "spec")
    return [
        name_of(obj),
        _status(obj),
        _completions(spec, part(obj, "status").get("succeeded", 0)),
        _duration(part(obj, "status")),
        age(obj),
        *containers(part(spec, "template", "spec")),
        selector(spec.get("selector")),
    ]


def _status(obj: Object) -> str:
    conditions = part(obj, "status").get("conditions")
    if is_true(conditions, "Complete"):
        return "Complete"
    if is_true(conditions, "Failed"):
        return "Failed"
    if "deletionTimestamp" in obj["metadata"]:
        return "Terminating"
    for type in ("Suspended", "FailureTarget", "SuccessCriteriaMet"):
        if is_true(conditions, type):
            return type
    return "Running"


def _completions(spec: Object, succeeded: int) -> str:
    if "completions" in spec:
        return f"{succeeded}/{spec['completions']}"
    parallelism = spec.get("parallelism", 0)
    return f"{succeeded}/1 of {parallelism}" if parallelism > 1 else f"{succeeded}/1"


def _duration(status: Object) -> Cell:
    """Run time of a finished job, or time since the start of a running one."""
    if not status.get("startTime"):
        return ""
    if not status.get("completionTime"):
        return since(status["startTime"])
    return human_duration(parse_time(status["completionTime"]) - parse_time(status["startTime"]))


def _cron_job(obj: Object) -> list[Cell]:
    spec, status = part(obj, "spec"), part(obj, "status")
    job = part(spec, "jobTemplate", "spec")
    return [
        name_of(obj),
        spec.get("schedule", ""),
        spec.get("timeZone", NONE),
        str(spec["suspend"]) if "suspend" in spec else UNSET,
        len(status.get("active") or ()),
        since(status["lastScheduleTime"]) if status.get("lastScheduleTime") else NONE,
        age(obj),
        *containers(part(job, "template", "spec")),
        selector(job.get("selector")),
    ]


TABLES = {
    "Job": Table(
        (
            NAME,
            Column("Status", "State of the Job."),
            Column("Completions", "Number of succeeded pods and of required ones."),
            Column("Duration", "Run time of the Job so far, or until its end."),
            AGE,
            *WORKLOAD,
        ),
        _job,
    ),
    "CronJob": Table(
        (
            NAME,
            Column("Schedule", "Times at which Jobs start, in cron format."),
            Column("Timezone", "Time zone of the schedule."),
            flag("Suspend", "Whether no more jobs are started for now."),
            number("Active", "Number of running Jobs."),
            Column("Last Schedule", "Time since the last start of a Job."),
            AGE,
            *WORKLOAD,
        ),
        _cron_job,
    ),
}
