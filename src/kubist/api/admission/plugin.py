"""Base class of admission plugins: the handled resources and operations, a mutating step and a validating step."""

from __future__ import annotations

from collections.abc import Awaitable
from typing import TYPE_CHECKING, Any, ClassVar

from kubist.api.resources.context import Context
from kubist.model.meta import status
from kubist.model.meta.object import Object

if TYPE_CHECKING:
    from kubist.api.admission.followed import Followed
    from kubist.api.object_store.registry import Registry

Pending = Awaitable[None] | None
"""Awaitable rest of a step. None if the step is complete, as most steps are."""

CREATE, UPDATE, DELETE, CONNECT = "CREATE", "UPDATE", "DELETE", "CONNECT"


class Plugin:
    """Admission plugin. `new` is None for a delete, `old` for a create; both are in the stored version. A plugin
    rejects a request by raising APIError."""

    resources: ClassVar[tuple[str, ...]] = ()
    """Handled resources: `pods`, `pods/binding`, `ingresses.networking.k8s.io`. Empty: all resources."""
    operations: ClassVar[tuple[str, ...]] = (CREATE, UPDATE, DELETE)
    followed: Followed[Any] | None = None
    """Objects that the plugin applies, set by `start`. While the collection is empty, the plugin is skipped."""

    def __init__(self, configuration: Object | None = None) -> None:
        """`configuration` is the plugin's section of the configuration file."""

    def handles(self, resource: str, operation: str) -> bool:
        return operation in self.operations and (not self.resources or resource in self.resources)

    def start(self, registry: Registry) -> None:
        """Called when the cache is filled. Plugins that follow collections subscribe here."""

    def admit(self, ctx: Context, new: Object | None, old: Object | None) -> Pending:
        """Changes `new` in place, or raises APIError."""
        return None

    def validate(self, ctx: Context, new: Object | None, old: Object | None) -> Pending:
        """Raises APIError to reject the request."""
        return None


def forbidden(ctx: Context, new: Object | None, why: str) -> status.APIError:
    """403 error of a plugin, with the object's name if it has one."""
    return status.forbidden(ctx.resource.group, ctx.resource.resource, name_of(ctx, new), why)


def name_of(ctx: Context, new: Object | None) -> str:
    """Name in an error: the request's, or the object's, or its generateName."""
    if ctx.name:
        return ctx.name
    metadata = new.get("metadata") or {} if new is not None else {}
    return metadata.get("name") or metadata.get("generateName") or "Unknown"
