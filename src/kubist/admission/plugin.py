"""What an admission plugin is: a name, what it cares about, and a mutating or validating step."""

from __future__ import annotations

from collections.abc import Awaitable
from typing import TYPE_CHECKING, Any, ClassVar

from kubist.meta import status
from kubist.resources.context import Context

if TYPE_CHECKING:
    from kubist.admission.followed import Followed
    from kubist.objectstore.registry import Registry

Object = dict[str, Any]
Pending = Awaitable[None] | None
"""What is left of a step and has to be waited for; most steps are done when they return."""

CREATE, UPDATE, DELETE, CONNECT = "CREATE", "UPDATE", "DELETE", "CONNECT"


class Plugin:
    """One admission plugin. `new` is None for a deletion, `old` for a creation; both are in the stored
    version. Refusals are APIErrors."""

    resources: ClassVar[tuple[str, ...]] = ()
    """What it cares about: `pods`, `pods/binding`, `ingresses.networking.k8s.io`; none: everything."""
    operations: ClassVar[tuple[str, ...]] = (CREATE, UPDATE, DELETE)
    followed: Followed[Any] | None = None
    """What it acts on, from `start` on: as long as there are no such objects the plugin is not asked."""

    def __init__(self, configuration: Object | None = None) -> None:
        """`configuration` is what the configuration file has for the plugin."""

    def handles(self, resource: str, operation: str) -> bool:
        return operation in self.operations and (not self.resources or resource in self.resources)

    def start(self, registry: Registry) -> None:
        """The cache is filled: what follows collections can begin."""

    def admit(self, ctx: Context, new: Object | None, old: Object | None) -> Pending:
        """Change `new` in place, or refuse."""
        return None

    def validate(self, ctx: Context, new: Object | None, old: Object | None) -> Pending:
        """Refuse, or not."""
        return None


def forbidden(ctx: Context, new: Object | None, why: str) -> status.APIError:
    """403 of a plugin, naming the object as far as it has a name."""
    return status.forbidden(ctx.resource.group, ctx.resource.resource, name_of(ctx, new), why)


def name_of(ctx: Context, new: Object | None) -> str:
    """The name in an error: of the request, or of the object, or what it would be generated from."""
    if ctx.name:
        return ctx.name
    metadata = new.get("metadata") or {} if new is not None else {}
    return metadata.get("name") or metadata.get("generateName") or "Unknown"
