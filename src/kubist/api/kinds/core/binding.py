"""Binding: POST to the bindings collection, the older form of a pod's `/binding`, kept for old schedulers."""

from __future__ import annotations

from typing import TYPE_CHECKING

from kubist.api.kinds.core.pod_binding import bind
from kubist.api.resources.strategy import Create, Strategy
from kubist.model.meta.object import Object
from kubist.model.meta.status import bad_request

if TYPE_CHECKING:
    from kubist.api.resources.context import Context


class LegacyBinding(Create):
    kind = "Binding"

    async def create(self, ctx: Context, body: Object) -> Object:
        name = body["metadata"].get("name", "")
        if not name:
            raise bad_request("Name parameter required.")
        return await bind(ctx, name, body)


class BindingStrategy(Strategy):
    virtual = LegacyBinding()


strategy = BindingStrategy()
