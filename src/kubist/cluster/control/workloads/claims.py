"""PersistentVolumeClaims of StatefulSets: claims from templates, and owners by the retention policy."""

from __future__ import annotations

import copy

from kubist.cluster.control.workloads.pods import owner_reference
from kubist.cluster.control.workloads.statefulplan import ordinal, ordinals
from kubist.model.meta.object import Object

RETAIN = "Retain"


def claims_of(owner: Object, index: int) -> dict[str, Object]:
    """Claims of a pod by the name of their volume."""
    labels = owner["spec"]["selector"].get("matchLabels") or {}
    claims = {}
    for template in owner["spec"].get("volumeClaimTemplates") or ():
        kept = template["metadata"]
        metadata: Object = {"name": f"{kept['name']}-{owner['metadata']['name']}-{index}"}
        metadata["labels"] = {**(kept.get("labels") or {}), **labels}
        if kept.get("annotations"):
            metadata["annotations"] = dict(kept["annotations"])
        claims[kept["name"]] = {"metadata": metadata, "spec": copy.deepcopy(template["spec"])}
    return claims


def add_volumes(pod: Object, claims: dict[str, Object]) -> None:
    """Adds the claims to a new pod as volumes. They replace volumes of the same name."""
    if not claims:
        return
    volumes = [
        {"name": name, "persistentVolumeClaim": {"claimName": claim["metadata"]["name"]}}
        for name, claim in claims.items()
    ]
    kept = [volume for volume in pod["spec"].get("volumes") or () if volume["name"] not in claims]
    pod["spec"]["volumes"] = [*volumes, *kept]


def policy_of(owner: Object) -> tuple[str, str]:
    """whenDeleted and whenScaled of the retention policy."""
    policy = owner["spec"].get("persistentVolumeClaimRetentionPolicy") or {}
    return policy.get("whenDeleted", RETAIN), policy.get("whenScaled", RETAIN)


def is_stale(claim: Object, owner: Object, pod_name: str) -> bool:
    """Whether a claim waits for its deletion with an earlier pod of this name. A new pod must wait for it."""
    return policy_of(owner)[1] != RETAIN and any(
        reference.get("kind") == "Pod" and reference.get("name") == pod_name
        for reference in claim["metadata"].get("ownerReferences") or ()
    )


def wanted_owners(claim: Object, owner: Object, pod: Object) -> list[Object] | None:
    """ownerReferences of a claim by the retention policy. None if they must not change: the claim still belongs to an
    earlier set or pod of the same name."""
    held = claim["metadata"].get("ownerReferences") or []
    ours = [reference for reference in held if _names(reference, owner) or _names(reference, pod)]
    uids = (owner["metadata"]["uid"], pod["metadata"]["uid"])
    if any(reference.get("uid") not in uids for reference in ours):
        return None
    others = [reference for reference in held if reference not in ours]
    if has_other_controller(claim, owner, pod):
        return others
    when_deleted, when_scaled = policy_of(owner)
    is_surplus = ordinal(owner, pod) not in ordinals(owner)
    if when_scaled != RETAIN and is_surplus:
        return [*others, owner_reference(pod)]
    if when_deleted != RETAIN:
        return [*others, owner_reference(owner)]
    return others


def has_other_controller(claim: Object, owner: Object, pod: Object) -> bool:
    """Whether another controller owns a claim that the retention policy would delete."""
    if policy_of(owner) == (RETAIN, RETAIN):
        return False
    return any(
        reference.get("controller") and not _names(reference, owner) and not _names(reference, pod)
        for reference in claim["metadata"].get("ownerReferences") or ()
    )


def _names(reference: Object, obj: Object) -> bool:
    return (reference.get("apiVersion"), reference.get("kind"), reference.get("name")) == (
        obj["apiVersion"],
        obj["kind"],
        obj["metadata"]["name"],
    )
