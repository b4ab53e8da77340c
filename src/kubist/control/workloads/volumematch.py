"""Match of claims and volumes, as the persistent volume controller finds a volume for a claim."""

from __future__ import annotations

from collections.abc import Iterable

from kubist.meta.object import Object
from kubist.meta.quantity import parse_quantity
from kubist.meta.selectors import label_selector


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


def suits(volume: Object, claim: Object) -> bool:
    """Whether a volume has the class, mode, access modes, labels and size that a claim asks for."""
    spec, wanted = volume["spec"], claim["spec"]
    selector = wanted.get("selector")
    return (
        "deletionTimestamp" not in volume["metadata"]
        and spec.get("storageClassName", "") == wanted.get("storageClassName", "")
        and spec.get("volumeMode", "Filesystem") == wanted.get("volumeMode", "Filesystem")
        and set(wanted.get("accessModes") or ()) <= set(spec.get("accessModes") or ())
        and capacity_of(volume) >= size_of(claim)
        and (selector is None or label_selector(selector).matches(volume["metadata"].get("labels")))
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
