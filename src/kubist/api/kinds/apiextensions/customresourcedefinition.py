"""CustomResourceDefinition: a resource that users add.

Spec validation is in `api/crd/validate`. `api/crd/controller` handles names, establishment, serving and cleanup.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import TYPE_CHECKING, ClassVar

from kubist.api.crd import definition, v1beta1
from kubist.api.crd.schemas import formats_warnings
from kubist.api.crd.validate import validate_definition, validate_names
from kubist.api.resources.strategy import Connect, Create, Errors, Scale, Strategy, Update, keep
from kubist.model.meta import names, objectmeta
from kubist.model.meta.object import Object

if TYPE_CHECKING:
    from kubist.api.resources.context import Context


class CustomResourceDefinitionStatus(Update):
    """`/status`, through which metadata can change too."""

    reset_fields = ("spec",)

    def prepare_for_update(self, ctx: Context, new: Object, old: Object) -> None:
        keep(new, old, "spec")

    def validate_update(self, ctx: Context, new: Object, old: Object) -> Errors:
        errors = objectmeta.validate_update(new["metadata"], old["metadata"], qualified_finalizers=False)
        return errors + validate_names(new["status"].get("acceptedNames") or {}, "status.acceptedNames")


class CustomResourceDefinitionStrategy(Strategy):
    generation_fields = ("spec",)
    unconditional_update = False
    qualified_finalizers = False
    returns_deleted = True
    reset_fields = ("status",)
    subresources: ClassVar[dict[str, Update | Scale | Create | Connect]] = {
        "status": CustomResourceDefinitionStatus()
    }

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

    def prepare_for_create(self, ctx: Context, obj: Object) -> None:
        stored = definition.storage_version(obj)
        obj["status"] = {
            "conditions": None,
            "acceptedNames": {"plural": "", "kind": ""},
            "storedVersions": [stored] if stored else None,
        }

    def prepare_for_update(self, ctx: Context, new: Object, old: Object) -> None:
        keep(new, old, "status")
        stored = definition.storage_version(new)
        held = new["status"].get("storedVersions") or []
        if stored and stored not in held:
            new["status"] = {**new["status"], "storedVersions": [*held, stored]}

    def validate_name(self, name: str, prefix: bool) -> list[str]:
        return names.dns_subdomain(name, prefix)

    def name_rule(self, obj: Object) -> Callable[[str, bool], list[str]]:
        """Rule for the only valid name, `<plural>.<group>`. The rule also applies to generateName."""
        spec = obj["spec"]
        wanted = f"{spec['names'].get('plural', '')}.{spec.get('group', '')}"

        def problems(name: str, prefix: bool) -> list[str]:
            found = self.validate_name(name, prefix)
            return found if name == wanted else [*found, 'must be spec.names.plural+"."+spec.group']

        return problems

    def validate_create(self, ctx: Context, obj: Object) -> Errors:
        return validate_definition(obj, None)

    def validate_update(self, ctx: Context, new: Object, old: Object) -> Errors:
        errors = objectmeta.validate_update(new["metadata"], old["metadata"], qualified_finalizers=False)
        return errors + validate_definition(new, old)

    def warnings_on_create(self, ctx: Context, obj: Object) -> Iterable[str]:
        return formats_warnings(obj, None)

    def warnings_on_update(self, ctx: Context, new: Object, old: Object) -> Iterable[str]:
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


strategy = CustomResourceDefinitionStrategy()
