"""NamespaceExists: rejects writes and deletes in a namespace that does not exist."""

from __future__ import annotations

from kubist.admission.plugin import Plugin
from kubist.model.meta import status
from kubist.model.meta.object import Object
from kubist.resources.context import Context


class NamespaceExists(Plugin):
    def validate(self, ctx: Context, new: Object | None, old: Object | None) -> None:
        if ctx.namespace and ctx.objects.get("namespaces", ctx.namespace) is None:
            raise status.not_found("", "namespaces", ctx.namespace)
