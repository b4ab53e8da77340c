"""ResourceQuota: a namespace holds no more than its quotas allow."""

from __future__ import annotations

from kubist.admission.plugin import Object, Plugin
from kubist.admission.quota.evaluators import IGNORED, OPERATIONS, evaluator_for
from kubist.admission.quota.ledger import Ledger
from kubist.context import Context


class ResourceQuota(Plugin):
    def __init__(self, configuration: Object | None = None) -> None:
        self._ledger = Ledger()

    def handles(self, resource: str, operation: str) -> bool:
        return operation in OPERATIONS and resource.partition("/")[0] not in IGNORED

    async def validate(self, ctx: Context, new: Object | None, old: Object | None) -> None:
        if new is None or not ctx.namespace or ctx.resource.kind == "Namespace":
            return
        if next(iter(ctx.objects.list("resourcequotas", ctx.namespace)), None) is None:
            return
        resource = ctx.resource
        name = f"{resource.resource}.{resource.group}" if resource.group else resource.resource
        evaluator = evaluator_for(name)
        if evaluator.handles(ctx, new, old):
            await self._ledger.charge(ctx, evaluator, new, old)
