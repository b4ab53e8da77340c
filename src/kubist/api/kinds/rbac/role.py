"""Role: permissions within a namespace."""

from __future__ import annotations

from kubist.api.kinds.rbac.common import RoleStrategy, validate_rules
from kubist.api.resources.context import Context
from kubist.api.resources.strategy import Errors
from kubist.model.meta import objectmeta
from kubist.model.meta.object import Object


class NamespacedRoleStrategy(RoleStrategy):
    def validate_create(self, ctx: Context, obj: Object) -> Errors:
        return validate_rules(obj.get("rules"), namespaced=True)

    def validate_update(self, ctx: Context, new: Object, old: Object) -> Errors:
        errors = self.validate_metadata(new) + self.validate_create(ctx, new)
        return errors + objectmeta.validate_update(new["metadata"], old["metadata"])


strategy = NamespacedRoleStrategy()
