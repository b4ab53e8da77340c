"""Deployment: ReplicaSets that replace each other as the template changes."""

from __future__ import annotations

from collections.abc import Iterable
from typing import TYPE_CHECKING, Any, ClassVar

from kubist.api.kinds.apps.deprecated import drop_annotation, integer_annotation, set_integer_annotation
from kubist.api.kinds.apps.replicated import (
    Replicated,
    validate_collision_count,
    validate_counts,
    validate_history_limit,
    validate_own_selector,
    validate_replica_template,
)
from kubist.api.kinds.core.podspec import default_pod_template
from kubist.api.kinds.shared.intstr import (
    IntOrString,
    int_or_percent_value,
    validate_at_most_100_percent,
    validate_int_or_percent,
)
from kubist.api.kinds.shared.numbers import nonnegative, nonnegative_fields
from kubist.api.kinds.shared.update import immutable
from kubist.api.kinds.shared.workload import name_warnings
from kubist.api.resources.strategy import Connect, Create, Errors, Scale, Status, Update, keep
from kubist.model.meta import objectmeta
from kubist.model.meta.fields import forbidden, invalid, not_supported, required
from kubist.model.meta.object import Object
from kubist.model.meta.objectmeta import raise_generation

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
    reset_fields: ClassVar[tuple[str, ...]] = ("spec", "metadata.labels")

    def prepare_for_update(self, ctx: Context, new: Object, old: Object) -> None:
        keep(new, old, "spec", "metadata.labels")

    def validate_update(self, ctx: Context, new: Object, old: Object) -> Errors:
        status = new.get("status") or {}
        errors = objectmeta.validate_update(new["metadata"], old["metadata"])
        errors += nonnegative_fields(status, "status", COUNTS)
        errors += validate_counts(status, ("updatedReplicas", "readyReplicas", "availableReplicas"))
        return errors + validate_collision_count(new, old)


class DeploymentStrategy(Replicated):
    converted_annotations: ClassVar[tuple[str, ...]] = (ROLLBACK_TO,)
    subresources: ClassVar[dict[str, Update | Scale | Create | Connect]] = {
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

    def prepare_for_update(self, ctx: Context, new: Object, old: Object) -> None:
        super().prepare_for_update(ctx, new, old)
        if self.raises_generation(new, old):
            raise_generation(new, old)

    def raises_generation(self, new: Object, old: Object) -> bool:
        """Annotations count as well, because the controller copies them to the ReplicaSets."""
        annotations, before = new["metadata"].get("annotations"), old["metadata"].get("annotations")
        return annotations != before or super().raises_generation(new, old)

    def validate_create(self, ctx: Context, obj: Object) -> Errors:
        return _validate_spec(ctx, obj, None)

    def validate_update(self, ctx: Context, new: Object, old: Object) -> Errors:
        errors = objectmeta.validate_update(new["metadata"], old["metadata"])
        errors += _validate_spec(ctx, new, old["spec"])
        return errors + immutable(new["spec"].get("selector"), old["spec"].get("selector"), "spec.selector")

    def warnings_on_create(self, ctx: Context, obj: Object) -> Iterable[str]:
        return [*name_warnings(obj), *super().warnings_on_create(ctx, obj)]


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


def _validate_spec(ctx: Context, obj: Object, old: Object | None) -> Errors:
    spec = obj["spec"]
    errors = nonnegative(spec.get("replicas"), "spec.replicas")
    errors += validate_own_selector(spec, "deployment")
    errors += validate_replica_template(ctx, spec, old)
    errors += _validate_strategy(spec.get("strategy") or {}, "spec.strategy")
    errors += nonnegative(spec.get("minReadySeconds"), "spec.minReadySeconds")
    errors += validate_history_limit(spec)
    errors += nonnegative(integer_annotation(obj, ROLLBACK_TO), "spec.rollback.version")
    deadline = spec.get("progressDeadlineSeconds")
    if deadline is not None:
        errors += nonnegative(deadline, "spec.progressDeadlineSeconds")
        if deadline <= spec.get("minReadySeconds", 0):
            why = "must be greater than minReadySeconds"
            errors.append(invalid("spec.progressDeadlineSeconds", deadline, why))
    return errors


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
    unavailable, surge, errors = validate_rolling_bounds(rolling_update, path)
    if int_or_percent_value(unavailable) == 0 and int_or_percent_value(surge) == 0:
        errors.append(invalid(f"{path}.maxUnavailable", unavailable, "may not be 0 when `maxSurge` is 0"))
    return errors + validate_at_most_100_percent(unavailable, f"{path}.maxUnavailable")


def validate_rolling_bounds(rolling_update: Object, path: str) -> tuple[IntOrString, IntOrString, Errors]:
    """maxUnavailable and maxSurge, which must be non-negative integers or percentages, and their errors."""
    unavailable = rolling_update.get("maxUnavailable", 0)
    surge = rolling_update.get("maxSurge", 0)
    errors = validate_int_or_percent(unavailable, f"{path}.maxUnavailable")
    return unavailable, surge, errors + validate_int_or_percent(surge, f"{path}.maxSurge")


def shown_strategy(strategy: Object, **rolling_update: int | None) -> dict[str, Any]:
    """Strategy in the form of Go error messages: Go field names. `rolling_update` maps rollingUpdate's fields to
    their zero values."""
    given = strategy.get("rollingUpdate")
    shown = None
    if given is not None:
        shown = {name[0].upper() + name[1:]: given.get(name, zero) for name, zero in rolling_update.items()}
    return {"Type": strategy.get("type", ""), "RollingUpdate": shown}


strategy = DeploymentStrategy()
