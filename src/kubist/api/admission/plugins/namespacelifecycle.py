"""NamespaceLifecycle: rejects creates in an absent or terminating namespace, and the deletion of system namespaces."""

from __future__ import annotations

from typing import TYPE_CHECKING

from kubist.api.admission.followed import Followed
from kubist.api.admission.plugin import CREATE, DELETE, UPDATE, Pending, Plugin, forbidden
from kubist.api.resources.context import Context
from kubist.model.meta import status
from kubist.model.meta.object import Object

if TYPE_CHECKING:
    from kubist.api.object_store.registry import Registry

IMMORTAL = frozenset(("default", "kube-system", "kube-public"))
ACCESS_REVIEWS = "localsubjectaccessreviews.authorization.k8s.io"


class NamespaceLifecycle(Plugin):
    def start(self, registry: Registry) -> None:
        self._registry = registry
        self._phases = Followed(registry, "", "namespaces", _phase)

    def handles(self, resource: str, operation: str) -> bool:
        parent = resource.partition("/")[0]
        if parent == "namespaces":
            return operation == DELETE
        return operation in (CREATE, UPDATE) and parent != ACCESS_REVIEWS

    def admit(self, ctx: Context, new: Object | None, old: Object | None) -> Pending:
        if new is None:
            if ctx.name in IMMORTAL:
                raise status.forbidden("", "namespaces", ctx.name, "this namespace may not be deleted")
            return None
        if not ctx.namespace:
            return None
        phase = self._phases.get(ctx.namespace)
        if phase is None:
            return self._check_after_catch_up(ctx, new, old)
        if old is None and phase == "Terminating":
            raise _terminating(ctx, new)
        return None

    async def _check_after_catch_up(self, ctx: Context, new: Object, old: Object | None) -> None:
        """Checks the phase again once the cache has caught up, because another server may just have created the
        namespace."""
        await self._registry.cache.catch_up()
        phase = self._phases.get(ctx.namespace)
        if phase is None:
            raise status.not_found("", "namespaces", ctx.namespace)
        if old is None and phase == "Terminating":
            raise _terminating(ctx, new)


def _phase(namespace: Object) -> str:
    return (namespace.get("status") or {}).get("phase") or "Active"


def _terminating(ctx: Context, new: Object) -> status.APIError:
    where = ctx.namespace
    why = f"unable to create new content in namespace {where} because it is being terminated"
    error = forbidden(ctx, new, why)
    cause = {"reason": "NamespaceTerminating", "message": f"namespace {where} is being terminated"}
    assert error.details is not None
    error.details["causes"] = [{**cause, "field": "metadata.namespace"}]
    return error
