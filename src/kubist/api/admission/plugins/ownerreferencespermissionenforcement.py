"""OwnerReferencesPermissionEnforcement: changing ownerReferences requires `delete` on the object. Setting
blockOwnerDeletion requires `update` on the owner's finalizers."""

from __future__ import annotations

from kubist.api.admission.plugin import CREATE, UPDATE, Plugin, forbidden
from kubist.api.resources.context import Context
from kubist.model.meta.object import Object


class OwnerReferencesPermissionEnforcement(Plugin):
    operations = (CREATE, UPDATE)

    def handles(self, resource: str, operation: str) -> bool:
        return operation in self.operations and resource != "pods/status"

    async def validate(self, ctx: Context, new: Object | None, old: Object | None) -> None:
        owners, old_owners = _owners(new), _owners(old)
        if owners == old_owners:
            return
        if old is not None:
            await self._check_delete(ctx, new)
        before = {owner.get("uid"): owner for owner in old_owners}
        blocking = [
            owner
            for owner in owners
            if owner.get("blockOwnerDeletion")
            and not before.get(owner.get("uid"), {}).get("blockOwnerDeletion")
        ]
        if blocking:
            await self._check_blocking(ctx, new, blocking)

    async def _check_delete(self, ctx: Context, new: Object | None) -> None:
        allowed, reason = await ctx.authorize(
            "delete",
            group=ctx.resource.group,
            version=ctx.resource.version,
            resource=ctx.resource.resource,
            subresource=ctx.subresource,
            namespace=ctx.namespace,
            name=ctx.name,
        )
        if not allowed:
            why = f"cannot set an ownerRef on a resource you can't delete: {reason}, <nil>"
            raise forbidden(ctx, new, why)

    async def _check_blocking(self, ctx: Context, new: Object | None, blocking: list[Object]) -> None:
        anything, _ = await ctx.authorize(
            "update", group="*", resource="*", subresource="finalizers", name="*"
        )
        if anything:
            return
        for owner in blocking:
            api_version, kind = owner.get("apiVersion", ""), owner.get("kind", "")
            group, _, version = api_version.rpartition("/")
            resource = ctx.objects.find_kind(group, version, kind)
            if resource is None:
                what = f'no matches for kind "{kind}" in version "{api_version}"'
                why = "cannot set blockOwnerDeletion in this case because cannot find RESTMapping for"
                raise forbidden(ctx, new, f"{why} APIVersion {api_version} Kind {kind}: {what}")
            allowed, reason = await ctx.authorize(
                "update",
                group=resource.group,
                version=resource.version,
                resource=resource.resource,
                subresource="finalizers",
                namespace=ctx.namespace if resource.namespaced else "",
                name=owner.get("name", ""),
            )
            if not allowed:
                why = "cannot set blockOwnerDeletion if an ownerReference refers to a resource you can't set"
                raise forbidden(ctx, new, f"{why} finalizers on: {reason}, <nil>")


def _owners(obj: Object | None) -> list[Object]:
    return ((obj or {}).get("metadata") or {}).get("ownerReferences") or []
