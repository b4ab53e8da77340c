"""Nobody gives rights that they do not have: the check on writes of roles and bindings.

The verb `escalate` on the role, or `bind` on the role that a binding names, lifts it.
"""

from __future__ import annotations

from typing import Any

from kubist.filters.attributes import quoted_list
from kubist.filters.authorization import EVERYTHING, MASTERS
from kubist.meta import status
from kubist.meta.fields import quoted
from kubist.rbac.rules import MOST, uncovered
from kubist.resources.context import Context
from kubist.turns import elsewhere

GROUP = "rbac.authorization.k8s.io"
LONG = 500
"""Rules, or values in them, from which on comparing them takes too long for the event loop."""
_COLLECTED = ("ownerReferences", "finalizers", "selfLink", "managedFields", "resourceVersion")
_FIELDS = (
    ("APIGroups", "apiGroups"),
    ("Resources", "resources"),
    ("NonResourceURLs", "nonResourceURLs"),
    ("ResourceNames", "resourceNames"),
    ("Verbs", "verbs"),
)

Object = dict[str, Any]


async def check_role(ctx: Context, new: Object, old: Object | None) -> None:
    """A role may be written by those who have all that it gives."""
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
        if uncovered(_held(ctx)[0], everything):
            raise _forbidden(ctx, new, "must have cluster-admin privileges to use the aggregationRule")


async def check_binding(ctx: Context, new: Object, old: Object | None) -> None:
    """A binding may be written by those who have all that its role gives."""
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
    held, problem = _held(ctx)
    long = len(held) + len(rules) > LONG or sum(map(_length, rules)) > LONG
    missing = await elsewhere(uncovered, held, rules) if long else uncovered(held, rules)
    if not missing:
        return
    user = f"user {quoted(ctx.user.name)} (groups={quoted_list(ctx.user.groups)})"
    lines = sorted({_shown(rule) for rule in _compact(missing)})
    if len(missing) >= MOST:
        lines.append("...")
    why = f"{user} is attempting to grant RBAC permissions not currently held:\n" + "\n".join(lines)
    if problem:
        why += f"; resolution errors: [{problem}]"
    raise _forbidden(ctx, obj, why)


def _length(rule: Object) -> int:
    return sum(len(rule[field]) for _, field in _FIELDS if rule.get(field))


def _held(ctx: Context) -> tuple[list[Object], str]:
    granted = ctx.objects.granted(ctx.user, ctx.namespace)
    return [*granted.resource_rules, *granted.non_resource_rules], granted.error


def _forbidden(ctx: Context, obj: Object, why: str) -> status.APIError:
    return status.forbidden(GROUP, ctx.resource.resource, obj["metadata"].get("name", ""), why)


def _aggregates(role: Object) -> bool:
    return bool((role.get("aggregationRule") or {}).get("clusterRoleSelectors"))


def _only_collected(new: Object, old: Object | None) -> bool:
    """Whether nothing changes but what garbage collection needs to change."""
    return old is not None and _rest(new) == _rest(old)


def _rest(obj: Object) -> Object:
    metadata = {name: value for name, value in obj["metadata"].items() if name not in _COLLECTED}
    return {**obj, "metadata": metadata}


def _compact(rules: list[Object]) -> list[Object]:
    """Single permissions on the same thing as one rule."""
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


def _shown(rule: Object) -> str:
    parts = [f"{called}:{quoted_list(rule[field])}" for called, field in _FIELDS if rule.get(field)]
    return "{" + ", ".join(parts) + "}"
