"""CSIStorageCapacity: free capacity of a storage class in a part of the cluster."""

from __future__ import annotations

from collections.abc import Iterable

from kubist.api.kinds.shared.nodelabels import selector_warnings
from kubist.api.kinds.shared.update import immutable
from kubist.api.resources.context import Context
from kubist.api.resources.strategy import Errors, Strategy
from kubist.model.meta import fields, names, objectmeta
from kubist.model.meta.labels import validate_selector
from kubist.model.meta.object import Object
from kubist.model.meta.quantity import parse_quantity


class CSIStorageCapacityStrategy(Strategy):
    unconditional_update = False

    def validate_create(self, ctx: Context, obj: Object) -> Errors:
        return _validate(obj, allow_invalid_values=False)

    def validate_update(self, ctx: Context, new: Object, old: Object) -> Errors:
        errors = objectmeta.validate_create(
            new["metadata"], namespaced=True, validate_name=self.validate_name
        )
        errors += _validate(new, allow_invalid_values=bool(validate_selector(old.get("nodeTopology"), "")))
        errors += objectmeta.validate_update(new["metadata"], old["metadata"])
        for name in ("nodeTopology", "storageClassName"):
            errors += immutable(
                new.get(name), old.get(name), name, "string" if name == "storageClassName" else "nullable"
            )
        return errors

    def warnings_on_create(self, ctx: Context, obj: Object) -> Iterable[str]:
        return selector_warnings(obj.get("nodeTopology"), "nodeTopology")

    def warnings_on_update(self, ctx: Context, new: Object, old: Object) -> Iterable[str]:
        return self.warnings_on_create(ctx, new)


def _validate(obj: Object, *, allow_invalid_values: bool) -> Errors:
    errors = validate_selector(
        obj.get("nodeTopology"), "nodeTopology", allow_invalid_values=allow_invalid_values
    )
    name = obj.get("storageClassName", "")
    errors += [fields.invalid("storageClassName", name, message) for message in names.dns_subdomain(name)]
    capacity = obj.get("capacity")
    if capacity is not None and parse_quantity(capacity).nanos < 0:
        errors.append(fields.invalid("capacity", capacity, "must be greater than or equal to 0"))
    return errors


strategy = CSIStorageCapacityStrategy()
