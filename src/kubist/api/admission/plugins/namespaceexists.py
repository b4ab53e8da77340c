"""NamespaceExists: rejects writes and deletes in a namespace that does not exist."""

from __future__ import annotations

from kubist.api.admission.plugin import Plugin
from kubist.api.resources.context import Context
from kubist.model.meta import status
from kubist.model.meta.object import Object


class NamespaceExists(Plugin):
    def validate(self, ctx: Context, new: Object | None, old: Object | None) -> None:
        if ctx.namespace and ctx.objects.get("namespaces", ctx.namespace) is None:
            raise status.not_found("", "namespaces", ctx.namespace)
