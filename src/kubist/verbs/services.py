"""Interface of the application for the verbs."""

from __future__ import annotations

from collections.abc import Awaitable
from typing import TYPE_CHECKING, Protocol

from kubist.base.clock import Clock
from kubist.filters.authentication import Authentication
from kubist.filters.authorization import Authorization
from kubist.model.meta.object import Object
from kubist.objectstore.registry import Registry
from kubist.resources.context import Context, Server
from kubist.resources.resource import Resources

if TYPE_CHECKING:
    from kubist.verbs.watch import Watcher


class Admission(Protocol):
    """The admission chain (`kubist.admission.chain`)."""

    async def admit(self, ctx: Context, new: Object | None, old: Object | None) -> None:
        """Let mutating plugins change `new` in place or reject the request. `old` is None for a create."""
        ...

    def validate(self, ctx: Context, new: Object | None, old: Object | None) -> Awaitable[None]:
        """Let validating plugins reject the request."""
        ...

    def delete(self, ctx: Context, old: Object) -> Awaitable[None]:
        """Run both phases for a delete."""
        ...

    def connect(self, ctx: Context, options: Object) -> Awaitable[None]:
        """Run both phases for a connect; `options` are the query parameters as an object."""
        ...


class Services(Server, Protocol):
    """Parts of a server that the verbs use."""

    clock: Clock
    registry: Registry
    resources: Resources
    authentication: Authentication
    authorization: Authorization
    watchers: dict[str, set[Watcher]]
    """Open watches by the key prefix of their collection."""

    @property
    def admission(self) -> Admission: ...
