"""Admission chain: mutating plugins in order, then validating plugins.

The plugins for each (resource, subresource, operation) are determined once and cached.
"""

from __future__ import annotations

import asyncio
from bisect import bisect_left
from collections.abc import Awaitable, Callable, Sequence
from time import perf_counter
from typing import TYPE_CHECKING

from kubist.api.admission.plugin import CONNECT, CREATE, DELETE, UPDATE, Pending, Plugin
from kubist.api.resources.context import Context
from kubist.base.caching import BoundedCache
from kubist.base.offload import LONG
from kubist.model.meta.object import Object
from kubist.storage.cache.collection import Collection

if TYPE_CHECKING:
    from kubist.api.object_store.registry import Registry

Step = tuple[Collection | None, Callable[[Context, Object | None, Object | None], Pending]]
"""Step of a plugin, and the collection that it acts on. The step is skipped while that collection is empty."""


PHASE_BUCKETS = (0.005, 0.025, 0.1, 0.5, 1.0, 2.5)
"""Upper bounds of the durations of a phase, in seconds."""


class Route:
    """Steps of the plugins that handle one operation on one resource."""

    __slots__ = ("admit", "validate")

    def __init__(self, plugins: Sequence[Plugin], resource: str, operation: str) -> None:
        caring = [plugin for plugin in plugins if plugin.handles(resource, operation)]
        self.admit: list[Step] = [(_basis(p), p.admit) for p in caring if type(p).admit is not Plugin.admit]
        self.validate: list[Step] = [
            (_basis(p), p.validate) for p in caring if type(p).validate is not Plugin.validate
        ]


def _basis(plugin: Plugin) -> Collection | None:
    return plugin.followed.collection if plugin.followed is not None else None


class Admission:
    """Admission plugins of a server."""

    def __init__(self, plugins: Sequence[Plugin] = ()) -> None:
        self.plugins = list(plugins)
        self.durations: dict[tuple[str, str, bool], list[float]] = {}
        """(operation, admit or validate, whether it was rejected) → number of phases in each bucket of PHASE_BUCKETS
        and above, then their total duration in seconds."""
        self._routes: BoundedCache[tuple[str, str, str, str], Route] = BoundedCache(
            entries=4096, key_length=512
        )

    def start(self, registry: Registry) -> None:
        for plugin in self.plugins:
            plugin.start(registry)
        self._routes.clear()

    def _route(self, ctx: Context, operation: str) -> Route:
        ctx.operation = operation
        resource = ctx.resource
        key = (resource.group, resource.resource, ctx.info.subresource, operation)
        route = self._routes.get(key)
        if route is None:
            name = f"{resource.resource}.{resource.group}" if resource.group else resource.resource
            if ctx.info.subresource:
                name = f"{name}/{ctx.info.subresource}"
            route = self._routes[key] = Route(self.plugins, name, operation)
        return route

    async def admit(self, ctx: Context, new: Object | None, old: Object | None) -> None:
        """Lets plugins change `new` in place or reject the request. `new` is None for a delete, `old` for a create."""
        steps = self._route(ctx, operation_of(new, old)).admit
        ctx.reinvocation = None
        await self._take(steps, ctx, new, old, "admit")
        if ctx.reinvocation is not None and ctx.reinvocation.is_needed:
            ctx.reinvocation.again = True
            await self._take(steps, ctx, new, old, "admit")

    def validate(self, ctx: Context, new: Object | None, old: Object | None) -> Awaitable[None]:
        """Lets plugins reject the final object."""
        return self._take(self._route(ctx, operation_of(new, old)).validate, ctx, new, old, "validate")

    async def delete(self, ctx: Context, old: Object) -> None:
        """Runs both phases for a delete, which has no object to mutate."""
        route = self._route(ctx, DELETE)
        await self._take(route.admit, ctx, None, old, "admit")
        await self._take(route.validate, ctx, None, old, "validate")

    async def connect(self, ctx: Context, options: Object) -> None:
        """Runs both phases for a CONNECT to a subresource. `options` is the query as an object."""
        route = self._route(ctx, CONNECT)
        await self._take(route.admit, ctx, options, None, "admit")
        await self._take(route.validate, ctx, options, None, "validate")

    async def _take(
        self, steps: list[Step], ctx: Context, new: Object | None, old: Object | None, phase: str
    ) -> None:
        """Runs the steps of a phase and records its duration."""
        long = len(ctx.request.body) > LONG
        began = perf_counter()
        rejected = True
        try:
            for basis, step in steps:
                if basis is None or basis.entries:
                    pending = step(ctx, new, old)
                    if pending is not None:
                        await pending
                    if long:  # Give other requests a turn between two steps.
                        await asyncio.sleep(0)
            rejected = False
        finally:
            seconds = perf_counter() - began
            key = (ctx.operation, phase, rejected)
            histogram = self.durations.get(key)
            if histogram is None:
                histogram = self.durations[key] = [0] * (len(PHASE_BUCKETS) + 2)
            histogram[bisect_left(PHASE_BUCKETS, seconds)] += 1
            histogram[-1] += seconds


def operation_of(new: Object | None, old: Object | None) -> str:
    if new is None:
        return DELETE
    return CREATE if old is None else UPDATE
