"""Binds claims to volumes, and provisions simulated volumes, so that clients waiting for storage proceed. The volumes
hold no data."""

from __future__ import annotations

from collections.abc import Iterable
from typing import NamedTuple

from kubist.cluster.control.loop import Loop, entry_of
from kubist.cluster.control.staging import governs, listen
from kubist.cluster.control.workloads import pods as of_pods
from kubist.model.meta.object import Object
from kubist.model.meta.quantity import parse_quantity
from kubist.model.meta.selectors import label_selector
from kubist.model.meta.status import APIError
from kubist.storage.cache.cache import Change

PREFIX = "pv.kubernetes.io/"
PROVISIONED = f"{PREFIX}provisioned-by"
COMPLETED = f"{PREFIX}bind-completed"
BY_CONTROLLER = f"{PREFIX}bound-by-controller"
PROVISIONER = "kubist.io/simulated"
SELECTED_NODE = "volume.kubernetes.io/selected-node"
NO_PROVISIONER = "kubernetes.io/no-provisioner"
RESYNC_SECONDS = 15.0
"""Seconds until a claim whose volume cannot be bound is tried again."""


class Claim(NamedTuple):
    namespace: str
    name: str


class Volumes(Loop):
    """Key in the queue: a claim, or the name of a volume."""

    name = "simulated-volumes"
    component = "persistentvolume-controller"

    def follow(self) -> None:
        listen(self.client, self)
        self.watch("persistentvolumeclaims", self._claim_changed)
        self.watch("persistentvolumes", self._volume_changed)

    def stages_changed(self) -> None:
        """Queues the unbound claims again, because Stages may now drive different ones."""
        self._look_at_unbound()

    def _look_at_unbound(self) -> None:
        for claim in self.client.collection("persistentvolumeclaims").entries.values():
            if b'"phase":"Bound"' not in claim.tail:
                self.queue.add(Claim(claim.namespace, claim.name))

    def _claim_changed(self, change: Change) -> None:
        entry = entry_of(change)
        self.queue.add(Claim(entry.namespace, entry.name))
        if change.new is None:
            volume = self.client.parsed(entry)["spec"].get("volumeName")
            if volume:
                self.queue.add(volume)

    def _volume_changed(self, change: Change) -> None:
        entry = entry_of(change)
        self.queue.add(entry.name)
        if change.old is None:
            self._look_at_unbound()
        elif change.new is None:
            reference = self.client.parsed(entry)["spec"].get("claimRef") or {}
            if reference.get("name"):
                self.queue.add(Claim(reference.get("namespace", ""), reference["name"]))

    async def reconcile(self, key: Claim | str) -> None:
        if isinstance(key, str):
            await self._keep_volume(key)
            return
        claim = self.client.get("persistentvolumeclaims", key.name, key.namespace)
        if claim is None or "deletionTimestamp" in claim["metadata"]:
            return
        if governs(self.client, "persistentvolumeclaims", claim):
            return
        if COMPLETED in (claim["metadata"].get("annotations") or {}):
            await self._keep_claim(claim)
        else:
            await self._serve(claim)

    async def _serve(self, claim: Object) -> None:
        """Binds a claim to the volume that it names, to one that suits, or to a new one."""
        spec = claim["spec"]
        if name := spec.get("volumeName"):
            named = self.client.get("persistentvolumes", name)
            if named is not None:
                await self._bind_named(claim, named)
            return
        storage_class = self._storage_class(claim)
        waits = storage_class.get("volumeBindingMode") == "WaitForFirstConsumer"
        if waits and SELECTED_NODE not in (claim["metadata"].get("annotations") or {}):
            text = "waiting for first consumer to be created before binding"
            self.events.emit(claim, "Normal", "WaitForFirstConsumer", text)
            return
        volume = best_volume(self.client.list("persistentvolumes"), claim)
        if volume is not None:
            await self._bind(claim, volume)
        elif spec.get("storageClassName") == "":
            text = "no persistent volumes available for this claim and no storage class is set"
            self.events.emit(claim, "Normal", "FailedBinding", text)
        elif storage_class.get("provisioner") == NO_PROVISIONER:
            text = (
                "Waiting for a volume to be created either by the external provisioner "
                f"'{NO_PROVISIONER}' or manually by the system administrator. If volume creation is delayed, "
                "please verify that the provisioner is running and correctly registered."
            )
            self.events.emit(claim, "Normal", "ExternalProvisioning", text)
        else:
            await self._bind(claim, await self._provision(claim))

    async def _bind_named(self, claim: Object, volume: Object) -> None:
        """Binds a claim to the volume that it names. If the volume has another claim, or does not satisfy this one, the
        claim is tried again later."""
        name, metadata = volume["metadata"]["name"], claim["metadata"]
        is_free = not volume["spec"].get("claimRef")
        if is_free and (why := mismatch(volume, claim)):
            text = f'Cannot bind to requested volume "{name}": {why}'
            self.events.emit(claim, "Warning", "VolumeMismatch", text)
        elif not is_free and not _is_reserved_for(volume, claim):
            text = f'volume "{name}" already bound to a different claim.'
            self.events.emit(claim, "Warning", "FailedBinding", text)
        else:
            await self._bind(claim, volume)
            return
        self.queue.add_after(Claim(metadata["namespace"], metadata["name"]), RESYNC_SECONDS)

    def _storage_class(self, claim: Object) -> Object:
        name = claim["spec"].get("storageClassName")
        return (self.client.get("storageclasses", name, group="storage.k8s.io") if name else None) or {}

    async def _bind(self, claim: Object, volume: Object) -> None:
        """Binds both sides, first the volume. Another claim may have taken the volume meanwhile."""
        metadata, name = claim["metadata"], volume["metadata"]["name"]
        is_chosen = not claim["spec"].get("volumeName")

        def take(current: Object) -> Object | None:
            reference = current["spec"].get("claimRef")
            if reference and not _is_reserved_for(current, claim):
                return None
            if not reference:
                current["metadata"].setdefault("annotations", {})[BY_CONTROLLER] = "yes"
            current["spec"]["claimRef"] = {**(reference or {}), **_reference(claim)}
            return current

        def use(current: Object) -> Object:
            annotations = current["metadata"].setdefault("annotations", {})
            annotations[COMPLETED] = "yes"
            if is_chosen:
                annotations[BY_CONTROLLER] = "yes"
            current["spec"]["volumeName"] = name
            return current

        def bound(current: Object) -> Object:
            spec = volume["spec"]
            current["status"] |= {
                "phase": "Bound",
                "accessModes": spec.get("accessModes") or [],
                "capacity": dict(spec.get("capacity") or {}),
            }
            return current

        where = (metadata["name"], metadata["namespace"])
        await self.client.update("persistentvolumes", name, "", take)
        taken = self.client.get("persistentvolumes", name)
        if taken is None or not _is_reserved_for(taken, claim):
            self.queue.add(Claim(metadata["namespace"], metadata["name"]))
            return
        await self._set_phase(name, "Bound")
        await self.client.update("persistentvolumeclaims", *where, use)
        await self.client.update("persistentvolumeclaims", *where, bound, subresource="status")

    async def _provision(self, claim: Object) -> Object:
        """Creates a simulated volume for a claim."""
        metadata, spec = claim["metadata"], claim["spec"]
        storage_class = self._storage_class(claim)
        volume = f"pvc-{metadata['uid']}"
        new: Object = {
            "metadata": {"name": volume, "annotations": {PROVISIONED: PROVISIONER}},
            "spec": {
                "accessModes": spec.get("accessModes") or ["ReadWriteOnce"],
                "capacity": {"storage": spec["resources"]["requests"]["storage"]},
                "persistentVolumeReclaimPolicy": storage_class.get("reclaimPolicy", "Delete"),
                "volumeMode": spec.get("volumeMode", "Filesystem"),
                "hostPath": {"path": f"/simulated/{volume}"},
                "claimRef": _reference(claim),
            },
        }
        for part in ("storageClassName", "volumeAttributesClassName"):
            if spec.get(part):
                new["spec"][part] = spec[part]
        try:
            made = await self.client.create("persistentvolumes", new)
        except APIError as error:
            stored = self.client.get("persistentvolumes", volume)
            if error.reason != "AlreadyExists" or stored is None:
                raise
            return stored
        text = f"Successfully provisioned volume {volume}"
        self.events.emit(claim, "Normal", "ProvisioningSucceeded", text)
        return made

    async def _keep_claim(self, claim: Object) -> None:
        """Reports a bound claim whose volume is gone, and lets simulated volumes grow with their claims."""
        metadata, name = claim["metadata"], claim["spec"].get("volumeName", "")
        where = (metadata["name"], metadata["namespace"])
        volume = self.client.get("persistentvolumes", name)
        if volume is None:

            def lost(current: Object) -> Object:
                current["status"]["phase"] = "Lost"
                return current

            if claim["status"].get("phase") != "Lost":
                text = "Bound claim has lost its PersistentVolume. Data on the volume is lost!"
                self.events.emit(claim, "Warning", "ClaimLost", text)
            await self.client.update("persistentvolumeclaims", *where, lost, subresource="status")
            return
        if claim["status"].get("phase") != "Bound":
            if not volume["spec"].get("claimRef") or _is_reserved_for(volume, claim):
                await self._bind(claim, volume)
            return
        if not _is_simulated(volume) or _capacity_of(volume) >= _size_of(claim):
            return
        size = {"storage": claim["spec"]["resources"]["requests"]["storage"]}

        def grow(current: Object) -> Object:
            current["spec"]["capacity"] = size
            return current

        def grown(current: Object) -> Object:
            current["status"]["capacity"] = size
            return current

        await self.client.update("persistentvolumes", name, "", grow)
        await self.client.update("persistentvolumeclaims", *where, grown, subresource="status")

    async def _keep_volume(self, name: str) -> None:
        """Sets the phase of a volume. A simulated volume is deleted after its claim if its policy is Delete."""
        volume = self.client.get("persistentvolumes", name)
        if volume is None or "deletionTimestamp" in volume["metadata"]:
            return
        reference = volume["spec"].get("claimRef")
        if not reference or not reference.get("uid"):
            await self._set_phase(name, "Available")
            return
        claim = self.client.get("persistentvolumeclaims", reference["name"], reference.get("namespace", ""))
        if claim is not None and claim["metadata"]["uid"] == reference["uid"]:
            return
        await self._set_phase(name, "Released")
        if _is_simulated(volume) and volume["spec"].get("persistentVolumeReclaimPolicy") == "Delete":
            await of_pods.delete(self.client, volume, "persistentvolumes")

    async def _set_phase(self, volume: str, phase: str) -> None:
        def edit(current: Object) -> Object:
            current["status"] = {**(current.get("status") or {}), "phase": phase}
            return current

        await self.client.update("persistentvolumes", volume, "", edit, subresource="status")


def _is_simulated(volume: Object) -> bool:
    return (volume["metadata"].get("annotations") or {}).get(PROVISIONED) == PROVISIONER


def _reference(claim: Object) -> Object:
    metadata = claim["metadata"]
    return {
        "apiVersion": "v1",
        "kind": "PersistentVolumeClaim",
        "namespace": metadata["namespace"],
        "name": metadata["name"],
        "uid": metadata["uid"],
    }


# Matching of claims and volumes, as in the persistent volume controller


def _size_of(claim: Object) -> int:
    """Requested size, in units of 10⁻⁹ bytes."""
    return parse_quantity(claim["spec"]["resources"]["requests"]["storage"]).nanos


def _capacity_of(volume: Object) -> int:
    return parse_quantity((volume["spec"].get("capacity") or {}).get("storage", "0")).nanos


def _is_reserved_for(volume: Object, claim: Object) -> bool:
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
    """Reason why a volume cannot be bound to a claim, in the words of the reference. Empty if there is none."""
    spec, claim_spec, name = volume["spec"], claim["spec"], volume["metadata"]["name"]
    if "deletionTimestamp" in volume["metadata"]:
        return f'the volume is marked for deletion "{name}"'
    if _capacity_of(volume) < _size_of(claim):
        return "requested PV is too small"
    for part in ("storageClassName", "volumeAttributesClassName"):
        if (spec.get(part) or "") != (claim_spec.get(part) or ""):
            return f"{part} does not match"
    if spec.get("volumeMode", "Filesystem") != claim_spec.get("volumeMode", "Filesystem"):
        return "incompatible volumeMode"
    if not set(claim_spec.get("accessModes") or ()) <= set(spec.get("accessModes") or ()):
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
    best: Object | None = None
    for volume in volumes:
        if _is_reserved_for(volume, claim):
            return volume
        if volume["spec"].get("claimRef") or not suits(volume, claim):
            continue
        if best is None or _capacity_of(volume) < _capacity_of(best):
            best = volume
    return best
