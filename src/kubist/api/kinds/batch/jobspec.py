"""JobSpec of a Job and of a CronJob's jobTemplate: defaults, validation, warnings."""

from __future__ import annotations

from typing import TYPE_CHECKING

from kubist.api.kinds.batch.job_policies import (
    validate_pod_failure_policy,
    validate_pod_replacement_policy,
    validate_success_policy,
)
from kubist.api.kinds.core.podspec import default_pod_template, template_warnings
from kubist.api.kinds.shared.values import nonnegative, nonnegative_fields
from kubist.api.kinds.shared.workload import validate_template
from kubist.api.resources.strategy import Errors
from kubist.model.meta.fields import invalid, not_supported, required, too_long
from kubist.model.meta.names import validate_domain_prefixed_path
from kubist.model.meta.object import Object

if TYPE_CHECKING:
    from kubist.api.resources.context import Context

MAX_INDEXED_PARALLELISM = 100_000
MAX_FAILED_INDEXES = 100_000
MANY_COMPLETIONS = 100_000
"""Number of completions above which the limits per index are stricter."""
MANY_COMPLETIONS_LIMIT = 10_000
MAX_MANAGED_BY = 63


def default_job_template(spec: Object) -> None:
    """Defaults that apply to a JobSpec both in a Job and in a jobTemplate."""
    default_pod_template(spec.setdefault("template", {}))
    for rule in (spec.get("podFailurePolicy") or {}).get("rules") or ():
        for pattern in rule.get("onPodConditions") or ():
            pattern["status"] = pattern.get("status") or "True"


def validate_job_spec(ctx: Context, spec: Object, old: Object | None, path: str) -> Errors:
    """Validates all but the selector, which a Job must have and a jobTemplate must not have."""
    errors = nonnegative_fields(
        spec,
        path,
        (
            "parallelism",
            "completions",
            "activeDeadlineSeconds",
            "backoffLimit",
            "ttlSecondsAfterFinished",
            "backoffLimitPerIndex",
        ),
    )
    if "maxFailedIndexes" in spec:
        errors += nonnegative(spec["maxFailedIndexes"], f"{path}.maxFailedIndexes")
        if "backoffLimitPerIndex" not in spec:
            errors.append(required(f"{path}.backoffLimitPerIndex", "when maxFailedIndexes is specified"))
    manager = spec.get("managedBy")
    if manager is not None:
        errors += validate_domain_prefixed_path(manager, f"{path}.managedBy")
        if len(manager.encode()) > MAX_MANAGED_BY:
            errors.append(too_long(f"{path}.managedBy", MAX_MANAGED_BY))
    errors += _validate_completion_mode(spec, path)
    if "podFailurePolicy" in spec:
        errors += validate_pod_failure_policy(spec, f"{path}.podFailurePolicy")
    if "successPolicy" in spec:
        errors += validate_success_policy(spec, f"{path}.successPolicy")
    errors += validate_pod_replacement_policy(spec, f"{path}.podReplacementPolicy")
    template = spec["template"]
    errors += validate_template(ctx, template, f"{path}.template", old["template"] if old else None)
    return errors + _validate_restart_policy(spec, f"{path}.template.spec.restartPolicy")


def _validate_completion_mode(spec: Object, path: str) -> Errors:
    mode = spec.get("completionMode")
    if mode == "Indexed":
        return _validate_indexed(spec, path)
    if mode is not None and mode != "NonIndexed":
        return [not_supported(f"{path}.completionMode", mode, ["NonIndexed", "Indexed"])]
    return [
        invalid(f"{path}.{field}", spec[field], "requires indexed completion mode")
        for field in ("backoffLimitPerIndex", "maxFailedIndexes")
        if field in spec
    ]


def _validate_indexed(spec: Object, path: str) -> Errors:
    errors = []
    completions = spec.get("completions")
    parallelism = spec.get("parallelism", 0)
    max_failed = spec.get("maxFailedIndexes")
    if completions is None:
        errors.append(required(f"{path}.completions", "when completion mode is Indexed"))
    if parallelism > MAX_INDEXED_PARALLELISM:
        why = f"must be less than or equal to {MAX_INDEXED_PARALLELISM} when completion mode is Indexed"
        errors.append(invalid(f"{path}.parallelism", parallelism, why))
    if max_failed is not None:
        if completions is not None and max_failed > completions:
            why = "must be less than or equal to completions"
            errors.append(invalid(f"{path}.maxFailedIndexes", max_failed, why))
        if max_failed > MAX_FAILED_INDEXES:
            why = f"must be less than or equal to {MAX_FAILED_INDEXES}"
            errors.append(invalid(f"{path}.maxFailedIndexes", max_failed, why))
    if (completions or 0) > MANY_COMPLETIONS and "backoffLimitPerIndex" in spec:
        why = (
            f"must be less than or equal to {MANY_COMPLETIONS_LIMIT} when completions are above "
            f"{MANY_COMPLETIONS} and used with backoff limit per index"
        )
        if max_failed is None:
            needed = f"must be specified when completions is above {MANY_COMPLETIONS}"
            errors.append(required(f"{path}.maxFailedIndexes", needed))
        if parallelism > MANY_COMPLETIONS_LIMIT:
            errors.append(invalid(f"{path}.parallelism", parallelism, why))
        if (max_failed or 0) > MANY_COMPLETIONS_LIMIT:
            errors.append(invalid(f"{path}.maxFailedIndexes", max_failed, why))
    return errors


def _validate_restart_policy(spec: Object, path: str) -> Errors:
    """Validates restartPolicy: OnFailure or Never, so that pods can finish."""
    policy = spec["template"]["spec"].get("restartPolicy", "")
    if policy in ("Always", ""):
        return [required(path, 'valid values: "OnFailure", "Never"')]
    if policy not in ("OnFailure", "Never"):
        return [not_supported(path, policy, ["OnFailure", "Never"])]
    if "podFailurePolicy" in spec and policy != "Never":
        return [invalid(path, policy, 'only "Never" is supported when podFailurePolicy is specified')]
    return []


def job_spec_warnings(spec: Object, path: str) -> list[str]:
    warnings = []
    if (
        spec.get("completionMode") == "Indexed"
        and spec.get("completions", 0) > MANY_COMPLETIONS
        and spec.get("parallelism", 0) > MANY_COMPLETIONS_LIMIT
    ):
        warnings.append(
            f"{path}: In Indexed Jobs with a number of completions higher than 10^5 and a parallelism higher "
            "than 10^4, Kubernetes might not be able to track completedIndexes when a big number of indexes "
            "fail"
        )
    return warnings + template_warnings(spec["template"], f"{path}.template")
