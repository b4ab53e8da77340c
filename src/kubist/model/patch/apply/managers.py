"""managedFields entries: decoding to `Managed`, and encoding in their order."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any, NamedTuple

import orjson

from kubist.model.patch.apply import fieldsv1
from kubist.model.patch.apply.sets import Set, difference, dotted, union_all

MAX_UPDATE_MANAGERS = 10

NEVER_OWNED = dotted(
    "apiVersion",
    "kind",
    "metadata",
    "metadata.name",
    "metadata.namespace",
    "metadata.creationTimestamp",
    "metadata.selfLink",
    "metadata.uid",
    "metadata.clusterName",
    "metadata.generation",
    "metadata.managedFields",
    "metadata.resourceVersion",
)


class Identity(NamedTuple):
    """Identity of a field manager: manager, operation and subresource; for updates also the apiVersion."""

    manager: str
    operation: str
    api_version: str
    subresource: str

    @property
    def text(self) -> str:
        """JSON form. The last sort criterion for managers."""
        parts = {
            "manager": self.manager,
            "operation": self.operation,
            "apiVersion": self.api_version,
            "subresource": self.subresource,
        }
        return orjson.dumps({name: part for name, part in parts.items() if part}).decode()


def applier(manager: str, subresource: str) -> Identity:
    return Identity(manager or "unknown", "Apply", "", subresource)


def updater(manager: str, api_version: str, subresource: str) -> Identity:
    return Identity(manager or "unknown", "Update", api_version, subresource)


class Owned(NamedTuple):
    """Field set of a manager, in the version in which the manager wrote."""

    api_version: str
    fields: Set
    time: str = ""


Managed = dict[Identity, Owned]


def decode(entries: Any, *, trusted: bool) -> Managed:
    """Parsed entries. ValueError if an entry is invalid. `trusted`: the server wrote them, so field sets need
    no parsing."""
    managed: Managed = {}
    for index, entry in enumerate(entries or ()):
        operation = entry.get("operation")
        if operation not in ("Apply", "Update"):
            raise ValueError("operation must be `Apply` or `Update`")
        api_version = entry.get("apiVersion")
        if not api_version:
            raise ValueError("apiVersion must not be empty")
        if (fields_type := entry.get("fieldsType")) != "FieldsV1":
            what = f'invalid fieldsType "{fields_type}"' if fields_type else "missing fieldsType"
            raise ValueError(f"{what} in managed fields entry {index}")
        raw = entry.get("fieldsV1")
        if raw is None:
            raw = {}
        identity = Identity(
            entry.get("manager") or "",
            operation,
            api_version if operation == "Update" else "",
            entry.get("subresource") or "",
        )
        fields = raw if trusted else fieldsv1.parse(raw)
        managed[identity] = Owned(api_version, fields, entry.get("time") or "")
    return managed


def encode(managed: Managed) -> list[dict[str, Any]]:
    """Entries sorted by operation, time, manager, version and subresource."""
    items = managed.items() if len(managed) == 1 else sorted(managed.items(), key=_order)
    return [_entry(identity, owned) for identity, owned in items]


def _order(item: tuple[Identity, Owned]) -> tuple[str, ...]:
    (manager, operation, _, subresource), (api_version, _, time) = item
    return operation, time, manager, api_version, subresource


def _entry(identity: Identity, owned: Owned) -> dict[str, Any]:
    manager, operation, _, subresource = identity
    api_version, fields, time = owned
    entry: dict[str, Any] = {}
    if manager:
        entry["manager"] = manager
    entry["operation"] = operation
    entry["apiVersion"] = api_version
    if time:
        entry["time"] = time
    entry["fieldsType"] = "FieldsV1"
    entry["fieldsV1"] = fields
    if subresource:
        entry["subresource"] = subresource
    return entry


def is_reset(entries: Any) -> bool:
    """Whether the entries reset all owners: an empty list, or a list with one empty entry. An entry with
    fieldsV1, even an empty one, is not empty."""
    if not isinstance(entries, list):
        return False
    if len(entries) != 1:
        return not entries
    return not any(entries[0].values()) and entries[0].get("fieldsV1") is None


def validate(entries: Any) -> str:
    """Validation error of entries that admission changed. Empty if they are valid."""
    try:
        decode(entries, trusted=False)
    except ValueError as bad:
        return str(bad)
    return ""


def tracked(fields: Set) -> Set:
    return difference(fields, NEVER_OWNED)


def cap_updaters(managed: Managed) -> None:
    """Merges the oldest updaters of a version into `ancient-changes` until at most MAX_UPDATE_MANAGERS updaters
    are left."""
    if len(managed) <= MAX_UPDATE_MANAGERS:
        return
    updaters = [item for item in managed.items() if item[0].operation == "Update"]
    excess = len(updaters) - MAX_UPDATE_MANAGERS
    if excess <= 0:
        return
    updaters.sort(key=lambda item: (item[1].time, item[0].text))
    first: dict[str, Identity] = {}
    merged: dict[Identity, list[Owned]] = {}
    for identity, owned in updaters:
        if excess <= 0:
            break
        version = owned.api_version
        if version not in first:
            first[version] = identity
            continue
        bucket = updater("ancient-changes", version, "")
        if bucket not in managed:
            managed[bucket] = managed.pop(first[version])
        parts = merged.setdefault(bucket, [managed[bucket]])
        parts.append(owned)
        if identity != bucket:
            del managed[identity]
        excess -= 1
    for bucket, parts in merged.items():
        managed[bucket] = parts[-1]._replace(fields=union_all([part.fields for part in parts]))


def differ_only_in_time(old: Iterable[dict[str, Any]], new: Iterable[dict[str, Any]]) -> bool:
    """Whether two lists of entries are equal except for their times."""
    pairs = list(zip(old, new, strict=True))
    return all({**a, "time": None} == {**b, "time": None} for a, b in pairs)
