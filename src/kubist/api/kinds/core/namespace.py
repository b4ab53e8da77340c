"""Namespace: a scope for names. Deletion first sets phase Terminating; the object is removed after its
spec.finalizers."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, ClassVar

from kubist.api.resources.strategy import Errors, Status, Strategy, Subresource, Update
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
    def validate(self, ctx: Context, new: Object, old: Object) -> Errors:
        errors: Errors = []
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

    def prepare(self, ctx: Context, new: Object, old: Object) -> None:
        _label(new)

    def validate(self, ctx: Context, new: Object, old: Object) -> Errors:
        errors: Errors = []
        for i, finalizer in enumerate(new["spec"].get("finalizers") or ()):
            errors += _validate_finalizer(finalizer, f"spec.finalizers[{i}]")
        return errors


class NamespaceStrategy(Strategy):
    returns_deleted = True
    precondition_kind = "namespaces"
    keeps_propagation = True
    namespace_selectable = False
    validate_name = staticmethod(names.dns_label)
    reset_fields = ("status",)
    restored_fields = ("spec.finalizers", "status")
    first_status: ClassVar = {"phase": "Active"}
    metadata_rules = ("object",)
    field_labels: Mapping[str, str] = {"status.phase": "status.phase"}
    subresources: Mapping[str, Subresource] = {
        "status": NamespaceStatus(),
        "finalize": NamespaceFinalize(),
    }

    def default(self, obj: Object) -> None:
        _label(obj)
        obj["status"].setdefault("phase", "Active")

    def prepare(self, ctx: Context, new: Object, old: Object | None) -> None:
        _label(new)
        if old is None:
            finalizers = new["spec"].setdefault("finalizers", [])
            if NAMESPACE_FINALIZER not in finalizers:
                finalizers.append(NAMESPACE_FINALIZER)

    def validate(self, ctx: Context, new: Object, old: Object | None) -> Errors:
        errors: Errors = []
        for finalizer in new["spec"].get("finalizers") or ():
            errors += _validate_finalizer(finalizer, "spec.finalizers")
        if old is not None:
            errors += objectmeta.validate_update(new["metadata"], old["metadata"])
        return errors

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
