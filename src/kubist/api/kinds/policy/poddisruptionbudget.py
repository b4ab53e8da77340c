"""PodDisruptionBudget: limits how many of the selected pods may be disrupted at once."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, ClassVar

from kubist.api.kinds.shared.values import (
    nonnegative_fields,
    validate_at_most_100_percent,
    validate_int_or_percent,
)
from kubist.api.resources.strategy import Errors, Status, Strategy, Subresource
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
    metadata_rules = ()

    def validate(self, ctx: Context, new: Object, old: Object) -> Errors:
        status = new.get("status") or {}
        errors = validate_conditions(status.get("conditions"), "status.conditions")
        return errors + nonnegative_fields(status, "status", COUNTS)


class PodDisruptionBudgetStrategy(Strategy):
    unconditional_update = False
    lenient_metadata = True
    generation_fields = ("spec",)
    reset_fields = ("status",)
    first_status: ClassVar = dict.fromkeys(COUNTS, 0)
    metadata_rules = ()
    subresources: Mapping[str, Subresource] = {"status": PodDisruptionBudgetStatus()}

    def default(self, obj: Object) -> None:
        obj.setdefault("spec", {})

    def validate(self, ctx: Context, new: Object, old: Object | None) -> Errors:
        tolerant = old is not None and bool(validate_selector(old["spec"].get("selector"), ""))
        return _validate_spec(new["spec"], tolerant=tolerant)


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
