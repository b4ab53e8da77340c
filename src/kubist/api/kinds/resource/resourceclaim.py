"""ResourceClaim: a request for devices, immutable after creation, and its allocation."""

from __future__ import annotations

from collections.abc import Mapping
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
from kubist.api.kinds.shared.update import StatusOnly, immutable
from kubist.api.resources.allocations import Allocations
from kubist.api.resources.context import Context
from kubist.api.resources.strategy import Errors, Strategy, Subresource
from kubist.model.meta import objectmeta, status
from kubist.model.meta.object import Object


class ResourceClaimStatus(StatusOnly):
    metadata_rules = ()

    def prepare(self, ctx: Context, new: Object, old: Object) -> None:
        if new.get("status"):
            allocation.drop_deallocated(new["status"], old.get("status") or {})

    def validate(self, ctx: Context, new: Object, old: Object) -> Errors:
        after, before = new.get("status") or {}, old.get("status") or {}
        errors = _validate_admin_results(ctx, new, after, before)
        errors += objectmeta.validate_update(new["metadata"], old["metadata"])
        return errors + allocation.validate_status(
            after, before, request_names(new["spec"]), deleted="deletionTimestamp" in new["metadata"]
        )

    async def before_write(self, ctx: Context, new: Object, old: Object, allocations: Allocations) -> None:
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
    first_status: ClassVar = {}
    metadata_rules = ("object", "update")
    subresources: Mapping[str, Subresource] = {"status": ResourceClaimStatus()}

    def default(self, obj: Object) -> None:
        default_claim(obj.get("spec") or {})
        for result in allocation.allocated(obj.get("status") or {}):
            default_tolerations(result)

    def validate(self, ctx: Context, new: Object, old: Object | None) -> Errors:
        if old is not None:
            return immutable(new["spec"], old["spec"], "spec", "resource.ResourceClaimSpec")
        metadata = new["metadata"]
        errors = validate_admin_request(ctx, new["spec"], metadata.get("namespace", ""))
        errors += objectmeta.validate_create(metadata, namespaced=True, validate_name=self.validate_name)
        return errors + validate_claim(new["spec"], "spec")


strategy = ResourceClaimStrategy()
