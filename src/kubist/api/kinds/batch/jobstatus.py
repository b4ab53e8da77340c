"""Validation of a Job's status: consistency of counts, times and conditions, and their allowed changes.

Most rules apply only if the update changes the affected fields, so that a status that already violates a rule can still
be updated.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from kubist.api.kinds.batch import indexes
from kubist.api.kinds.batch.job_policies import omitted
from kubist.api.kinds.shared.values import nonnegative_fields
from kubist.api.kinds.shared.workload import template_labels
from kubist.api.resources.strategy import Errors, Status
from kubist.model.meta.fields import duplicate, invalid, required
from kubist.model.meta.object import Object

if TYPE_CHECKING:
    from kubist.api.resources.context import Context

PATH = "status"
CONDITIONS = "status.conditions"


class JobStatus(Status):
    def prepare(self, ctx: Context, new: Object, old: Object) -> None:
        default_labels(new)

    def validate(self, ctx: Context, new: Object, old: Object) -> Errors:
        return _validate_status(new, old) + _validate_change(new, old)


def is_true(job: Object, kind: str) -> bool:
    return _has(job, kind, "True")


def is_finished(job: Object) -> bool:
    return is_true(job, "Complete") or is_true(job, "Failed")


def _has(job: Object, kind: str, status: str) -> bool:
    return any(
        condition.get("type") == kind and condition.get("status") == status
        for condition in (job.get("status") or {}).get("conditions") or ()
    )


def default_labels(job: Object) -> None:
    """Gives a Job without labels the labels of its template. Both share one dict, so that the Job also gets the
    labels that are generated for its pods."""
    metadata = job.setdefault("metadata", {})
    labels = template_labels(job["spec"]["template"])
    if labels and not metadata.get("labels"):
        metadata["labels"] = labels


class _Changes:
    """Differences between two states of a Job."""

    def __init__(self, new: Object, old: Object) -> None:
        self.new, self.old = new, old
        self.finished = is_finished(new) != is_finished(old)

    def condition(self, *kinds: str) -> bool:
        return any(is_true(self.new, kind) != is_true(self.old, kind) for kind in kinds)

    def field(self, *names: str, zero: Any = None) -> bool:
        new, old = self.new.get("status") or {}, self.old.get("status") or {}
        return any(new.get(name, zero) != old.get(name, zero) for name in names)


def _validate_status(job: Object, old: Object) -> Errors:
    status = job.get("status") or {}
    changes = _Changes(job, old)
    errors = nonnegative_fields(status, PATH, ("active", "succeeded", "failed", "ready", "terminating"))
    errors += _validate_uncounted(status.get("uncountedTerminatedPods") or {})
    errors += _validate_outcome(job, changes)
    errors += _validate_finished(job, changes)
    errors += _validate_indexes(job, changes)
    if (changes.finished or changes.field("terminating")) and is_finished(job):
        terminating = status.get("terminating") or 0
        if terminating > 0:
            why = "terminating>0 is invalid for finished job"
            errors.append(invalid(f"{PATH}.terminating", terminating, why))
    if changes.field("ready") or changes.field("active", zero=0):
        ready = status.get("ready")
        if ready is not None and ready > status.get("active", 0):
            errors.append(invalid(f"{PATH}.ready", ready, "cannot set more ready pods than active"))
    return errors + _validate_success(job)


def _validate_uncounted(uncounted: Object) -> Errors:
    errors: Errors = []
    seen = set()
    for outcome in ("succeeded", "failed"):
        for index, uid in enumerate(uncounted.get(outcome) or ()):
            path = f"{PATH}.uncountedTerminatedPods.{outcome}[{index}]"
            if not uid:
                errors.append(invalid(path, uid, "must not be empty"))
            elif uid in seen:
                errors.append(duplicate(path, uid))
            seen.add(uid)
    return errors


def _validate_outcome(job: Object, changes: _Changes) -> Errors:
    status = job.get("status") or {}
    complete, failed = is_true(job, "Complete"), is_true(job, "Failed")
    start, completion = status.get("startTime"), status.get("completionTime")
    errors: Errors = []
    if changes.condition("Complete", "Failed") and complete and failed:
        errors.append(omitted(CONDITIONS, "cannot set Complete=True and Failed=true conditions"))
    if changes.condition("Complete", "FailureTarget") and complete and is_true(job, "FailureTarget"):
        errors.append(omitted(CONDITIONS, "cannot set Complete=True and FailureTarget=true conditions"))
    if changes.condition("Complete") or changes.field("completionTime"):
        path = f"{PATH}.completionTime"
        if completion is not None and not complete:
            why = "cannot set completionTime when there is no Complete=True condition"
            errors.append(invalid(path, completion, why))
        if completion is None and complete:
            errors.append(required(path, "completionTime is required for Complete jobs"))
    if changes.field("startTime", "completionTime") and start and completion and completion < start:
        why = "must be equal to or after `startTime`"
        errors.append(invalid(f"{PATH}.completionTime", completion, why))
    failed_changed = changes.condition("Failed") or changes.field("failedIndexes")
    if failed_changed and failed and not is_true(job, "FailureTarget"):
        why = "cannot set Failed=True condition without the FailureTarget=true condition"
        errors.append(omitted(CONDITIONS, why))
    success_changed = changes.condition("Complete", "SuccessCriteriaMet")
    if success_changed and complete and not is_true(job, "SuccessCriteriaMet"):
        why = "cannot set Complete=True condition without the SuccessCriteriaMet=true condition"
        errors.append(omitted(CONDITIONS, why))
    return errors


def _validate_finished(job: Object, changes: _Changes) -> Errors:
    if not is_finished(job):
        return []
    status, spec = job.get("status") or {}, job["spec"]
    errors: Errors = []
    active = status.get("active", 0)
    if (changes.finished or changes.field("active", zero=0)) and active > 0:
        errors.append(invalid(f"{PATH}.active", active, "active>0 is invalid for finished job"))
    never_started = spec.get("suspend") is True and spec.get("completions") == 0
    if (changes.finished or changes.field("startTime")) and not never_started and "startTime" not in status:
        errors.append(required(f"{PATH}.startTime", "startTime is required for finished job"))
    uncounted = status.get("uncountedTerminatedPods")
    if (changes.finished or changes.field("uncountedTerminatedPods")) and uncounted:
        value = {"Succeeded": uncounted.get("succeeded"), "Failed": uncounted.get("failed")}
        if any(value.values()):
            why = "must be empty for finished job"
            errors.append(invalid(f"{PATH}.uncountedTerminatedPods", value, why))
    return errors


def _validate_indexes(job: Object, changes: _Changes) -> Errors:
    status, spec = job.get("status") or {}, job["spec"]
    completions = spec.get("completions")
    per_index = "backoffLimitPerIndex" in spec
    completed, failed = status.get("completedIndexes", ""), status.get("failedIndexes")
    completed_changed = changes.field("completedIndexes", zero="")
    failed_changed = changes.field("failedIndexes")
    errors: Errors = []
    if completed_changed and completions is not None:
        errors += _validate_format(completed, completions, "completedIndexes")
    if failed_changed and completions is not None and per_index and failed is not None:
        errors += _validate_format(failed, completions, "failedIndexes")
    if completed_changed and completed and spec.get("completionMode") != "Indexed":
        why = "cannot set non-empty completedIndexes when non-indexed completion mode"
        errors.append(invalid(f"{PATH}.completedIndexes", completed, why))
    if failed_changed and not per_index and failed is not None:
        why = "cannot set non-null failedIndexes when backoffLimitPerIndex is null"
        errors.append(invalid(f"{PATH}.failedIndexes", failed, why))
    if (completed_changed or failed_changed) and completions is not None and failed is not None:
        shared = indexes.overlap(completed, failed, completions)
        if shared is not None:
            why = f"failedIndexes and completedIndexes overlap at index: {shared}"
            errors.append(invalid(f"{PATH}.failedIndexes", failed, why))
    return errors


def _validate_format(text: str, completions: int, field: str) -> Errors:
    try:
        indexes.count(text, completions)
    except indexes.IndexesError as error:
        return [invalid(f"{PATH}.{field}", text, f"error parsing {field}: {error}")]
    return []


def _validate_success(job: Object) -> Errors:
    met = is_true(job, "SuccessCriteriaMet")
    errors: Errors = []
    if met and is_true(job, "Failed"):
        errors.append(omitted(CONDITIONS, "cannot set SuccessCriteriaMet=True and Failed=true conditions"))
    if met and is_true(job, "FailureTarget"):
        why = "cannot set SuccessCriteriaMet=True and FailureTarget=true conditions"
        errors.append(omitted(CONDITIONS, why))
    if "successPolicy" in job["spec"] and not met and is_true(job, "Complete"):
        why = "cannot set Complete=True for Job with SuccessPolicy unless SuccessCriteriaMet=True"
        errors.append(omitted(CONDITIONS, why))
    return errors


def _validate_change(new: Object, old: Object) -> Errors:
    """Rejects status changes that undo the Job's history: terminal conditions, counters and times."""
    status, before, spec = new.get("status") or {}, old.get("status") or {}, new["spec"]
    errors = [
        omitted(CONDITIONS, f"cannot disable the terminal {kind}=True condition")
        for kind in ("Failed", "Complete", "FailureTarget")
        if is_true(old, kind) and not is_true(new, kind)
    ]
    resizable = spec.get("completionMode") == "Indexed" and spec.get("completions") == spec.get("parallelism")
    for counter in ("failed",) if resizable else ("failed", "succeeded"):
        if status.get(counter, 0) < before.get(counter, 0):
            why = f"cannot decrease the {counter} counter"
            errors.append(invalid(f"{PATH}.{counter}", status.get(counter, 0), why))
    completion, completed_before = status.get("completionTime"), before.get("completionTime")
    if completion and completed_before and completion != completed_before:
        errors.append(invalid(f"{PATH}.completionTime", completion, "field is immutable"))
    start, started_before = status.get("startTime"), before.get("startTime")
    resuming = is_true(old, "Suspended") and _has(new, "Suspended", "False")
    if started_before and start != started_before and not resuming and not spec.get("suspend"):
        why = "field is immutable for unsuspended job once set"
        errors.append(invalid(f"{PATH}.startTime", start, why))
    met_before, met = is_true(old, "SuccessCriteriaMet"), is_true(new, "SuccessCriteriaMet")
    if met_before and not met:
        errors.append(omitted(CONDITIONS, "cannot disable the SuccessCriteriaMet=True condition"))
    if is_true(old, "Complete") and not met_before and met:
        why = "cannot set SuccessCriteriaMet=True for Job already has Complete=true conditions"
        errors.append(omitted(CONDITIONS, why))
    return errors
