"""CronJob: creates Jobs on a schedule."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import TYPE_CHECKING

from kubist.api.kinds.batch.jobspec import default_job_template, job_spec_warnings, validate_job_spec
from kubist.api.kinds.batch.schedule import ScheduleError, check_schedule, check_time_zone
from kubist.api.kinds.shared.values import nonnegative, nonnegative_fields
from kubist.api.kinds.shared.workload import Workload
from kubist.api.resources.strategy import Errors, Status, Subresource
from kubist.model.meta.fields import invalid, not_supported, required
from kubist.model.meta.object import Object

if TYPE_CHECKING:
    from kubist.api.resources.context import Context

MAX_NAME = 52
"""Maximum length in characters, because the name of a Job is the CronJob's name plus a suffix of 11 characters."""
CONCURRENCY_POLICIES = ("Allow", "Forbid", "Replace")


class CronJobStrategy(Workload):
    template = "spec.jobTemplate.spec.template"
    names_pods = True
    subresources: Mapping[str, Subresource] = {"status": Status()}

    def default(self, obj: Object) -> None:
        spec = obj.setdefault("spec", {})
        default_job_template(spec.setdefault("jobTemplate", {}).setdefault("spec", {}))
        spec.setdefault("concurrencyPolicy", "Allow")
        spec.setdefault("suspend", False)
        spec.setdefault("successfulJobsHistoryLimit", 3)
        spec.setdefault("failedJobsHistoryLimit", 1)

    def validate(self, ctx: Context, new: Object, old: Object | None) -> Errors:
        if old is not None:
            return _validate_spec(ctx, new["spec"], old["spec"])
        errors = _validate_spec(ctx, new["spec"], None)
        name = new["metadata"].get("name", "")
        if len(name) > MAX_NAME:
            errors.append(invalid("metadata.name", name, f"must be no more than {MAX_NAME} characters"))
        return errors

    def warnings(self, ctx: Context, new: Object, old: Object | None) -> Iterable[str]:
        yield from super().warnings(ctx, new, old)
        if old is not None and "TZ" in new["spec"].get("schedule", ""):
            yield (
                "cannot use TZ or CRON_TZ in spec.spec.schedule, use timeZone instead, see "
                "https://kubernetes.io/docs/concepts/workloads/controllers/cron-jobs/ for more details"
            )

    def template_warnings(self, obj: Object) -> list[str]:
        return job_spec_warnings(obj["spec"]["jobTemplate"]["spec"], "spec.jobTemplate.spec")


def _validate_spec(ctx: Context, spec: Object, old: Object | None) -> Errors:
    errors = _validate_schedule(spec, old)
    errors += nonnegative(spec.get("startingDeadlineSeconds"), "spec.startingDeadlineSeconds")
    if old is None or old.get("timeZone") != spec.get("timeZone"):
        errors += _validate_time_zone(spec.get("timeZone"))
    policy = spec.get("concurrencyPolicy", "")
    if not policy:
        errors.append(required("spec.concurrencyPolicy"))
    elif policy not in CONCURRENCY_POLICIES:
        errors.append(not_supported("spec.concurrencyPolicy", policy, CONCURRENCY_POLICIES))
    job, path = spec["jobTemplate"]["spec"], "spec.jobTemplate.spec"
    errors += validate_job_spec(ctx, job, old["jobTemplate"]["spec"] if old else None, path)
    if "selector" in job:
        errors.append(invalid(f"{path}.selector", job["selector"], "`selector` will be auto-generated"))
    if job.get("manualSelector"):
        errors.append(not_supported(f"{path}.manualSelector", True, ["nil", "false"]))
    return errors + nonnegative_fields(spec, "spec", ("successfulJobsHistoryLimit", "failedJobsHistoryLimit"))


def _validate_schedule(spec: Object, old: Object | None) -> Errors:
    schedule, path = spec.get("schedule", ""), "spec.schedule"
    if not schedule:
        return [required(path)]
    errors = []
    try:
        check_schedule(schedule)
    except ScheduleError as error:
        errors.append(invalid(path, schedule, str(error)))
    if "TZ" in schedule:
        had_zone = old is not None and "TZ" in old.get("schedule", "")
        if not had_zone:
            why = "cannot use TZ or CRON_TZ in schedule, use timeZone field instead"
            errors.append(invalid(path, schedule, why))
        elif "timeZone" in spec:
            why = "cannot use both timeZone field and TZ or CRON_TZ in schedule"
            errors.append(invalid(path, schedule, why))
    return errors


def _validate_time_zone(zone: str | None) -> Errors:
    if zone is None:
        return []
    if not zone:
        return [invalid("spec.timeZone", zone, "timeZone must be nil or non-empty string")]
    errors = []
    if zone.lower() == "local":
        why = "timeZone must be an explicit time zone as defined in https://www.iana.org/time-zones"
        errors.append(invalid("spec.timeZone", zone, why))
    try:
        check_time_zone(zone)
    except ScheduleError as error:
        errors.append(invalid("spec.timeZone", zone, str(error)))
    return errors


strategy = CronJobStrategy()
