"""PersistentVolumeClaimResize: only a bound claim may grow, and only if its StorageClass allows expansion."""

from __future__ import annotations

from kubist.api.admission.plugin import UPDATE, Plugin, forbidden
from kubist.api.admission.plugins.defaultstorageclass import CLASS_ANNOTATION
from kubist.api.resources.context import Context
from kubist.api.resources.strategy import at
from kubist.model.meta.object import Object
from kubist.model.meta.quantity import Quantity, parse_quantity


class PersistentVolumeClaimResize(Plugin):
    resources = ("persistentvolumeclaims",)
    operations = (UPDATE,)

    def validate(self, ctx: Context, new: Object | None, old: Object | None) -> None:
        assert new is not None and old is not None
        if _size(new) <= _size(old):
            return
        if at(old, "status.phase") != "Bound":
            raise forbidden(ctx, new, "Only bound persistent volume claims can be expanded")
        class_name, old_class_name = _class(new), _class(old)
        storage_class = None
        if class_name and class_name == old_class_name:
            storage_class = ctx.objects.get("storageclasses", class_name, group="storage.k8s.io")
        if storage_class is None or not storage_class.get("allowVolumeExpansion"):
            why = (
                "only dynamically provisioned pvc can be resized and the storageclass that provisions the pvc"
            )
            raise forbidden(ctx, new, f"{why} must support resize")


def _size(claim: Object) -> Quantity:
    return parse_quantity((at(claim, "spec.resources.requests") or {}).get("storage", "0"))


def _class(claim: Object) -> str:
    annotated = (claim["metadata"].get("annotations") or {}).get(CLASS_ANNOTATION)
    return annotated if annotated is not None else at(claim, "spec.storageClassName") or ""
