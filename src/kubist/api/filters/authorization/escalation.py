"""Privilege escalation check for roles and bindings: users may grant only permissions that they have.

The verb `escalate` on the role, or `bind` on the role that a binding refers to, bypasses the check.
"""

from __future__ import annotations

from kubist.api.filters.authorization.authorization import EVERYTHING, MASTERS
from kubist.api.filters.authorization.query import quoted_list
from kubist.api.rbac import MOST, uncovered
from kubist.api.resources.context import Context
from kubist.base.jsontext.quoting import quoted
from kubist.base.offload import away
from kubist.model.meta import status
from kubist.model.meta.object import Object

GROUP = "rbac.authorization.k8s.io"
LONG = 500
"""Number of rules, or of values in them, at which the comparison moves to a worker thread."""
_COLLECTED = ("ownerReferences", "finalizers", "selfLink", "managedFields", "resourceVersion")
_FIELDS = (
    ("APIGroups", "apiGroups"),
    ("Resources", "resources"),
    ("NonResourceURLs", "nonResourceURLs"),
    ("ResourceNames", "resourceNames"),
    ("Verbs", "verbs"),
)


async def check_role(ctx: Context, new: Object, old: Object | None) -> None:
    """Rejects a role with permissions that the user does not have. An aggregationRule needs all permissions."""
    if MASTERS in ctx.user.groups or _only_collected(new, old):
        return
    allowed, _ = await ctx.authorize(
        "escalate",
        group=GROUP,
        resource=ctx.resource.resource,
        namespace=ctx.namespace,
        name="" if ctx.verb == "create" else ctx.name,
    )
    if allowed:
        return
    await _confirm(ctx, new, new.get("rules") or [])
    if _aggregates(new) or (old is not None and _aggregates(old)):
        everything = [*EVERYTHING.resource_rules, *EVERYTHING.non_resource_rules]
        own_rules, _ = await _granted_rules(ctx, everything)
        if await away(len(own_rules) > LONG, uncovered, own_rules, everything):
            raise _forbidden(ctx, new, "must have cluster-admin privileges to use the aggregationRule")


async def check_binding(ctx: Context, new: Object, old: Object | None) -> None:
    """Rejects a binding to a role with permissions that the user does not have."""
    if MASTERS in ctx.user.groups or _only_collected(new, old):
        return
    ref = new.get("roleRef") or {}
    resource = {"Role": "roles", "ClusterRole": "clusterroles"}.get(ref.get("kind", ""))
    if resource is None:
        raise status.plain_error(f"unsupported role reference kind: {quoted(ref.get('kind', ''))}")
    name = ref.get("name", "")
    allowed, _ = await ctx.authorize(
        "bind", group=ref.get("apiGroup", ""), resource=resource, namespace=ctx.namespace, name=name
    )
    if allowed:
        return
    role = ctx.objects.get(resource, name, ctx.namespace if resource == "roles" else "", group=GROUP)
    if role is None:
        raise status.not_found(GROUP, ctx.resource.resource, name)
    await _confirm(ctx, new, role.get("rules") or [])


async def _confirm(ctx: Context, obj: Object, rules: list[Object]) -> None:
    own_rules, problem = await _granted_rules(ctx, rules)
    long = len(own_rules) + len(rules) > LONG or sum(map(_length, rules)) > LONG
    lines = await away(long, _missing_lines, own_rules, rules)
    if not lines:
        return
    user = f"user {quoted(ctx.user.name)} (groups={quoted_list(ctx.user.groups)})"
    why = f"{user} is attempting to grant RBAC permissions not currently held:\n" + "\n".join(lines)
    if problem:
        why += f"; resolution errors: [{problem}]"
    raise _forbidden(ctx, obj, why)


def _missing_lines(own_rules: list[Object], rules: list[Object]) -> list[str]:
    """Permissions that the user lacks, in the words of the message."""
    missing = uncovered(own_rules, rules)
    lines = sorted({_format_rule(rule) for rule in _compact(missing)})
    if len(missing) >= MOST:
        lines.append("...")
    return lines


def _length(rule: Object) -> int:
    return sum(len(rule[field]) for _, field in _FIELDS if rule.get(field))


async def _granted_rules(ctx: Context, wanted: list[Object]) -> tuple[list[Object], str]:
    """Rules of the user that may cover some of the wanted rules, and the errors of the user's bindings."""
    granted = await ctx.objects.granted(ctx.user, ctx.namespace, wanted)
    return [*granted.resource_rules, *granted.non_resource_rules], granted.error


def _forbidden(ctx: Context, obj: Object, why: str) -> status.APIError:
    return status.forbidden(GROUP, ctx.resource.resource, obj["metadata"].get("name", ""), why)


def _aggregates(role: Object) -> bool:
    return bool((role.get("aggregationRule") or {}).get("clusterRoleSelectors"))


def _only_collected(new: Object, old: Object | None) -> bool:
    """Whether the update changes only metadata fields that the garbage collector writes."""
    return old is not None and _rest(new) == _rest(old)


def _rest(obj: Object) -> Object:
    metadata = {name: value for name, value in obj["metadata"].items() if name not in _COLLECTED}
    return {**obj, "metadata": metadata}


def _compact(rules: list[Object]) -> list[Object]:
    """Merges permissions on the same resource into one rule."""
    compacted: list[Object] = []
    merged: dict[tuple[str, ...], Object] = {}
    for rule in rules:
        if rule.get("nonResourceURLs"):
            compacted.append(rule)
            continue
        key = (rule["apiGroups"][0], rule["resources"][0], *(rule.get("resourceNames") or ()))
        if key in merged:
            merged[key]["verbs"] += rule["verbs"]
        else:
            merged[key] = {**rule, "verbs": list(rule["verbs"])}
    return [*compacted, *merged.values()]


def _format_rule(rule: Object) -> str:
    parts = [f"{called}:{quoted_list(rule[field])}" for called, field in _FIELDS if rule.get(field)]
    return "{" + ", ".join(parts) + "}"
