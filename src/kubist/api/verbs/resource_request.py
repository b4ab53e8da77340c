"""Context of a request for a resource, as the verbs use it."""

from __future__ import annotations

from dataclasses import dataclass

from kubist.api.resources.context import Context
from kubist.api.verbs.sent_object import PLAIN, SentObject
from kubist.api.verbs.services import Services
from kubist.model.meta import status


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
