"""Role: permissions within a namespace."""

from __future__ import annotations

from kubist.kinds.rbac.common import RoleStrategy, validate_rules
from kubist.model.meta import objectmeta
from kubist.model.meta.object import Object
from kubist.resources.context import Context
from kubist.resources.strategy import Errors


class NamespacedRoleStrategy(RoleStrategy):
    def validate_create(self, ctx: Context, obj: Object) -> Errors:
        return validate_rules(obj.get("rules"), namespaced=True)

    def validate_update(self, ctx: Context, new: Object, old: Object) -> Errors:
        errors = self.validate_metadata(new) + self.validate_create(ctx, new)
        return errors + objectmeta.validate_update(new["metadata"], old["metadata"])


strategy = NamespacedRoleStrategy()
