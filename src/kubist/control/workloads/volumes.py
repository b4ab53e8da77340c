"""Binds claims to simulated volumes, so that clients that wait for storage continue. The volumes hold no data."""

from __future__ import annotations

from kubist.control.loop import Loop
from kubist.meta.object import Object
from kubist.meta.status import APIError
from kubist.storage.cache import Change

PROVISIONED = "pv.kubernetes.io/provisioned-by"
PROVISIONER = "kubist.io/simulated"
SELECTED_NODE = "volume.kubernetes.io/selected-node"


class Volumes(Loop):
    name = "simulated-volumes"

    def follow(self) -> None:
        self.watch("persistentvolumeclaims", self._claim_changed)

    def _claim_changed(self, change: Change) -> None:
        if change.new is not None:
            self.enqueue(change)
        elif change.old is not None:
            self.queue.add((change.old.namespace, change.old.name))

    async def reconcile(self, key: tuple[str, str]) -> None:
        namespace, name = key
        claim = self.client.get("persistentvolumeclaims", name, namespace)
        if claim is None:
            await self._release(namespace, name)
            return
        is_pending = "deletionTimestamp" not in claim["metadata"] and claim["status"].get("phase") != "Bound"
        if is_pending and not self._waits(claim):
            await self._bind(claim)

    def _waits(self, claim: Object) -> bool:
        """Whether the scheduler has not chosen a node yet, for which a claim is bound."""
        spec, annotations = claim["spec"], claim["metadata"].get("annotations") or {}
        if spec.get("volumeName") or SELECTED_NODE in annotations or not spec.get("storageClassName"):
            return False
        held = self.client.get("storageclasses", spec["storageClassName"], group="storage.k8s.io") or {}
        return held.get("volumeBindingMode") == "WaitForFirstConsumer"

    async def _bind(self, claim: Object) -> None:
        metadata, spec = claim["metadata"], claim["spec"]
        volume = spec.get("volumeName") or f"pvc-{metadata['uid']}"
        size = spec["resources"]["requests"]["storage"]
        if self.client.get("persistentvolumes", volume) is None:
            await self._provision(claim, volume, size)

        def set_volume_name(held: Object) -> Object:
            held["spec"]["volumeName"] = volume
            return held

        def bound(held: Object) -> Object:
            held["status"] |= {
                "phase": "Bound",
                "accessModes": spec.get("accessModes") or [],
                "capacity": {"storage": size},
            }
            return held

        def used(held: Object) -> Object:
            held["status"] = {**(held.get("status") or {}), "phase": "Bound"}
            return held

        where = (metadata["name"], metadata["namespace"])
        await self.client.update("persistentvolumeclaims", *where, set_volume_name)
        await self.client.update("persistentvolumes", volume, "", used, subresource="status")
        await self.client.update("persistentvolumeclaims", *where, bound, subresource="status")

    async def _provision(self, claim: Object, volume: str, size: str) -> None:
        metadata, spec = claim["metadata"], claim["spec"]
        new: Object = {
            "metadata": {"name": volume, "annotations": {PROVISIONED: PROVISIONER}},
            "spec": {
                "accessModes": spec.get("accessModes") or ["ReadWriteOnce"],
                "capacity": {"storage": size},
                "persistentVolumeReclaimPolicy": "Delete",
                "volumeMode": spec.get("volumeMode", "Filesystem"),
                "hostPath": {"path": f"/simulated/{volume}"},
                "claimRef": {
                    "apiVersion": "v1",
                    "kind": "PersistentVolumeClaim",
                    "namespace": metadata["namespace"],
                    "name": metadata["name"],
                    "uid": metadata["uid"],
                },
            },
        }
        if spec.get("storageClassName"):
            new["spec"]["storageClassName"] = spec["storageClassName"]
        await self.client.create("persistentvolumes", new)

    async def _release(self, namespace: str, name: str) -> None:
        """Deletes simulated volumes after their claim."""
        for volume in list(self.client.list("persistentvolumes")):
            reference = volume["spec"].get("claimRef") or {}
            made = (volume["metadata"].get("annotations") or {}).get(PROVISIONED) == PROVISIONER
            if made and (reference.get("namespace"), reference.get("name")) == (namespace, name):
                await self._remove(volume["metadata"]["name"])

    async def _remove(self, volume: str) -> None:
        def released(held: Object) -> Object:
            held["status"] = {**(held.get("status") or {}), "phase": "Released"}
            return held

        await self.client.update("persistentvolumes", volume, "", released, subresource="status")
        try:
            await self.client.delete("persistentvolumes", volume)
        except APIError as error:
            if error.code != 404:
                raise
