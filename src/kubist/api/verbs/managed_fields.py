"""managedFields of every write: the name of the field manager, and the fields that it owns."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from typing import TypeVar

import orjson

from kubist.api.resources.strategy import Scale
from kubist.api.verbs.resource_request import ResourceRequest
from kubist.base.caching import bounded_cache
from kubist.base.offload import away, elsewhere
from kubist.model.meta import status
from kubist.model.meta.object import Object
from kubist.model.patch import apply as ssa
from kubist.model.patch.apply import scale
from kubist.model.schema.catalog import schema_for
from kubist.model.schema.node import Schema

Owned = TypeVar("Owned")
SCALE = "autoscaling/v1"
LONGEST_PRODUCT = 1024
"""Maximum number of User-Agent characters that are read for the manager's name. The name keeps 128 bytes of them."""


def manager(ctx: ResourceRequest) -> str:
    """Name of the field manager: fieldManager, or the product of the User-Agent."""
    return ctx.field_manager or _product(ctx.request.headers.get("user-agent", ""))


@bounded_cache(entries=256, key_length=512)
def _product(user_agent: str) -> str:
    product = user_agent[:LONGEST_PRODUCT].partition("/")[0]
    name = "".join(char for char in product if char.isprintable())
    return name.encode()[:128].decode(errors="ignore") or "unknown"


def converter(ctx: ResourceRequest) -> ssa.Convert:
    """Function that converts an object to another version of its kind, with that version's schema."""
    resource, resources = ctx.resource, ctx.api.resources
    group = resource.group

    def convert(obj: Object, api_version: str) -> tuple[Object, Schema] | None:
        wanted_group, _, version = api_version.rpartition("/")
        if wanted_group != group:  # Events: fields owned through the other group are forgotten
            return None
        other = resources.get(group, version, resource.resource)
        if other is None:
            return None
        if obj.get("apiVersion") == api_version:
            return obj, other.schema
        return resource.strategy.convert(copied(obj), api_version), other.schema

    return convert


class _Unconverted(Exception):
    """Signal that ownership needs a conversion that the webhook has not done yet."""

    def __init__(self, obj: Object, api_version: str) -> None:
        super().__init__(api_version)
        self.obj = obj
        self.api_version = api_version


async def converting(ctx: ResourceRequest, own: Callable[[ssa.Convert], Owned]) -> Owned:
    """Result of `own`, which gets a function to convert objects. If a conversion webhook is needed, `own` stops, the
    webhook is called, and `own` starts again with the result."""
    convert, custom = converter(ctx), ctx.resource.custom
    if custom is None or custom.conversion.webhook is None:
        return await away(ctx.long, own, convert)
    known: dict[tuple[bytes, str], Object] = {}

    def asked(obj: Object, api_version: str) -> tuple[Object, Schema] | None:
        pair = convert(obj, api_version)
        if pair is None or obj.get("apiVersion") == api_version:
            return pair
        answer = known.get((orjson.dumps(obj), api_version))
        if answer is None:
            raise _Unconverted(obj, api_version)
        return copied(answer), pair[1]

    while True:
        try:
            return await away(ctx.long, own, asked)
        except _Unconverted as missing:
            key = orjson.dumps(missing.obj), missing.api_version
            known[key] = await custom.conversion.converted(copied(missing.obj), missing.api_version)


async def tracked(
    ctx: ResourceRequest, new: Object, live: Object | None, reset: tuple[str, ...], *, cleared: bool = False
) -> Object:
    """Result of `track`. A conversion webhook may be called, and long work leaves the event loop."""
    custom = ctx.resource.custom
    if custom is not None and custom.conversion.webhook is not None:
        await _tracked(ctx, new, live, reset, cleared=cleared)
        return new
    if ctx.long:
        return await elsewhere(partial(track, ctx, new, live, reset, cleared=cleared))
    return track(ctx, new, live, reset, cleared=cleared)


async def _tracked(
    ctx: ResourceRequest, new: Object, live: Object | None, reset: tuple[str, ...], *, cleared: bool
) -> None:
    """Run `track` with a conversion webhook. If the webhook fails, managedFields are dropped."""
    sent = new["metadata"].get("managedFields")

    def own(convert: ssa.Convert) -> None:
        if sent is not None:
            new["metadata"]["managedFields"] = sent
        _track(ctx, new, live, reset, cleared=cleared, convert=convert)

    try:
        await converting(ctx, own)
    except status.APIError:
        new["metadata"].pop("managedFields", None)


def copied(obj: Object) -> Object:
    """Deep copy of an object, for a conversion."""
    copy: Object = orjson.loads(orjson.dumps(obj))
    return copy


def track(
    ctx: ResourceRequest, new: Object, live: Object | None, reset: tuple[str, ...], *, cleared: bool = False
) -> Object:
    """Update the managedFields of `new` after a create (`live` is None), update or patch. Both objects are in the
    request's version. Returns the object that the write continues with."""
    owned = ctx.sent.as_owned(new, new=live is None)
    _track(ctx, owned, live, reset, cleared=cleared, convert=converter(ctx))
    return ctx.sent.with_null_lists(ctx.resource.schema, new)


def _track(
    ctx: ResourceRequest,
    new: Object,
    live: Object | None,
    reset: tuple[str, ...],
    *,
    cleared: bool,
    convert: ssa.Convert,
) -> None:
    ssa.update_managed_fields(
        ctx.resource.schema,
        live,
        new,
        manager=manager(ctx),
        api_version=ctx.resource.api_version,
        now=ctx.now,
        subresource=ctx.info.subresource,
        reset_fields=reset,
        cleared=cleared,
        convert=convert,
    )


def track_answer(ctx: ResourceRequest, obj: Object, schema: Schema, api_version: str) -> None:
    """Set the managedFields of a kind whose response is not stored."""
    ssa.update_managed_fields(
        schema,
        None,
        obj,
        manager=manager(ctx),
        api_version=api_version,
        now=ctx.now,
        subresource=ctx.info.subresource,
    )


def track_scale(ctx: ResourceRequest, new: Object, live: Object) -> None:
    """Update the managedFields of a Scale. `live` has the stored managedFields."""
    ssa.update_managed_fields(
        schema_for("autoscaling", "v1", "Scale"),
        live,
        new,
        manager=manager(ctx),
        api_version=SCALE,
        now=ctx.now,
        subresource="scale",
    )


def of_scale(ctx: ResourceRequest, obj: Object, path: Scale) -> list[Object]:
    """managedFields of an object's replicas, translated to fields of its Scale."""
    return scale.to_scale(obj["metadata"].get("managedFields"), _replicas(ctx, path))


def from_scale(ctx: ResourceRequest, new: Object, written: Object, path: Scale) -> None:
    """Translate the managedFields of a written Scale back to the scaled object."""
    metadata = new["metadata"]
    owners = scale.to_parent(
        metadata.get("managedFields"),
        written["metadata"].get("managedFields"),
        ctx.resource.api_version,
        _replicas(ctx, path),
    )
    if owners:
        metadata["managedFields"] = owners
    else:
        metadata.pop("managedFields", None)


def _replicas(ctx: ResourceRequest, path: Scale) -> dict[str, str]:
    """Path of the replicas in each version of the kind."""
    resource, resources = ctx.resource, ctx.api.resources
    paths = {}
    for version in resources.versions(resource.group):
        other = resources.get(resource.group, version, resource.resource)
        if other is not None:
            scaling = other.strategy.subresources.get("scale")
            paths[other.api_version] = (
                scaling.spec_replicas if isinstance(scaling, Scale) else path.spec_replicas
            )
    return paths
