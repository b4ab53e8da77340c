"""StorageObjectInUseProtection: adds the finalizer that protects volumes, claims and volume attributes classes in
use."""

from __future__ import annotations

from kubist.api.admission.plugin import CREATE, Plugin
from kubist.api.resources.context import Context
from kubist.model.meta.object import Object

FINALIZERS = {
    "persistentvolumes": "kubernetes.io/pv-protection",
    "persistentvolumeclaims": "kubernetes.io/pvc-protection",
    "volumeattributesclasses": "kubernetes.io/vac-protection",
}


class StorageObjectInUseProtection(Plugin):
    resources = ("persistentvolumes", "persistentvolumeclaims", "volumeattributesclasses.storage.k8s.io")
    operations = (CREATE,)

    def admit(self, ctx: Context, new: Object | None, old: Object | None) -> None:
        assert new is not None
        finalizers = new["metadata"].get("finalizers") or []
        finalizer = FINALIZERS[ctx.resource.resource]
        if finalizer not in finalizers:
            new["metadata"]["finalizers"] = [*finalizers, finalizer]
