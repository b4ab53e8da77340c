"""Lease: a lock with a holder and an expiry. An update needs a resourceVersion, so that no stale holder overwrites
it."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from kubist.api.resources.strategy import Errors, Strategy
from kubist.model.meta.fields import forbidden, invalid
from kubist.model.meta.object import Object

if TYPE_CHECKING:
    from kubist.api.resources.context import Context

_COORDINATED = ("strategy", "preferredHolder")
"""Fields of coordinated leader election, whose feature gate is off. Dropped unless the stored object has them."""


class LeaseStrategy(Strategy):
    create_on_update = True
    unconditional_update = False
    qualified_finalizers = False

    def prepare(self, ctx: Context, new: Object, old: Object | None) -> None:
        for field in _COORDINATED:
            if old is None or old["spec"].get(field) is None:
                new["spec"].pop(field, None)

    def validate(self, ctx: Context, new: Object, old: Object | None) -> Errors:
        return _validate_spec(new["spec"])


def _validate_spec(spec: dict[str, Any]) -> Errors:
    errors: Errors = []
    duration, transitions = spec.get("leaseDurationSeconds"), spec.get("leaseTransitions")
    if duration is not None and duration <= 0:
        errors.append(invalid("spec.leaseDurationSeconds", duration, "must be greater than 0"))
    if transitions is not None and transitions < 0:
        errors.append(invalid("spec.leaseTransitions", transitions, "must be greater than or equal to 0"))
    if spec.get("preferredHolder") and not spec.get("strategy"):
        detail = "may only be specified if `strategy` is defined"
        errors.append(forbidden("spec.preferredHolder", detail))
    return errors


strategy = LeaseStrategy()
