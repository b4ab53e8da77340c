"""DaemonSet: one pod on every matching node."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, ClassVar

from kubist.api.kinds.core.podspec import default_pod_template
from kubist.api.kinds.shared.update import immutable
from kubist.api.kinds.shared.values import nonnegative, nonnegative_fields, validate_at_most_100_percent
from kubist.api.kinds.shared.workload import (
    Workload,
    integer_annotation,
    set_integer_annotation,
    shown_strategy,
    validate_collision_count,
    validate_rolling_bounds,
    validate_runs_forever,
    validate_selected_labels,
    validate_template,
)
from kubist.api.resources.strategy import Errors, Status, Subresource
from kubist.model.meta.fields import invalid, not_supported, required
from kubist.model.meta.labels import has_invalid_values, is_empty, validate_selector
from kubist.model.meta.object import Object

if TYPE_CHECKING:
    from kubist.api.resources.context import Context

TEMPLATE_GENERATION = "deprecated.daemonset.template.generation"
COUNTS = (
    "currentNumberScheduled",
    "numberMisscheduled",
    "desiredNumberScheduled",
    "numberReady",
    "observedGeneration",
    "updatedNumberScheduled",
    "numberAvailable",
    "numberUnavailable",
    "collisionCount",
)


class DaemonSetStatus(Status):
    def prepare(self, ctx: Context, new: Object, old: Object) -> None:
        set_integer_annotation(new, TEMPLATE_GENERATION, template_generation(old))

    def validate(self, ctx: Context, new: Object, old: Object) -> Errors:
        errors = nonnegative_fields(new.get("status") or {}, "status", COUNTS)
        return errors + validate_collision_count(new, old)


class DaemonSetStrategy(Workload):
    converted_annotations = (TEMPLATE_GENERATION,)
    first_status: ClassVar = {
        "currentNumberScheduled": 0,
        "numberMisscheduled": 0,
        "desiredNumberScheduled": 0,
        "numberReady": 0,
    }
    subresources: Mapping[str, Subresource] = {"status": DaemonSetStatus()}

    def complete_bookmark(self, obj: Object) -> None:
        set_integer_annotation(obj, TEMPLATE_GENERATION, 0)

    def default(self, obj: Object) -> None:
        spec = obj.setdefault("spec", {})
        default_pod_template(spec.setdefault("template", {}))
        strategy = spec.setdefault("updateStrategy", {})
        if strategy.setdefault("type", "RollingUpdate") == "RollingUpdate":
            strategy.setdefault("rollingUpdate", {}).setdefault("maxUnavailable", 1)
        if "rollingUpdate" in strategy:
            strategy["rollingUpdate"].setdefault("maxUnavailable", 0)
            strategy["rollingUpdate"].setdefault("maxSurge", 0)
        spec.setdefault("revisionHistoryLimit", 10)
        obj.setdefault("metadata", {})
        set_integer_annotation(obj, TEMPLATE_GENERATION, template_generation(obj))

    def prepare(self, ctx: Context, new: Object, old: Object | None) -> None:
        super().prepare(ctx, new, old)
        if old is None:
            generation = max(1, template_generation(new))
        else:
            generation = template_generation(old) + (new["spec"]["template"] != old["spec"]["template"])
        set_integer_annotation(new, TEMPLATE_GENERATION, generation)

    def validate(self, ctx: Context, new: Object, old: Object | None) -> Errors:
        if old is None:
            return _validate_spec(ctx, new, None)
        errors = immutable(new["spec"].get("selector"), old["spec"].get("selector"), "spec.selector")
        return errors + _validate_spec(ctx, new, old["spec"])

    def raises_generation(self, new: Object, old: Object) -> bool:
        """Whether the template changed. Other changes of a DaemonSet give no warnings."""
        return bool(new["spec"]["template"] != old["spec"]["template"])


def template_generation(obj: Object) -> int:
    """Number of template changes. It was a field of the spec in older versions and is an annotation in apps/v1."""
    return integer_annotation(obj, TEMPLATE_GENERATION) or 0


def _validate_spec(ctx: Context, obj: Object, old: Object | None) -> Errors:
    spec = obj["spec"]
    selector = spec.get("selector")
    tolerant = old is not None and has_invalid_values(old.get("selector"))
    errors = validate_selector(selector, "spec.selector", allow_invalid_values=tolerant)
    if not validate_selector(selector, "spec.selector"):
        errors += validate_selected_labels(spec)
    if selector is not None and is_empty(selector):
        errors.append(invalid("spec.selector", selector, "empty selector is invalid for daemonset"))
    template = spec["template"]
    errors += validate_template(ctx, template, "spec.template", old["template"] if old else None)
    errors += validate_runs_forever(template, "DaemonSet", "spec.template")
    errors += nonnegative(spec.get("minReadySeconds"), "spec.minReadySeconds")
    errors += nonnegative(template_generation(obj), "spec.templateGeneration")
    errors += _validate_update_strategy(spec.get("updateStrategy") or {}, "spec.updateStrategy")
    return errors + nonnegative(spec.get("revisionHistoryLimit"), "spec.revisionHistoryLimit")


def _validate_update_strategy(strategy: Object, path: str) -> Errors:
    match strategy.get("type", ""):
        case "OnDelete":
            return []
        case "RollingUpdate":
            rolling_update = strategy.get("rollingUpdate")
            if rolling_update is None:
                return [required(f"{path}.rollingUpdate")]
            return _validate_rolling_update(rolling_update, f"{path}.rollingUpdate")
    return [
        not_supported(
            path, shown_strategy(strategy, maxUnavailable=0, maxSurge=0), ["RollingUpdate", "OnDelete"]
        )
    ]


def _validate_rolling_update(rolling_update: Object, path: str) -> Errors:
    """Validates maxUnavailable and maxSurge: exactly one of them must be non-zero."""
    has_unavailable, has_surge, errors = validate_rolling_bounds(rolling_update, path)
    unavailable, surge = rolling_update.get("maxUnavailable", 0), rolling_update.get("maxSurge", 0)
    errors += validate_at_most_100_percent(unavailable, f"{path}.maxUnavailable")
    errors += validate_at_most_100_percent(surge, f"{path}.maxSurge")
    if has_unavailable and has_surge:
        errors.append(invalid(f"{path}.maxSurge", surge, "may not be set when maxUnavailable is non-zero"))
    elif not has_unavailable and not has_surge:
        errors.append(required(f"{path}.maxUnavailable", "cannot be 0 when maxSurge is 0"))
    return errors


strategy = DaemonSetStrategy()
