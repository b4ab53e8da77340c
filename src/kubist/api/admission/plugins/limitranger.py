"""LimitRanger: sets a namespace's default amounts on containers, and rejects pods and claims outside its bounds."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING

from kubist.api.admission import amounts
from kubist.api.admission.amounts import Amounts
from kubist.api.admission.followed import Followed
from kubist.api.admission.plugin import CREATE, UPDATE, Plugin, forbidden
from kubist.api.resources.context import Context
from kubist.model.meta.object import Object
from kubist.model.meta.quantity import MAX_MILLI, ZERO, Quantity

if TYPE_CHECKING:
    from kubist.api.object_store.registry import Registry

ANNOTATION = "kubernetes.io/limit-ranger"


class LimitRanger(Plugin):
    def start(self, registry: Registry) -> None:
        self._ranges = self.followed = Followed(registry, "", "limitranges", _limits)

    def handles(self, resource: str, operation: str) -> bool:
        if resource == "persistentvolumeclaims":
            return operation in (CREATE, UPDATE)
        return (resource, operation) in (("pods", CREATE), ("pods/resize", UPDATE))

    def admit(self, ctx: Context, new: Object | None, old: Object | None) -> None:
        if new is None or ctx.resource.resource != "pods" or _is_being_deleted(old):
            return
        for limits in self._ranges.within(ctx.namespace):
            set_defaults(new, limits)

    def validate(self, ctx: Context, new: Object | None, old: Object | None) -> None:
        if new is None or _is_being_deleted(old):
            return
        for limits in self._ranges.within(ctx.namespace):
            wrong = list(dict.fromkeys(_violations(ctx, new, limits)))
            if wrong:
                raise forbidden(ctx, new, wrong[0] if len(wrong) == 1 else f"[{', '.join(wrong)}]")


def _is_being_deleted(old: Object | None) -> bool:
    return old is not None and "deletionTimestamp" in old["metadata"]


def _limits(limit_range: Object) -> list[Object]:
    return (limit_range.get("spec") or {}).get("limits") or []


def set_defaults(pod: Object, limits: list[Object]) -> None:
    """Sets the amounts that containers omit, and lists them in an annotation."""
    requests: dict[str, str] = {}
    ceilings: dict[str, str] = {}
    for limit in limits:
        if limit.get("type") == "Container":
            requests.update(limit.get("defaultRequest") or {})
            ceilings.update(limit.get("default") or {})
    done: list[str] = []
    for field, word in (("containers", "container"), ("initContainers", "init container")):
        for container in pod["spec"].get(field) or ():
            who = f"{word} {container.get('name', '')}"
            added_limits = _fill(container, "limits", ceilings)
            for side, added in (("request", _fill(container, "requests", requests)), ("limit", added_limits)):
                if added:
                    done.append(f"{', '.join(sorted(added))} {side} for {who}")
    if done:
        annotations = dict(pod["metadata"].get("annotations") or {})
        annotations[ANNOTATION] = f"LimitRanger plugin set: {'; '.join(done)}"
        pod["metadata"]["annotations"] = annotations


def _fill(container: Object, side: str, defaults: dict[str, str]) -> list[str]:
    current = (container.get("resources") or {}).get(side) or {}
    missing = {name: amount for name, amount in defaults.items() if name not in current}
    if missing:
        resources = dict(container.get("resources") or {})
        resources[side] = {**current, **missing}
        container["resources"] = resources
    return list(missing)


def _violations(ctx: Context, obj: Object, limits: list[Object]) -> Iterator[str]:
    for limit in limits:
        kind = limit.get("type", "")
        if ctx.resource.resource == "persistentvolumeclaims":
            if kind == "PersistentVolumeClaim":
                yield from _claim_violations(limit, obj)
        elif kind == "Container":
            spec = obj["spec"]
            for container in (*(spec.get("containers") or ()), *(spec.get("initContainers") or ())):
                resources = container.get("resources") or {}
                yield from _bounds(
                    limit, amounts.read(resources.get("requests")), amounts.read(resources.get("limits"))
                )
        elif kind == "Pod":
            yield from _bounds(
                limit, amounts.pod_requests(obj, overhead=False), amounts.pod_limits(obj, overhead=False)
            )


def _claim_violations(limit: Object, claim: Object) -> Iterator[str]:
    requests = amounts.read((claim["spec"].get("resources") or {}).get("requests"))
    yield from _minimum(limit, requests, {})
    yield from _maximum(limit, "request", requests, {})


def _bounds(limit: Object, requests: Amounts, limits: Amounts) -> Iterator[str]:
    yield from _minimum(limit, requests, limits)
    yield from _maximum(limit, "limit", limits, requests)
    kind = limit["type"]
    for name, bound in sorted(amounts.read(limit.get("maxLimitRequestRatio")).items()):
        usage = f"{name} max limit to request ratio per {kind} is {bound}"
        request, ceiling, _ = _comparable(requests.get(name, ZERO), limits.get(name, ZERO), bound)
        if not request:
            yield f"{usage}, but no request is specified or request is 0"
        elif not ceiling:
            yield f"{usage}, but no limit is specified or limit is 0"
        else:
            ratio, most = float(ceiling) / request, bound.value()
            if (ratio * 1000 > bound.milli_value()) if most <= MAX_MILLI else (ratio > most):
                yield f"{usage}, but provided ratio is {ratio:f}"


def _maximum(limit: Object, word: str, required: Amounts, requests: Amounts) -> Iterator[str]:
    """Violations of `max`. The amounts in `required` must be set and within `max`. Requests must be within `max` if
    set."""
    for name, bound in sorted(amounts.read(limit.get("max")).items()):
        usage = f"maximum {name} usage per {limit['type']} is {bound}"
        amount, request, most = _comparable(required.get(name, ZERO), requests.get(name, ZERO), bound)
        if name not in required:
            yield f"{usage}.  No {word} is specified"
        elif amount > most:
            yield f"{usage}, but {word} is {required[name]}"
        elif name in requests and request > most:
            yield f"{usage}, but request is {requests[name]}"


def _minimum(limit: Object, requests: Amounts, limits: Amounts) -> Iterator[str]:
    for name, bound in sorted(amounts.read(limit.get("min")).items()):
        usage = f"minimum {name} usage per {limit['type']} is {bound}"
        request, ceiling, least = _comparable(requests.get(name, ZERO), limits.get(name, ZERO), bound)
        if name not in requests:
            yield f"{usage}.  No request is specified"
        elif request < least:
            yield f"{usage}, but request is {requests[name]}"
        elif name in limits and ceiling < least:
            yield f"{usage}, but limit is {limits[name]}"


def _comparable(*quantities: Quantity) -> list[int]:
    """Quantities in milli units, or in whole units if one of them is too large for that."""
    values = [quantity.value() for quantity in quantities]
    return values if max(values) > MAX_MILLI else [quantity.milli_value() for quantity in quantities]
