"""PriorityClass: named priority of pods."""

from __future__ import annotations

from typing import TYPE_CHECKING

from kubist.api.kinds.shared.update import immutable
from kubist.api.resources.strategy import Errors, Strategy
from kubist.model.meta import status
from kubist.model.meta.fields import forbidden, not_supported, required
from kubist.model.meta.object import Object

if TYPE_CHECKING:
    from kubist.api.resources.context import Context

HIGHEST_USER_PRIORITY = 1_000_000_000
SYSTEM_PREFIX = "system-"
SYSTEM_CLASSES = {"system-node-critical": 2_000_001_000, "system-cluster-critical": 2_000_000_000}
PREEMPTION_POLICIES = ("PreemptLowerPriority", "Never")


class PriorityClassStrategy(Strategy):
    def default(self, obj: Object) -> None:
        obj.setdefault("preemptionPolicy", "PreemptLowerPriority")

    def prepare(self, ctx: Context, new: Object, old: Object | None) -> None:
        if old is None:
            new["metadata"]["generation"] = 1

    def validate(self, ctx: Context, new: Object, old: Object | None) -> Errors:
        value, policy = new.get("value", 0), new.get("preemptionPolicy")
        errors: Errors = []
        if old is not None:
            if value != old.get("value", 0):
                errors.append(forbidden("value", "may not be changed in an update."))
            return errors + immutable(policy, old.get("preemptionPolicy"), "preemptionPolicy")
        name = new["metadata"].get("name", "")
        if name.startswith(SYSTEM_PREFIX):
            if why := _system_class_error(new):
                prefix = (
                    f"priority class names with '{SYSTEM_PREFIX}' prefix are reserved for system use only"
                )
                errors.append(forbidden("metadata.name", f"{prefix}. error: {why}"))
        elif value > HIGHEST_USER_PRIORITY:
            why = f"maximum allowed value of a user defined priority is {HIGHEST_USER_PRIORITY}"
            errors.append(forbidden("value", why))
        if policy == "":
            errors.append(required("preemptionPolicy"))
        elif policy is not None and policy not in PREEMPTION_POLICIES:
            errors.append(not_supported("preemptionPolicy", policy, PREEMPTION_POLICIES))
        return errors

    def before_delete(self, ctx: Context, name: str, propagation: str) -> None:
        if name in SYSTEM_CLASSES:
            why = "this is a system priority class and cannot be deleted"
            raise status.forbidden(ctx.resource.group, ctx.resource.resource, name, why)


def _system_class_error(obj: Object) -> str:
    name = obj["metadata"]["name"]
    expected = SYSTEM_CLASSES.get(name)
    if expected is None:
        return f"{name} is not a known system priority class"
    if obj.get("value", 0) != expected:
        return f"value of {name} PriorityClass must be {expected}"
    if obj.get("globalDefault"):
        return f"globalDefault of {name} PriorityClass must be false"
    return ""


strategy = PriorityClassStrategy()
