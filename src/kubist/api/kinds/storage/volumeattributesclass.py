"""VolumeAttributesClass: mutable parameters of a driver's volumes. The class itself is immutable."""

from __future__ import annotations

from kubist.api.kinds.storage.common import validate_parameters, validate_provisioner
from kubist.api.resources.context import Context
from kubist.api.resources.strategy import Errors, Strategy
from kubist.model.meta import fields, objectmeta
from kubist.model.meta.object import Object


class VolumeAttributesClassStrategy(Strategy):
    returns_deleted = True

    def validate(self, ctx: Context, new: Object, old: Object | None) -> Errors:
        errors: Errors = []
        if old is not None:
            errors += [
                fields.forbidden(name, f"updates to {name} are forbidden.")
                for name in ("driverName", "parameters")
                if new.get(name) != old.get(name)
            ]
            errors += objectmeta.validate_create(
                new["metadata"], namespaced=False, validate_name=self.validate_name
            )
        errors += validate_provisioner(new.get("driverName", ""), "driverName")
        return errors + validate_parameters(new.get("parameters"), "parameters", allow_empty=False)


strategy = VolumeAttributesClassStrategy()
