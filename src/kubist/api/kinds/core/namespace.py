"""Namespace: a scope for names. Deletion first sets phase Terminating; the object is removed after its
spec.finalizers."""

from __future__ import annotations

from typing import TYPE_CHECKING, ClassVar

from kubist.api.resources.strategy import Connect, Create, Errors, Scale, Status, Strategy, Update, keep
from kubist.model.meta import names, objectmeta
from kubist.model.meta.fields import invalid
from kubist.model.meta.object import Object
from kubist.model.meta.objectmeta import NAMESPACE_FINALIZER

if TYPE_CHECKING:
    from kubist.api.resources.context import Context

NAME_LABEL = "kubernetes.io/metadata.name"


def _label(obj: Object) -> None:
    metadata = obj["metadata"]
    if name := metadata.get("name"):
        labels = metadata.get("labels")
        if labels is None:
            labels = metadata["labels"] = {}
        labels[NAME_LABEL] = name


class NamespaceStatus(Status):
    def validate_update(self, ctx: Context, new: Object, old: Object) -> Errors:
        errors = objectmeta.validate_update(new["metadata"], old["metadata"])
        phase = new["status"].get("phase", "")
        if "deletionTimestamp" not in new["metadata"]:
            if phase != "Active":
                detail = "may only be 'Active' if `deletionTimestamp` is empty"
                errors.append(invalid("status.Phase", phase, detail))
        elif phase != "Terminating":
            detail = "may only be 'Terminating' if `deletionTimestamp` is not empty"
            errors.append(invalid("status.Phase", phase, detail))
        return errors


class NamespaceFinalize(Update):
    reset_fields = ("status",)

    def prepare_for_update(self, ctx: Context, new: Object, old: Object) -> None:
        keep(new, old, "status")
        _label(new)

    def validate_update(self, ctx: Context, new: Object, old: Object) -> Errors:
        errors = objectmeta.validate_update(new["metadata"], old["metadata"])
        for i, finalizer in enumerate(new["spec"].get("finalizers") or ()):
            errors += _validate_finalizer(finalizer, f"spec.finalizers[{i}]")
        return errors


class NamespaceStrategy(Strategy):
    returns_deleted = True
    precondition_kind = "namespaces"
    keeps_propagation = True
    reset_fields = ("status",)
    namespace_selectable = False
    field_labels: ClassVar[dict[str, str]] = {"status.phase": "status.phase"}
    subresources: ClassVar[dict[str, Update | Scale | Create | Connect]] = {
        "status": NamespaceStatus(),
        "finalize": NamespaceFinalize(),
    }

    def validate_name(self, name: str, prefix: bool) -> list[str]:
        return names.dns_label(name, prefix)

    def default(self, obj: Object) -> None:
        _label(obj)
        obj["status"].setdefault("phase", "Active")

    def prepare_for_create(self, ctx: Context, obj: Object) -> None:
        _label(obj)
        obj["status"] = {"phase": "Active"}
        finalizers = obj["spec"].setdefault("finalizers", [])
        if NAMESPACE_FINALIZER not in finalizers:
            finalizers.append(NAMESPACE_FINALIZER)

    def prepare_for_update(self, ctx: Context, new: Object, old: Object) -> None:
        keep(new, old, "spec.finalizers", "status")
        _label(new)

    def validate_create(self, ctx: Context, obj: Object) -> Errors:
        errors: Errors = []
        for finalizer in obj["spec"].get("finalizers") or ():
            errors += _validate_finalizer(finalizer, "spec.finalizers")
        return errors

    def validate_update(self, ctx: Context, new: Object, old: Object) -> Errors:
        return [
            *objectmeta.validate_create(new["metadata"], namespaced=False, validate_name=self.validate_name),
            *self.validate_create(ctx, new),
            *objectmeta.validate_update(new["metadata"], old["metadata"]),
        ]

    def mark_deleted(self, ctx: Context, obj: Object) -> bool | None:
        """Sets deletionTimestamp and phase Terminating. A terminating namespace without spec.finalizers is deleted
        as usual."""
        if "deletionTimestamp" in obj["metadata"]:
            return False if obj["spec"].get("finalizers") else None
        obj["metadata"]["deletionTimestamp"] = ctx.now
        obj["status"]["phase"] = "Terminating"
        return True

    def held(self, obj: Object) -> bool:
        return bool(obj["spec"].get("finalizers") or obj["metadata"].get("finalizers"))


def _validate_finalizer(finalizer: str, path: str) -> Errors:
    errors = objectmeta.validate_finalizers([finalizer], path)
    return errors + objectmeta.validate_qualified_finalizer(finalizer, path)


strategy = NamespaceStrategy()
