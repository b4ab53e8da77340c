"""Storage protection: claims that a pod uses and volumes that are bound keep their finalizer.

Admission adds the finalizer. These controllers remove it when the object is being deleted and no longer in
use.
"""

from __future__ import annotations

from kubist.cluster.control.loop import Loop
from kubist.model.meta.object import Object
from kubist.storage.cache.cache import Change


def release(obj: Object, finalizer: str) -> Object:
    """Removes a finalizer from an object."""
    finalizers = [name for name in obj["metadata"].get("finalizers") or () if name != finalizer]
    if finalizers:
        obj["metadata"]["finalizers"] = finalizers
    else:
        obj["metadata"].pop("finalizers", None)
    return obj


class ClaimProtection(Loop):
    name = "persistentvolumeclaim-protection"
    finalizer = "kubernetes.io/pvc-protection"

    def follow(self) -> None:
        self.watch("persistentvolumeclaims", self._claim_changed)
        self.watch("pods", self._pod_changed)

    def _claim_changed(self, change: Change) -> None:
        if change.new is not None and b'"deletionTimestamp":"' in change.new.tail:
            self.enqueue(change)

    def _pod_changed(self, change: Change) -> None:
        """A deleted or finished pod no longer uses its claims."""
        entry = change.old
        if entry is not None and b'"persistentVolumeClaim"' in entry.tail:
            for name in claims_of(entry.object()):
                self.queue.add((entry.namespace, name))

    async def reconcile(self, key: tuple[str, str]) -> None:
        namespace, name = key
        claim = self.client.get("persistentvolumeclaims", name, namespace)
        if claim is None or "deletionTimestamp" not in claim["metadata"]:
            return
        if self.finalizer not in (claim["metadata"].get("finalizers") or ()):
            return
        if not any(
            name in claims_of(pod) and not finished(pod) for pod in self.client.list("pods", namespace)
        ):
            await self.client.update(
                "persistentvolumeclaims", name, namespace, lambda current: release(current, self.finalizer)
            )


class VolumeProtection(Loop):
    name = "persistentvolume-protection"
    finalizer = "kubernetes.io/pv-protection"

    def follow(self) -> None:
        self.watch("persistentvolumes", self._volume_changed)

    def _volume_changed(self, change: Change) -> None:
        if change.new is not None and b'"deletionTimestamp":"' in change.new.tail:
            self.queue.add(change.new.name)

    async def reconcile(self, key: str) -> None:
        volume = self.client.get("persistentvolumes", key)
        if volume is None or "deletionTimestamp" not in volume["metadata"]:
            return
        is_protected = self.finalizer in (volume["metadata"].get("finalizers") or ())
        if is_protected and volume["status"].get("phase") != "Bound":
            await self.client.update("persistentvolumes", key, "", lambda obj: release(obj, self.finalizer))


def claims_of(pod: Object) -> set[str]:
    """Names of the claims that a pod's volumes use, including those of ephemeral volumes."""
    names = set()
    for volume in pod["spec"].get("volumes") or ():
        if "persistentVolumeClaim" in volume:
            names.add(volume["persistentVolumeClaim"].get("claimName", ""))
        elif "ephemeral" in volume:
            names.add(f"{pod['metadata']['name']}-{volume['name']}")
    return names


def finished(pod: Object) -> bool:
    return (pod.get("status") or {}).get("phase") in ("Succeeded", "Failed")
