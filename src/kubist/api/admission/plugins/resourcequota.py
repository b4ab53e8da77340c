"""ResourceQuota: rejects writes that exceed the quotas of the namespace.

Concurrent requests in one namespace are checked and written as one batch. The usage is written by compare-and-swap
before the object, so that several servers on one store never exceed a quota.
"""

from __future__ import annotations

import asyncio
from collections.abc import Iterable
from typing import TYPE_CHECKING, Any

from kubist.api.admission import amounts
from kubist.api.admission.amounts import Amounts
from kubist.api.admission.followed import Followed
from kubist.api.admission.plugin import Pending, Plugin, forbidden
from kubist.api.admission.quota import IGNORED, OPERATIONS, Evaluator, evaluator_for
from kubist.api.resources.context import Context
from kubist.model.meta import status
from kubist.model.meta.object import Object
from kubist.model.meta.quantity import ZERO
from kubist.model.patch import apply as ssa
from kubist.model.schema.catalog import schema_for

if TYPE_CHECKING:
    from kubist.api.object_store.registry import Registry


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


RETRIES = 3


class Request:
    """Write that waits for its charge."""

    __slots__ = ("ctx", "done", "evaluator", "new", "old")

    def __init__(self, ctx: Context, evaluator: Evaluator, new: Object, old: Object | None) -> None:
        self.ctx = ctx
        self.evaluator = evaluator
        self.new = new
        self.old = old
        self.done: asyncio.Future[None] = asyncio.get_running_loop().create_future()

    def settle(self, error: Exception | None = None) -> None:
        if not self.done.done():
            if error is not None:
                self.done.set_exception(error)
            else:
                self.done.set_result(None)


class Ledger:
    """Quota accounting of a server, by namespace."""

    def __init__(self, registry: Registry) -> None:
        self._registry = registry
        self._waiting: dict[str, list[Request]] = {}
        self._working: dict[str, asyncio.Task[None]] = {}

    async def charge(self, ctx: Context, evaluator: Evaluator, new: Object, old: Object | None) -> None:
        """Charges a write to the quotas of its namespace, or rejects it."""
        request = Request(ctx, evaluator, new, old)
        self._waiting.setdefault(ctx.namespace, []).append(request)
        if ctx.namespace not in self._working:
            self._working[ctx.namespace] = asyncio.create_task(self._work(ctx.namespace))
        await request.done

    async def _work(self, namespace: str) -> None:
        try:
            while batch := self._waiting.pop(namespace, None):
                try:
                    await self._settle(namespace, batch)
                except Exception as error:
                    for request in batch:
                        request.settle(error)
        finally:
            del self._working[namespace]

    async def _settle(self, namespace: str, batch: list[Request]) -> None:
        """Checks a batch against the current quotas and writes the new usage. If another write changed some quotas in
        the meantime, retries only these, because the others are already charged."""
        objects = batch[0].ctx.objects
        names: set[str] | None = None
        for _ in range(RETRIES + 1):
            listed = objects.list("resourcequotas", namespace)
            quotas = [quota for quota in listed if names is None or quota["metadata"]["name"] in names]
            before = [amounts.read((quota.get("status") or {}).get("used")) for quota in quotas]
            used = [dict(amount) for amount in before]
            charged = []
            for request in batch:
                try:
                    changes = check(request, quotas, used)
                except status.APIError as error:
                    request.settle(error)
                    continue
                if changes and not request.ctx.dry_run:
                    used = [changes.get(index, usage) for index, usage in enumerate(used)]
                    charged.append(request)
                else:
                    request.settle()
            changed = [index for index, usage in enumerate(used) if usage != before[index]]
            lost = {
                quotas[index]["metadata"]["name"]
                for index in changed
                if not await _write(charged[0].ctx, quotas[index], used[index])
            }
            if not lost:
                for request in charged:
                    request.settle()
                return
            names, batch = lost, charged
            await self._registry.cache.catch_up()
        for request in batch:
            name = sorted(names or ())[0]
            why = (
                "the object has been modified; please apply your changes to the latest version and try again"
            )
            request.settle(status.conflict("", "resourcequotas", name, why))


async def _write(ctx: Context, quota: Object, used: Amounts) -> bool:
    """Writes a quota's usage. Returns False if the quota is no longer the checked version. A deleted quota counts
    as written."""
    metadata = quota["metadata"]
    stale = False

    def change(current: Object) -> Object | None:
        nonlocal stale
        if current["metadata"].get("resourceVersion") != metadata.get("resourceVersion"):
            stale = True
            return None
        before = {**current, "metadata": dict(current["metadata"])}
        current["status"] = {**(current.get("status") or {}), "used": amounts.write(used)}
        ssa.own_status(_schema(), before, current, api_version="v1", now=ctx.now)
        return current

    try:
        await ctx.objects.mutate("resourcequotas", metadata["name"], metadata["namespace"], change)
    except status.APIError as error:
        if error.code != 404:
            raise
    return not stale


def _schema() -> Any:
    return schema_for("", "v1", "ResourceQuota")


def check(request: Request, quotas: list[Object], used: list[Amounts]) -> dict[int, Amounts]:
    """Usage of each quota after a request, by index. Raises 403 if the request exceeds a quota."""
    ctx, evaluator, new, old = request.ctx, request.evaluator, request.new, request.old
    interesting = []
    for index, quota in enumerate(quotas):
        if not evaluator.matches(quota, new):
            continue
        name = quota["metadata"]["name"]
        restricted = evaluator.concerned(quota["status"]["hard"])
        missing = evaluator.missing(restricted, new)
        if missing:
            raise forbidden(ctx, new, f"failed quota: {name}: {missing}")
        if not used[index].keys() >= set(restricted):
            why = f"status unknown for quota: {name}, resources: {','.join(restricted)}"
            raise forbidden(ctx, new, why)
        interesting.append(index)
    if not interesting:
        return {}
    usage = evaluator.usage(new)
    negative = sorted(name for name, amount in usage.items() if amount < ZERO)
    if negative:
        why = f"quota usage is negative for resource(s): {','.join(negative)}"
        raise forbidden(ctx, new, why)
    growth = usage
    if old is not None:
        before = evaluator.usage(old)
        growth = {name: amount - before.get(name, ZERO) for name, amount in usage.items()}
    changes = {}
    for index in interesting:
        quota = quotas[index]
        delta = growth if old is not None and evaluator.matches(quota, old) else usage
        hard = amounts.read(quota["status"]["hard"])
        requested = {name: amount for name, amount in amounts.mask(delta, hard).items() if amount > ZERO}
        if not requested:
            continue
        after = dict(used[index])
        amounts.add(after, requested)
        exceeded = [name for name in requested if after[name] > hard[name]]
        if exceeded and ctx.subresource != "status":
            texts = (_format_amounts(exceeded, listed) for listed in (requested, used[index], hard))
            request_text, used_text, limited = texts
            what = f"exceeded quota: {quota['metadata']['name']}, requested: {request_text}"
            raise forbidden(ctx, new, f"{what}, used: {used_text}, limited: {limited}")
        changes[index] = after
    return changes


def _format_amounts(names: Iterable[str], listed: Amounts) -> str:
    return ",".join(f"{name}={listed[name]}" for name in sorted(names) if name in listed)
