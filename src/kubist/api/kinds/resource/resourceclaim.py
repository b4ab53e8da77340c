"""ResourceClaim: a request for devices, immutable after creation, and its allocation."""

from __future__ import annotations

from typing import ClassVar

from kubist.api.kinds.resource import allocation
from kubist.api.kinds.resource.claims import (
    admin_access_error,
    default_claim,
    default_tolerations,
    request_names,
    validate_admin_request,
    validate_claim,
)
from kubist.api.kinds.shared.update import immutable, keep_metadata
from kubist.api.resources.allocations import Allocations
from kubist.api.resources.context import Context
from kubist.api.resources.strategy import Errors, Strategy, Update, keep
from kubist.model.meta import objectmeta, status
from kubist.model.meta.object import Object


class ResourceClaimStatus(Update):
    reset_fields = ("metadata", "spec")

    def prepare_for_update(self, ctx: Context, new: Object, old: Object) -> None:
        keep(new, old, "spec")
        keep_metadata(new, old)
        if new.get("status"):
            allocation.drop_deallocated(new["status"], old.get("status") or {})

    def validate_update(self, ctx: Context, new: Object, old: Object) -> Errors:
        after, before = new.get("status") or {}, old.get("status") or {}
        errors = _validate_admin_results(ctx, new, after, before)
        errors += objectmeta.validate_update(new["metadata"], old["metadata"])
        return errors + allocation.validate_status(
            after, before, request_names(new["spec"]), deleted="deletionTimestamp" in new["metadata"]
        )

    async def before_update(self, ctx: Context, new: Object, old: Object, allocations: Allocations) -> None:
        errors = await allocation.access_errors(ctx, new.get("status") or {}, old.get("status") or {})
        if errors:
            raise status.invalid("resource.k8s.io", "ResourceClaim", new["metadata"]["name"], errors)


def _validate_admin_results(ctx: Context, claim: Object, after: Object, before: Object) -> Errors:
    if any(result.get("adminAccess") for result in allocation.allocated(before)):
        return []
    for index, result in enumerate(allocation.allocated(after)):
        if result.get("adminAccess"):
            path = f"status.allocation.devices.results[{index}].adminAccess"
            return admin_access_error(ctx, claim["metadata"]["namespace"], path)
    return []


class ResourceClaimStrategy(Strategy):
    returns_deleted = True
    lenient_metadata = True
    reset_fields = ("status",)
    subresources: ClassVar = {"status": ResourceClaimStatus()}

    def default(self, obj: Object) -> None:
        default_claim(obj.get("spec") or {})
        for result in allocation.allocated(obj.get("status") or {}):
            default_tolerations(result)

    def prepare_for_create(self, ctx: Context, obj: Object) -> None:
        obj["status"] = {}

    def prepare_for_update(self, ctx: Context, new: Object, old: Object) -> None:
        keep(new, old, "status")

    def validate_create(self, ctx: Context, obj: Object) -> Errors:
        metadata = obj["metadata"]
        errors = validate_admin_request(ctx, obj["spec"], metadata.get("namespace", ""))
        errors += objectmeta.validate_create(metadata, namespaced=True, validate_name=self.validate_name)
        return errors + validate_claim(obj["spec"], "spec")

    def validate_update(self, ctx: Context, new: Object, old: Object) -> Errors:
        errors = objectmeta.validate_create(
            new["metadata"], namespaced=True, validate_name=self.validate_name
        )
        errors += objectmeta.validate_update(new["metadata"], old["metadata"])
        return errors + immutable(new["spec"], old["spec"], "spec", "resource.ResourceClaimSpec")


strategy = ResourceClaimStrategy()
