"""AlwaysDeny: rejects all changes."""

from __future__ import annotations

from kubist.api.admission.plugin import CONNECT, CREATE, DELETE, UPDATE, Plugin, forbidden
from kubist.api.resources.context import Context
from kubist.model.meta.object import Object


class AlwaysDeny(Plugin):
    operations = (CREATE, UPDATE, DELETE, CONNECT)

    def admit(self, ctx: Context, new: Object | None, old: Object | None) -> None:
        raise forbidden(ctx, new, "admission control is denying all modifications")
