"""Role: permissions within a namespace."""

from __future__ import annotations

from kubist.api.kinds.rbac.common import RoleStrategy, validate_rules
from kubist.api.resources.context import Context
from kubist.api.resources.strategy import Errors
from kubist.model.meta import objectmeta
from kubist.model.meta.object import Object


class NamespacedRoleStrategy(RoleStrategy):
    def validate(self, ctx: Context, new: Object, old: Object | None) -> Errors:
        errors = validate_rules(new.get("rules"), namespaced=True)
        if old is not None:
            errors += objectmeta.validate_update(new["metadata"], old["metadata"])
        return errors


strategy = NamespacedRoleStrategy()
