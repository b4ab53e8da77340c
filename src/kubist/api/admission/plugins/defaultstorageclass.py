"""DefaultStorageClass: sets the default class on a claim without a class."""

from __future__ import annotations

from kubist.api.admission.plugin import CREATE, Plugin
from kubist.api.resources.context import Context
from kubist.model.meta.object import Object

ANNOTATIONS = (
    "storageclass.kubernetes.io/is-default-class",
    "storageclass.beta.kubernetes.io/is-default-class",
)
CLASS_ANNOTATION = "volume.beta.kubernetes.io/storage-class"


class DefaultStorageClass(Plugin):
    resources = ("persistentvolumeclaims",)
    operations = (CREATE,)

    def admit(self, ctx: Context, new: Object | None, old: Object | None) -> None:
        assert new is not None
        spec = new.setdefault("spec", {})
        if spec.get("storageClassName") is not None:
            return
        if CLASS_ANNOTATION in (new["metadata"].get("annotations") or {}):
            return
        name = default_class(ctx, "storageclasses", "storage.k8s.io", ANNOTATIONS)
        if name:
            spec["storageClassName"] = name


def default_class(ctx: Context, resource: str, group: str, annotations: tuple[str, ...]) -> str:
    """Name of the class that an annotation marks as default, the newest one if there are several; "" if there is
    none."""
    marked = []
    for obj in ctx.objects.list(resource, group=group):
        metadata = obj["metadata"]
        values = metadata.get("annotations") or {}
        if any(values.get(annotation) == "true" for annotation in annotations):
            marked.append((metadata.get("creationTimestamp", ""), metadata["name"]))
    newest = max((time for time, _ in marked), default="")
    return min((name for time, name in marked if time == newest), default="")
