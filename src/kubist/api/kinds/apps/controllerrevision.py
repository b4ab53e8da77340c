"""ControllerRevision: immutable snapshot of a DaemonSet's or StatefulSet's state."""

from __future__ import annotations

from typing import TYPE_CHECKING

from kubist.api.kinds.shared.numbers import nonnegative
from kubist.api.kinds.shared.update import immutable
from kubist.api.resources.strategy import Errors, Strategy
from kubist.model.meta import objectmeta
from kubist.model.meta.fields import required
from kubist.model.meta.object import Object

if TYPE_CHECKING:
    from kubist.api.resources.context import Context


class ControllerRevisionStrategy(Strategy):
    def validate_create(self, ctx: Context, obj: Object) -> Errors:
        errors = nonnegative(obj.get("revision"), "revision")
        data = obj.get("data")
        if data is None:
            errors.append(required("data", "data is mandatory"))
        elif not isinstance(data, dict):
            errors.append(required("data", "data must be a valid JSON object"))
        return errors

    def validate_update(self, ctx: Context, new: Object, old: Object) -> Errors:
        errors = objectmeta.validate_update(new["metadata"], old["metadata"])
        errors += objectmeta.validate_create(
            new["metadata"], namespaced=True, validate_name=self.validate_name
        )
        errors += nonnegative(new.get("revision"), "revision")
        return errors + immutable(new.get("data"), old.get("data"), "data")


strategy = ControllerRevisionStrategy()
