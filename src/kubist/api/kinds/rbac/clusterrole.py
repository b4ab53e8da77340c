"""ClusterRole: permissions in all namespaces and on cluster-scoped resources, listed or aggregated from other
roles."""

from __future__ import annotations

from kubist.api.kinds.rbac.common import RoleStrategy, validate_rules
from kubist.api.resources.context import Context
from kubist.api.resources.strategy import Errors
from kubist.model.meta import fields, objectmeta
from kubist.model.meta.labels import validate_selector
from kubist.model.meta.object import Object


class ClusterRoleStrategy(RoleStrategy):
    def validate(self, ctx: Context, new: Object, old: Object | None) -> Errors:
        if old is None:
            return _validate(new, allow_invalid_values=False)
        tolerated = any(validate_selector(selector, "") for selector in _selectors(old))
        errors = _validate(new, allow_invalid_values=tolerated)
        return errors + objectmeta.validate_update(new["metadata"], old["metadata"])


def _selectors(role: Object) -> list[Object]:
    return (role.get("aggregationRule") or {}).get("clusterRoleSelectors") or []


def _validate(role: Object, *, allow_invalid_values: bool) -> Errors:
    errors = validate_rules(role.get("rules"), namespaced=False)
    if role.get("aggregationRule") is not None and not _selectors(role):
        why = "at least one clusterRoleSelector required if aggregationRule is non-nil"
        errors.append(fields.required("aggregationRule.clusterRoleSelectors", why))
    for index, selector in enumerate(_selectors(role)):
        path = f"aggregationRule.clusterRoleSelectors[{index}]"
        errors += validate_selector(selector, path, allow_invalid_values=allow_invalid_values)
        if validate_selector(selector, path):
            errors.append(fields.invalid(path, None, "invalid label selector."))
    return errors


strategy = ClusterRoleStrategy()
