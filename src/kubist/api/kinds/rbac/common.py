"""Base strategies of roles and of bindings. Names of all four kinds are path segments."""

from __future__ import annotations

from kubist.api.filters.authorization import escalation
from kubist.api.resources.allocations import Allocations
from kubist.api.resources.context import Context
from kubist.api.resources.strategy import Errors, Strategy
from kubist.model.meta import fields, names, objectmeta
from kubist.model.meta.object import Object
from kubist.model.schema.internals import internal_form

GROUP = "rbac.authorization.k8s.io"


class RBACStrategy(Strategy):
    """Base of all kinds in the group."""

    create_on_update = True
    metadata_rules = ("object",)

    def validate_name(self, name: str, prefix: bool) -> list[str]:
        return names.path_segment(name)


def validate_rules(rules: list[Object] | None, *, namespaced: bool) -> Errors:
    errors: Errors = []
    for index, rule in enumerate(rules or ()):
        errors += validate_rule(rule, f"rules[{index}]", namespaced=namespaced)
    return errors


def validate_rule(rule: Object, path: str, *, namespaced: bool) -> Errors:
    """Validates a rule: it covers resources or non-resource URLs, and URLs only in a ClusterRole."""
    errors = []
    if not rule.get("verbs"):
        errors.append(fields.required(f"{path}.verbs", "verbs must contain at least one value"))
    urls = rule.get("nonResourceURLs")
    if urls:
        if namespaced:
            why = "namespaced rules cannot apply to non-resource URLs"
            errors.append(fields.invalid(f"{path}.nonResourceURLs", urls, why))
        if rule.get("apiGroups") or rule.get("resources") or rule.get("resourceNames"):
            why = "rules cannot apply to both regular resources and non-resource URLs"
            errors.append(fields.invalid(f"{path}.nonResourceURLs", urls, why))
        return errors
    if not rule.get("apiGroups"):
        why = "resource rules must supply at least one api group"
        errors.append(fields.required(f"{path}.apiGroups", why))
    if not rule.get("resources"):
        why = "resource rules must supply at least one resource"
        errors.append(fields.required(f"{path}.resources", why))
    return errors


def default_binding(obj: Object) -> None:
    role = obj.setdefault("roleRef", {})
    role["apiGroup"] = role.get("apiGroup") or GROUP
    for subject in obj.get("subjects") or ():
        if subject.get("kind") in ("User", "Group") and not subject.get("apiGroup"):
            subject["apiGroup"] = GROUP


def validate_binding(obj: Object, *, namespaced: bool) -> Errors:
    kinds = ("Role", "ClusterRole") if namespaced else ("ClusterRole",)
    errors = []
    role = obj.get("roleRef") or {}
    if role.get("apiGroup", "") != GROUP:
        errors.append(fields.not_supported("roleRef.apiGroup", role.get("apiGroup", ""), (GROUP,)))
    if role.get("kind", "") not in kinds:
        errors.append(fields.not_supported("roleRef.kind", role.get("kind", ""), kinds))
    name = role.get("name", "")
    if not name:
        errors.append(fields.required("roleRef.name"))
    errors += [fields.invalid("roleRef.name", name, message) for message in names.path_segment(name)]
    for index, subject in enumerate(obj.get("subjects") or ()):
        errors += validate_subject(subject, f"subjects[{index}]", namespaced=namespaced)
    return errors


def validate_subject(subject: Object, path: str, *, namespaced: bool) -> Errors:
    errors = []
    name = subject.get("name", "")
    group = subject.get("apiGroup", "")
    if not name:
        errors.append(fields.required(f"{path}.name"))
    match subject.get("kind", ""):
        case "ServiceAccount":
            if name:
                errors += [fields.invalid(f"{path}.name", name, m) for m in names.dns_subdomain(name)]
            if group:
                errors.append(fields.not_supported(f"{path}.apiGroup", group, ("",)))
            if not namespaced and not subject.get("namespace"):
                errors.append(fields.required(f"{path}.namespace"))
        case "User" | "Group":
            if group != GROUP:
                errors.append(fields.not_supported(f"{path}.apiGroup", group, (GROUP,)))
        case kind:
            kinds = ("ServiceAccount", "User", "Group")
            errors.append(fields.not_supported(f"{path}.kind", kind, kinds))
    return errors


class RoleStrategy(RBACStrategy):
    """Role: the author must have the permissions that it grants, or the `escalate` verb on roles."""

    async def before_write(
        self, ctx: Context, new: Object, old: Object | None, allocations: Allocations
    ) -> None:
        await escalation.check_role(ctx, new, old)


class BindingStrategy(RBACStrategy):
    """Binding: the author must have the permissions of the role, or the `bind` verb on it. The roleRef is immutable."""

    async def before_write(
        self, ctx: Context, new: Object, old: Object | None, allocations: Allocations
    ) -> None:
        await escalation.check_binding(ctx, new, old)

    def default(self, obj: Object) -> None:
        default_binding(obj)

    def validate(self, ctx: Context, new: Object, old: Object | None) -> Errors:
        errors = validate_binding(new, namespaced=ctx.resource.namespaced)
        if old is not None:
            errors += objectmeta.validate_update(new["metadata"], old["metadata"])
            if new["roleRef"] != old["roleRef"]:
                shown = internal_form("rbac.RoleRef", new["roleRef"])
                errors.append(fields.invalid("roleRef", shown, "cannot change roleRef"))
        return errors
