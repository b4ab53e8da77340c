"""PodDisruptionBudget: limits how many of the selected pods may be disrupted at once."""

from __future__ import annotations

from typing import TYPE_CHECKING, ClassVar

from kubist.api.kinds.shared.intstr import validate_at_most_100_percent, validate_int_or_percent
from kubist.api.kinds.shared.numbers import nonnegative_fields
from kubist.api.resources.strategy import Connect, Create, Errors, Scale, Status, Strategy, Update, keep
from kubist.model.meta.conditions import validate_conditions
from kubist.model.meta.fields import invalid, not_supported
from kubist.model.meta.labels import validate_selector
from kubist.model.meta.object import Object
from kubist.model.schema.internals import internal_form

if TYPE_CHECKING:
    from kubist.api.resources.context import Context

COUNTS = ("disruptionsAllowed", "currentHealthy", "desiredHealthy", "expectedPods")
EVICTION_POLICIES = ("AlwaysAllow", "IfHealthyBudget")


class PodDisruptionBudgetStatus(Status):
    def validate_update(self, ctx: Context, new: Object, old: Object) -> Errors:
        status = new.get("status") or {}
        errors = validate_conditions(status.get("conditions"), "status.conditions")
        return errors + nonnegative_fields(status, "status", COUNTS)


class PodDisruptionBudgetStrategy(Strategy):
    unconditional_update = False
    lenient_metadata = True
    reset_fields: ClassVar[tuple[str, ...]] = ("status",)
    generation_fields: ClassVar[tuple[str, ...]] = ("spec",)
    subresources: ClassVar[dict[str, Update | Scale | Create | Connect]] = {
        "status": PodDisruptionBudgetStatus()
    }

    def default(self, obj: Object) -> None:
        obj.setdefault("spec", {})

    def prepare_for_create(self, ctx: Context, obj: Object) -> None:
        obj["status"] = dict.fromkeys(COUNTS, 0)

    def prepare_for_update(self, ctx: Context, new: Object, old: Object) -> None:
        keep(new, old, "status")

    def validate_create(self, ctx: Context, obj: Object) -> Errors:
        return _validate_spec(obj["spec"], tolerant=False)

    def validate_update(self, ctx: Context, new: Object, old: Object) -> Errors:
        return _validate_spec(new["spec"], tolerant=bool(validate_selector(old["spec"].get("selector"), "")))


def _validate_spec(spec: Object, *, tolerant: bool) -> Errors:
    errors: Errors = []
    if "minAvailable" in spec and "maxUnavailable" in spec:
        shown = internal_form("policy.PodDisruptionBudgetSpec", spec)
        errors.append(invalid("spec", shown, "minAvailable and maxUnavailable cannot be both set"))
    for field in ("minAvailable", "maxUnavailable"):
        if field in spec:
            errors += validate_int_or_percent(spec[field], f"spec.{field}")
            errors += validate_at_most_100_percent(spec[field], f"spec.{field}")
    errors += validate_selector(spec.get("selector"), "spec.selector", allow_invalid_values=tolerant)
    policy = spec.get("unhealthyPodEvictionPolicy")
    if policy is not None and policy not in EVICTION_POLICIES:
        errors.append(not_supported("spec.unhealthyPodEvictionPolicy", policy, EVICTION_POLICIES))
    return errors


strategy = PodDisruptionBudgetStrategy()
