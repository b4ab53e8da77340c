"""AlwaysDeny: rejects all changes."""

from __future__ import annotations

from kubist.admission.plugin import CONNECT, CREATE, DELETE, UPDATE, Plugin, forbidden
from kubist.model.meta.object import Object
from kubist.resources.context import Context


class AlwaysDeny(Plugin):
    operations = (CREATE, UPDATE, DELETE, CONNECT)

    def admit(self, ctx: Context, new: Object | None, old: Object | None) -> None:
        raise forbidden(ctx, new, "admission control is denying all modifications")
