"""Context of a request for a resource, as the verbs use it, and the application's interface for the verbs."""

from __future__ import annotations

from collections.abc import Awaitable
from dataclasses import dataclass
from typing import TYPE_CHECKING, Protocol

from kubist.api.filters.authentication.authentication import Authentication
from kubist.api.filters.authorization.authorization import Authorization
from kubist.api.object_store.registry import Registry
from kubist.api.resources.context import Context, Server
from kubist.api.resources.resource import Resources
from kubist.api.verbs.sent_object import PLAIN, SentObject
from kubist.base.clock import Clock
from kubist.model.meta import status
from kubist.model.meta.object import Object

if TYPE_CHECKING:
    from kubist.api.verbs.watch import Watcher


class Admission(Protocol):
    """The admission chain (`kubist.api.admission.chain`)."""

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


@dataclass(slots=True)
class ResourceRequest(Context):
    """A request for a served resource. Kinds and admission get the same object, as a `Context`."""

    api: Services
    sent: SentObject = PLAIN
    """Empty lists and maps of the body, which the stored object does not have."""
    long: bool = False
    """Whether the body or the stored object is long, so that work on it leaves the event loop."""

    @property
    def collection_prefix(self) -> str:
        """Key prefix of the request's collection: one namespace or all of them."""
        resource, namespace = self.resource, self.info.namespace
        return f"{resource.prefix}{namespace}/" if namespace and resource.namespaced else resource.prefix

    def not_found(self, name: str | None = None) -> status.APIError:
        return status.not_found(
            self.resource.group, self.resource.resource, self.info.name if name is None else name
        )

    def conflict(self, name: str, why: str) -> status.APIError:
        return status.conflict(self.resource.group, self.resource.resource, name, why)
