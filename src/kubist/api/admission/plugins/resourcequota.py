"""ResourceQuota: rejects writes that exceed the quotas of the namespace."""

from __future__ import annotations

from typing import TYPE_CHECKING

from kubist.api.admission.followed import Followed
from kubist.api.admission.plugin import Pending, Plugin
from kubist.api.admission.quota.evaluators import IGNORED, OPERATIONS, evaluator_for
from kubist.api.admission.quota.ledger import Ledger
from kubist.api.resources.context import Context
from kubist.model.meta.object import Object

if TYPE_CHECKING:
    from kubist.api.objectstore.registry import Registry


class ResourceQuota(Plugin):
    def start(self, registry: Registry) -> None:
        self._quotas = self.followed = Followed(registry, "", "resourcequotas", bool)
        self._ledger = Ledger(registry)

    def handles(self, resource: str, operation: str) -> bool:
        return operation in OPERATIONS and resource.partition("/")[0] not in IGNORED

    def validate(self, ctx: Context, new: Object | None, old: Object | None) -> Pending:
        if new is None or not ctx.namespace or not self._quotas.within(ctx.namespace):
            return None
        resource = ctx.resource
        name = f"{resource.resource}.{resource.group}" if resource.group else resource.resource
        evaluator = evaluator_for(name)
        return self._ledger.charge(ctx, evaluator, new, old) if evaluator.handles(ctx, new, old) else None
