"""NamespaceLifecycle: nothing is made in a namespace that is absent or going; some namespaces never go."""

from __future__ import annotations

from kubist.admission.plugin import CREATE, DELETE, UPDATE, Object, Plugin, forbidden
from kubist.context import Context
from kubist.meta import status

IMMORTAL = frozenset(("default", "kube-system", "kube-public"))
ACCESS_REVIEWS = "localsubjectaccessreviews.authorization.k8s.io"


class NamespaceLifecycle(Plugin):
    def handles(self, resource: str, operation: str) -> bool:
        parent = resource.partition("/")[0]
        if parent == "namespaces":
            return operation == DELETE
        return operation in (CREATE, UPDATE) and parent != ACCESS_REVIEWS

    async def admit(self, ctx: Context, new: Object | None, old: Object | None) -> None:
        if new is None:
            if ctx.name in IMMORTAL:
                raise status.forbidden("", "namespaces", ctx.name, "this namespace may not be deleted")
            return
        if not ctx.namespace:
            return
        namespace = ctx.objects.get("namespaces", ctx.namespace)
        if namespace is None:
            raise status.not_found("", "namespaces", ctx.namespace)
        if old is None and (namespace.get("status") or {}).get("phase") == "Terminating":
            raise _terminating(ctx, new)


def _terminating(ctx: Context, new: Object) -> status.APIError:
    where = ctx.namespace
    why = f"unable to create new content in namespace {where} because it is being terminated"
    error = forbidden(ctx, new, why)
    cause = {"reason": "NamespaceTerminating", "message": f"namespace {where} is being terminated"}
    assert error.details is not None
    error.details["causes"] = [{**cause, "field": "metadata.namespace"}]
    return error
