"""CSINode: CSI drivers of a node. A driver's entry is immutable except for its volume limit."""

from __future__ import annotations

from collections import defaultdict

from kubist.api.kinds.shared.update import immutable
from kubist.api.kinds.shared.values import repeats
from kubist.api.kinds.storage.common import validate_driver_name
from kubist.api.resources.context import Context
from kubist.api.resources.strategy import Errors, Strategy
from kubist.model.meta import fields, names
from kubist.model.meta.object import Object


class CSINodeStrategy(Strategy):
    returns_deleted = True
    unconditional_update = False
    metadata_rules = ("object",)

    def validate(self, ctx: Context, new: Object, old: Object | None) -> Errors:
        errors = _validate_drivers(_drivers(new))
        if old is None:
            return errors
        by_name = defaultdict(list)
        for after in _drivers(new):
            by_name[after.get("name")].append(after)
        for before in _drivers(old):
            for after in by_name[before.get("name")]:
                errors += immutable(_fixed(after), _fixed(before), "spec.drivers", "storage.CSINodeDriver")
        return errors


def _drivers(obj: Object) -> list[Object]:
    return (obj.get("spec") or {}).get("drivers") or []


def _fixed(driver: Object) -> Object:
    return {name: value for name, value in driver.items() if name != "allocatable"}


def _validate_drivers(drivers: list[Object]) -> Errors:
    errors: Errors = []
    seen = set()
    for index, driver in enumerate(drivers):
        path = f"spec.drivers[{index}]"
        name = driver.get("name", "")
        errors += validate_driver_name(name, f"{path}.name")
        node_id = driver.get("nodeID", "")
        if not node_id:
            errors.append(fields.required(f"{path}.nodeID"))
        if len(node_id.encode()) > 256:
            errors.append(fields.invalid(f"{path}.nodeID", node_id, "must be 256 characters or less"))
        count = (driver.get("allocatable") or {}).get("count")
        if count is not None and count < 0:
            why = "must be greater than or equal to 0"
            errors.append(fields.invalid(f"{path}.allocatable.count", count, why))
        if name in seen:
            errors.append(fields.duplicate(f"{path}.name", name))
        seen.add(name)
        errors += _validate_topology_keys(driver.get("topologyKeys") or [], path)
    return errors


def _validate_topology_keys(keys: list[str], path: str) -> Errors:
    """Validates topology keys. The errors name the driver's path, not the key's."""
    errors: Errors = []
    repeated = frozenset(repeats(keys))
    for index, key in enumerate(keys):
        if not key:
            errors.append(fields.required(path))
        if index in repeated:
            errors.append(fields.duplicate(path, key))
        errors += [fields.invalid(path, key, message) for message in names.qualified_name(key)]
    return errors


strategy = CSINodeStrategy()
