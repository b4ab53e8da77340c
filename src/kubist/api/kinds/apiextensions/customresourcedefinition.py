"""CustomResourceDefinition: a resource that users add.

Spec validation is in `api/crd/validate`. `api/crd/controller` handles names, establishment, serving and cleanup.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import TYPE_CHECKING

from kubist.api.crd import definition, v1beta1
from kubist.api.crd.schemas import formats_warnings
from kubist.api.crd.validate import validate_definition, validate_names
from kubist.api.resources.strategy import Errors, Strategy, Subresource, Update
from kubist.model.meta import names, objectmeta
from kubist.model.meta.object import Object

if TYPE_CHECKING:
    from kubist.api.resources.context import Context


class CustomResourceDefinitionStatus(Update):
    """`/status`, through which metadata can change too."""

    reset_fields = ("spec",)

    def validate(self, ctx: Context, new: Object, old: Object) -> Errors:
        return validate_names(new["status"].get("acceptedNames") or {}, "status.acceptedNames")


class CustomResourceDefinitionStrategy(Strategy):
    generation_fields = ("spec",)
    unconditional_update = False
    qualified_finalizers = False
    returns_deleted = True
    reset_fields = ("status",)
    validates_metadata = True
    subresources: Mapping[str, Subresource] = {"status": CustomResourceDefinitionStatus()}

    def default(self, obj: Object) -> None:
        spec = obj["spec"]
        named = spec["names"]
        kind = named.get("kind") or ""
        if not named.get("singular") and kind:
            named["singular"] = kind.lower()
        if not named.get("listKind") and kind:
            named["listKind"] = kind + "List"
        conversion = spec.setdefault("conversion", {"strategy": "None"})
        service = ((conversion.get("webhook") or {}).get("clientConfig") or {}).get("service")
        if service is not None:
            service.setdefault("port", 443)
        status = obj["status"]
        if not status.get("storedVersions"):
            stored = definition.storage_version(obj)
            status["storedVersions"] = [stored] if stored else None

    def convert(self, obj: Object, api_version: str) -> Object:
        return v1beta1.to_v1(obj, api_version)

    def prepare(self, ctx: Context, new: Object, old: Object | None) -> None:
        stored = definition.storage_version(new)
        if old is None:
            new["status"] = {
                "conditions": None,
                "acceptedNames": {"plural": "", "kind": ""},
                "storedVersions": [stored] if stored else None,
            }
            return
        versions = new["status"].get("storedVersions") or []
        if stored and stored not in versions:
            new["status"] = {**new["status"], "storedVersions": [*versions, stored]}

    def validate(self, ctx: Context, new: Object, old: Object | None) -> Errors:
        errors = _validate_metadata(new) if old is None else []
        return errors + validate_definition(new, old)

    def warnings(self, ctx: Context, new: Object, old: Object | None) -> Iterable[str]:
        return formats_warnings(new, old)

    def mark_deleted(self, ctx: Context, obj: Object) -> bool | None:
        """Sets deletionTimestamp, finalizer and Terminating on the first delete. The custom resources are deleted
        first."""
        metadata = obj["metadata"]
        if "deletionTimestamp" in metadata:
            return None
        metadata["deletionTimestamp"] = ctx.now
        finalizers = metadata.get("finalizers") or []
        if definition.FINALIZER not in finalizers:
            metadata["finalizers"] = [*finalizers, definition.FINALIZER]
        text = "CustomResourceDefinition marked for deletion; CustomResource deletion will begin soon"
        definition.set_condition(obj, "Terminating", "True", "InstanceDeletionPending", text, ctx.now)
        return True


def _validate_metadata(crd: Object) -> Errors:
    """Validates the metadata of a new CRD. The only valid name, and generateName, is `<plural>.<group>`."""
    spec = crd["spec"]
    wanted = f"{spec['names'].get('plural', '')}.{spec.get('group', '')}"

    def validate_name(name: str, prefix: bool) -> list[str]:
        errors = names.dns_subdomain(name, prefix)
        return errors if name == wanted else [*errors, 'must be spec.names.plural+"."+spec.group']

    return objectmeta.validate_create(
        crd["metadata"], namespaced=False, validate_name=validate_name, qualified_finalizers=False
    )


strategy = CustomResourceDefinitionStrategy()
