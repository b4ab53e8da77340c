"""CSIStorageCapacity: free capacity of a storage class in a part of the cluster."""

from __future__ import annotations

from collections.abc import Iterable

from kubist.api.kinds.shared.node_labels import selector_warnings
from kubist.api.kinds.shared.update import immutable
from kubist.api.resources.context import Context
from kubist.api.resources.strategy import Errors, Strategy
from kubist.model.meta import fields, names, objectmeta
from kubist.model.meta.labels import validate_selector
from kubist.model.meta.object import Object
from kubist.model.meta.quantity import parse_quantity


class CSIStorageCapacityStrategy(Strategy):
    unconditional_update = False
    metadata_rules = ("object",)

    def validate(self, ctx: Context, new: Object, old: Object | None) -> Errors:
        if old is None:
            return _validate(new, allow_invalid_values=False)
        errors = _validate(new, allow_invalid_values=bool(validate_selector(old.get("nodeTopology"), "")))
        errors += objectmeta.validate_update(new["metadata"], old["metadata"])
        for name, type in (("nodeTopology", "nullable"), ("storageClassName", "string")):
            errors += immutable(new.get(name), old.get(name), name, type)
        return errors

    def warnings(self, ctx: Context, new: Object, old: Object | None) -> Iterable[str]:
        return selector_warnings(new.get("nodeTopology"), "nodeTopology")


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
