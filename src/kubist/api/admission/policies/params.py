"""Parameters that a binding gives its policy."""

from __future__ import annotations

from typing import Any

import orjson

from kubist.api.resources.context import Context
from kubist.model.meta.object import Object
from kubist.model.meta.selectors import label_selector


class Misconfigured(Exception):
    """Policy or binding that cannot be evaluated because of its configuration."""


def find_kind(ctx: Context, kind: Object | None) -> Any:
    """Resource of the policy's paramKind; None if the policy has no parameters. Raises Misconfigured if it is not
    served."""
    if kind is None:
        return None
    group, _, version = kind.get("apiVersion", "").rpartition("/")
    found = ctx.objects.find_kind(group, version, kind.get("kind", ""))
    if found is None:
        shown = f"{group}/{version}, Kind={kind.get('kind', '')}"
        raise Misconfigured(f"failed to find resource referenced by paramKind: '{shown}'")
    return found


def collect(ctx: Context, resource: Any, ref: Object | None, namespace: str) -> list[Object | None]:
    """Parameter objects; the policy is evaluated once for each. `[None]` means one evaluation without parameters."""
    if resource is None or ref is None:
        return [None]
    where = ref.get("namespace", "")
    if where and not resource.namespaced:
        raise Misconfigured("paramRef.namespace must not be provided for a cluster-scoped `paramKind`")
    if resource.namespaced:
        where = where or namespace
        if not where:
            why = "cannot use namespaced paramRef in policy binding that matches cluster-scoped resources"
            raise Misconfigured(why)
    found = []
    if ref.get("name"):
        one = ctx.objects.get(resource.resource, ref["name"], where, group=resource.group)
        found = [one] if one is not None else []
    elif ref.get("selector") is not None:
        selector = label_selector(ref["selector"])
        for obj in ctx.objects.list(resource.resource, where, group=resource.group):
            if selector.matches(obj["metadata"].get("labels") or {}):
                found.append(obj)
    if not found and ref.get("parameterNotFoundAction") == "Deny":
        raise Misconfigured("no params found for policy binding with `Deny` parameterNotFoundAction")
    return [_in_version(obj, resource) for obj in found]


def _in_version(obj: Object, resource: Any) -> Object:
    if obj.get("apiVersion") == resource.api_version:
        return obj
    converted: Object = resource.strategy.convert(orjson.loads(orjson.dumps(obj)), resource.api_version)
    return converted
