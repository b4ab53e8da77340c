"""Deployment: ReplicaSets that replace each other as the template changes."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING

from kubist.api.kinds.core.podspec import default_pod_template
from kubist.api.kinds.shared.update import immutable
from kubist.api.kinds.shared.values import nonnegative, nonnegative_fields, validate_at_most_100_percent
from kubist.api.kinds.shared.workload import (
    Workload,
    drop_annotation,
    integer_annotation,
    set_integer_annotation,
    shown_strategy,
    validate_collision_count,
    validate_counts,
    validate_replica_template,
    validate_rolling_bounds,
)
from kubist.api.resources.strategy import Errors, Scale, Status, Subresource
from kubist.model.meta.fields import forbidden, invalid, not_supported, required
from kubist.model.meta.object import Object

if TYPE_CHECKING:
    from kubist.api.resources.context import Context

ROLLBACK_TO = "deprecated.deployment.rollback.to"
COUNTS = (
    "observedGeneration",
    "replicas",
    "updatedReplicas",
    "readyReplicas",
    "availableReplicas",
    "unavailableReplicas",
    "terminatingReplicas",
    "collisionCount",
)


class DeploymentStatus(Status):
    reset_fields = ("spec", "metadata.labels")

    def validate(self, ctx: Context, new: Object, old: Object) -> Errors:
        status = new.get("status") or {}
        errors = nonnegative_fields(status, "status", COUNTS)
        errors += validate_counts(status, ("updatedReplicas", "readyReplicas", "availableReplicas"))
        return errors + validate_collision_count(new, old)


class DeploymentStrategy(Workload):
    names_pods = True
    always_scaled = True
    converted_annotations = (ROLLBACK_TO,)
    annotations_count = True
    subresources: Mapping[str, Subresource] = {
        "status": DeploymentStatus(),
        "scale": Scale(),
    }

    def default(self, obj: Object) -> None:
        spec = obj.setdefault("spec", {})
        default_pod_template(spec.setdefault("template", {}))
        spec.setdefault("replicas", 1)
        strategy = spec.setdefault("strategy", {})
        if strategy.setdefault("type", "RollingUpdate") == "RollingUpdate":
            rolling_update = strategy.setdefault("rollingUpdate", {})
            rolling_update.setdefault("maxUnavailable", "25%")
            rolling_update.setdefault("maxSurge", "25%")
        spec.setdefault("revisionHistoryLimit", 10)
        spec.setdefault("progressDeadlineSeconds", 600)
        _default_rollback(obj)

    def validate(self, ctx: Context, new: Object, old: Object | None) -> Errors:
        spec, before = new["spec"], old["spec"] if old is not None else None
        errors = nonnegative(spec.get("replicas"), "spec.replicas")
        errors += validate_replica_template(ctx, spec, before)
        errors += _validate_strategy(spec.get("strategy") or {}, "spec.strategy")
        errors += nonnegative_fields(spec, "spec", ("minReadySeconds", "revisionHistoryLimit"))
        revision = integer_annotation(new, ROLLBACK_TO)
        if revision is not None:
            errors += nonnegative(revision, "spec.rollback.version")
        deadline = spec.get("progressDeadlineSeconds")
        if deadline is not None:
            errors += nonnegative(deadline, "spec.progressDeadlineSeconds")
            if deadline <= spec.get("minReadySeconds", 0):
                why = "must be greater than minReadySeconds"
                errors.append(invalid("spec.progressDeadlineSeconds", deadline, why))
        if before is not None:
            errors += immutable(spec.get("selector"), before.get("selector"), "spec.selector")
        return errors


def _default_rollback(obj: Object) -> None:
    """Normalizes the rollback revision, which was a field of the spec in older versions, to an integer annotation."""
    annotations = obj.setdefault("metadata", {}).get("annotations")
    if not annotations or ROLLBACK_TO not in annotations:
        return
    text = annotations[ROLLBACK_TO]
    if not text:
        drop_annotation(obj, ROLLBACK_TO)
        return
    revision = integer_annotation(
        obj, ROLLBACK_TO, f"failed to parse annotation[{ROLLBACK_TO}]={text} as int64: "
    )
    if revision is not None:
        set_integer_annotation(obj, ROLLBACK_TO, revision)


def _validate_strategy(strategy: Object, path: str) -> Errors:
    rolling_update = strategy.get("rollingUpdate")
    match strategy.get("type", ""):
        case "Recreate":
            if rolling_update is None:
                return []
            why = "may not be specified when strategy `type` is 'Recreate'"
            return [forbidden(f"{path}.rollingUpdate", why)]
        case "RollingUpdate":
            if rolling_update is None:
                return [required(f"{path}.rollingUpdate", "this should be defaulted and never be nil")]
            return _validate_rolling_update(rolling_update, f"{path}.rollingUpdate")
    return [
        not_supported(
            path, shown_strategy(strategy, maxUnavailable=0, maxSurge=0), ["Recreate", "RollingUpdate"]
        )
    ]


def _validate_rolling_update(rolling_update: Object, path: str) -> Errors:
    has_unavailable, has_surge, errors = validate_rolling_bounds(rolling_update, path)
    unavailable, path = rolling_update.get("maxUnavailable", 0), f"{path}.maxUnavailable"
    if not has_unavailable and not has_surge:
        errors.append(invalid(path, unavailable, "may not be 0 when `maxSurge` is 0"))
    return errors + validate_at_most_100_percent(unavailable, path)


strategy = DeploymentStrategy()
