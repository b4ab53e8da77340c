"""NamespaceAutoProvision: creates the namespace of a created object if it does not exist."""

from __future__ import annotations

from kubist.api.admission.plugin import CREATE, Plugin, forbidden
from kubist.api.resources.context import Context
from kubist.model.meta import status
from kubist.model.meta.object import Object


class NamespaceAutoProvision(Plugin):
    operations = (CREATE,)

    async def admit(self, ctx: Context, new: Object | None, old: Object | None) -> None:
        if ctx.dry_run or not ctx.namespace or ctx.objects.get("namespaces", ctx.namespace) is not None:
            return
        try:
            await ctx.objects.create("namespaces", {"metadata": {"name": ctx.namespace}})
        except status.APIError as error:
            if error.reason != "AlreadyExists":
                raise forbidden(ctx, new, error.message) from None
