"""Match of claims and volumes, as the persistent volume controller finds a volume for a claim."""

from __future__ import annotations

from collections.abc import Iterable

from kubist.model.meta.object import Object
from kubist.model.meta.quantity import parse_quantity
from kubist.model.meta.selectors import label_selector


def size_of(claim: Object) -> int:
    """Requested size, in units of 10⁻⁹ bytes."""
    return parse_quantity(claim["spec"]["resources"]["requests"]["storage"]).nanos


def capacity_of(volume: Object) -> int:
    return parse_quantity((volume["spec"].get("capacity") or {}).get("storage", "0")).nanos


def is_reserved_for(volume: Object, claim: Object) -> bool:
    """Whether a volume names a claim. Without a UID it was reserved before the claim existed."""
    reference = volume["spec"].get("claimRef") or {}
    metadata = claim["metadata"]
    place = (reference.get("namespace"), reference.get("name"))
    return place == (metadata["namespace"], metadata["name"]) and reference.get("uid") in (
        None,
        "",
        metadata["uid"],
    )


def mismatch(volume: Object, claim: Object) -> str:
    """Reason for which a volume cannot be bound to a claim, in the words of the reference. Empty if there is none."""
    spec, wanted, name = volume["spec"], claim["spec"], volume["metadata"]["name"]
    if "deletionTimestamp" in volume["metadata"]:
        return f'the volume is marked for deletion "{name}"'
    if capacity_of(volume) < size_of(claim):
        return "requested PV is too small"
    for part in ("storageClassName", "volumeAttributesClassName"):
        if (spec.get(part) or "") != (wanted.get(part) or ""):
            return f"{part} does not match"
    if spec.get("volumeMode", "Filesystem") != wanted.get("volumeMode", "Filesystem"):
        return "incompatible volumeMode"
    if not set(wanted.get("accessModes") or ()) <= set(spec.get("accessModes") or ()):
        return "incompatible accessMode"
    return ""


def suits(volume: Object, claim: Object) -> bool:
    """Whether a volume has the class, mode, access modes, labels and size that a claim asks for."""
    selector = claim["spec"].get("selector")
    return not mismatch(volume, claim) and (
        selector is None or label_selector(selector).matches(volume["metadata"].get("labels"))
    )


def best_volume(volumes: Iterable[Object], claim: Object) -> Object | None:
    """Volume that is reserved for the claim, or else the smallest free one that suits."""
    found: Object | None = None
    for volume in volumes:
        if is_reserved_for(volume, claim):
            return volume
        if volume["spec"].get("claimRef") or not suits(volume, claim):
            continue
        if found is None or capacity_of(volume) < capacity_of(found):
            found = volume
    return found
