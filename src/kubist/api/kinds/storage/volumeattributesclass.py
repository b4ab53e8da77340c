"""VolumeAttributesClass: mutable parameters of a driver's volumes. The class itself is immutable."""

from __future__ import annotations

from kubist.api.kinds.storage.common import validate_parameters, validate_provisioner
from kubist.api.resources.context import Context
from kubist.api.resources.strategy import Errors, Strategy
from kubist.model.meta import fields, objectmeta
from kubist.model.meta.object import Object


class VolumeAttributesClassStrategy(Strategy):
    returns_deleted = True

    def validate_create(self, ctx: Context, obj: Object) -> Errors:
        errors = validate_provisioner(obj.get("driverName", ""), "driverName")
        return errors + validate_parameters(obj.get("parameters"), "parameters", allow_empty=False)

    def validate_update(self, ctx: Context, new: Object, old: Object) -> Errors:
        errors = objectmeta.validate_update(new["metadata"], old["metadata"])
        errors += [
            fields.forbidden(name, f"updates to {name} are forbidden.")
            for name in ("driverName", "parameters")
            if new.get(name) != old.get(name)
        ]
        errors += objectmeta.validate_create(
            new["metadata"], namespaced=False, validate_name=self.validate_name
        )
        return errors + self.validate_create(ctx, new)


strategy = VolumeAttributesClassStrategy()
