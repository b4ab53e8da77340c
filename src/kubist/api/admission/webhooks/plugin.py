"""Base of the two webhook plugins: the configurations, and the exempt kinds."""

from __future__ import annotations

from typing import TYPE_CHECKING, ClassVar

from kubist.api.admission.followed import Followed
from kubist.api.admission.matching import exempt
from kubist.api.admission.plugin import CONNECT, CREATE, DELETE, UPDATE, Pending, Plugin
from kubist.api.admission.webhooks.hooks import Hook, hooks_of
from kubist.api.resources.context import Context
from kubist.model.meta.object import Object

if TYPE_CHECKING:
    from kubist.api.admission.followed import Followed
    from kubist.api.objectstore.registry import Registry


class WebhookPlugin(Plugin):
    operations = (CREATE, UPDATE, DELETE, CONNECT)
    configurations: ClassVar[str]
    """Resource name of the configurations."""
    _configured: Followed[list[Hook]] | None = None

    def start(self, registry: Registry) -> None:
        group = "admissionregistration.k8s.io"
        self._configured = self.followed = Followed(registry, group, self.configurations, hooks_of)
        self._resources = registry.resources

    def ask(self, ctx: Context, new: Object | None, old: Object | None) -> Pending:
        """Calls all webhooks, unless the request is for a kind of admission itself."""
        if self._configured is None or exempt(ctx.resource.kind, ctx.resource.group):
            return None
        return self._ask_all(self._configured.items, ctx, new, old)

    async def _ask_all(
        self, configurations: list[list[Hook]], ctx: Context, new: Object | None, old: Object | None
    ) -> None:
        raise AssertionError("subclasses must override _ask_all")
