"""ControllerRevision: immutable snapshot of a DaemonSet's or StatefulSet's state."""

from __future__ import annotations

from typing import TYPE_CHECKING

from kubist.api.kinds.shared.update import immutable
from kubist.api.kinds.shared.values import nonnegative
from kubist.api.resources.strategy import Errors, Strategy
from kubist.model.meta.fields import required
from kubist.model.meta.object import Object

if TYPE_CHECKING:
    from kubist.api.resources.context import Context


class ControllerRevisionStrategy(Strategy):
    metadata_rules = ("update", "object")

    def validate(self, ctx: Context, new: Object, old: Object | None) -> Errors:
        errors = nonnegative(new.get("revision"), "revision")
        data = new.get("data")
        if old is not None:
            errors += immutable(data, old.get("data"), "data")
        elif data is None:
            errors.append(required("data", "data is mandatory"))
        elif not isinstance(data, dict):
            errors.append(required("data", "data must be a valid JSON object"))
        return errors


strategy = ControllerRevisionStrategy()
