"""Rules shared by FlowSchema and PriorityLevelConfiguration."""

from __future__ import annotations

from typing import ClassVar

from kubist.api.kinds.shared.update import StatusOnly
from kubist.api.resources.context import Context
from kubist.api.resources.strategy import Errors, Strategy
from kubist.model.meta import fields
from kubist.model.meta.object import Object


def validate_conditions(status: Object) -> Errors:
    errors: Errors = []
    seen = set()
    for index, condition in enumerate(status.get("conditions") or ()):
        kind = condition.get("type", "")
        if kind in seen:
            errors.append(fields.duplicate(f"status.conditions[{index}].type", kind))
        seen.add(kind)
        if not kind:
            errors.append(fields.required(f"status.conditions[{index}].type"))
    return errors


class FlowControlStatus(StatusOnly):
    metadata_rules = ()

    def validate(self, ctx: Context, new: Object, old: Object) -> Errors:
        return validate_conditions(new.get("status") or {})


class FlowControlStrategy(Strategy):
    generation_fields = ("spec",)
    reset_fields = ("status",)
    first_status: ClassVar = {}
    metadata_rules = ("object",)
