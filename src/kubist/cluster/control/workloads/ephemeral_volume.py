"""Ephemeral volume controller: claims of pods with ephemeral volumes."""

from __future__ import annotations

import copy

from kubist.cluster.control.loop import Loop
from kubist.cluster.control.workloads.pods import owned, owner_reference
from kubist.model.meta.object import Object
from kubist.model.meta.status import APIError
from kubist.storage.cache.cache import Change


class EphemeralVolumes(Loop):
    name = "ephemeral-volume"
    component = "ephemeral_volume"

    def follow(self) -> None:
        self.watch("pods", self._pod_changed)

    def _pod_changed(self, change: Change) -> None:
        if change.new is not None and change.old is None and b'"ephemeral":{' in change.new.tail:
            self.enqueue(change)

    async def reconcile(self, key: tuple[str, str]) -> None:
        namespace, name = key
        pod = self.client.get("pods", name, namespace)
        if pod is None or "deletionTimestamp" in pod["metadata"]:
            return
        for volume in pod["spec"].get("volumes") or ():
            if "ephemeral" in volume:
                await self._create_claim(pod, volume)

    async def _create_claim(self, pod: Object, volume: Object) -> None:
        metadata = pod["metadata"]
        name = f"{metadata['name']}-{volume['name']}"
        existing_claim = self.client.get("persistentvolumeclaims", name, metadata["namespace"])
        if existing_claim is not None:
            if not owned(existing_claim, pod):
                place = f"{metadata['namespace']}/{name}"
                text = f"PVC {place} was not created for pod {metadata['name']} (pod is not owner)"
                self.events.emit(
                    pod, "Warning", "ProvisioningFailed", f"ephemeral volume {volume['name']}: {text}"
                )
            return
        claim: Object = copy.deepcopy(volume["ephemeral"]["volumeClaimTemplate"])
        claim["metadata"] = {
            part: value
            for part, value in (claim.get("metadata") or {}).items()
            if part in ("labels", "annotations")
        }
        claim["metadata"] |= {"name": name, "ownerReferences": [owner_reference(pod)]}
        try:
            await self.client.create("persistentvolumeclaims", claim, metadata["namespace"])
        except APIError as error:
            text = f"ephemeral volume {volume['name']}: create PVC {name}: {error}"
            self.events.emit(pod, "Warning", "ProvisioningFailed", text)
            raise
