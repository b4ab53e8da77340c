"""managedFields of every write: the name of the field manager, and the fields that it owns."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from typing import TypeVar

import orjson

from kubist.caching import bounded_cache
from kubist.meta import status
from kubist.meta.object import Object
from kubist.offload import away, elsewhere
from kubist.patch import apply as ssa
from kubist.patch.apply import scale
from kubist.resources.strategy import Scale
from kubist.schema.catalog import schema_for
from kubist.schema.node import Schema
from kubist.verbs.call import Call

Owned = TypeVar("Owned")
SCALE = "autoscaling/v1"
LONGEST_PRODUCT = 1024
"""Characters of a User-Agent that are read for the manager's name, of which 128 bytes are kept."""


def manager(call: Call) -> str:
    """Name of the field manager: fieldManager, or the product of the User-Agent."""
    context = call.context
    return context.field_manager or _product(context.user_agent)


@bounded_cache(entries=256, key_length=512)
def _product(user_agent: str) -> str:
    product = user_agent[:LONGEST_PRODUCT].partition("/")[0]
    name = "".join(char for char in product if char.isprintable())
    return name.encode()[:128].decode(errors="ignore") or "unknown"


def converter(call: Call) -> ssa.Convert:
    """Function that converts an object to another version of its kind, with that version's schema."""
    resource, resources = call.resource, call.api.resources
    group = resource.group

    def convert(obj: Object, api_version: str) -> tuple[Object, Schema] | None:
        wanted_group, _, version = api_version.rpartition("/")
        if wanted_group != group:  # of an event, what was owned through the other group is forgotten
            return None
        found = resources.get(group, version, resource.resource)
        if found is None:
            return None
        if obj.get("apiVersion") == api_version:
            return obj, found.schema
        return resource.strategy.convert(copied(obj), api_version), found.schema

    return convert


class _Unconverted(Exception):
    """Signal that ownership needs a conversion that the webhook has not done yet."""

    def __init__(self, obj: Object, api_version: str) -> None:
        super().__init__(api_version)
        self.obj = obj
        self.api_version = api_version


async def converting(call: Call, own: Callable[[ssa.Convert], Owned]) -> Owned:
    """Result of `own`, which gets a function to convert objects. If a conversion webhook is needed, `own` stops, the
    webhook is called, and `own` starts again with the result."""
    convert, conversion = converter(call), call.resource.strategy.conversion
    if conversion is None or conversion.webhook is None:
        return await away(call.long, own, convert)
    known: dict[tuple[bytes, str], Object] = {}

    def asked(obj: Object, api_version: str) -> tuple[Object, Schema] | None:
        found = convert(obj, api_version)
        if found is None or obj.get("apiVersion") == api_version:
            return found
        answer = known.get((orjson.dumps(obj), api_version))
        if answer is None:
            raise _Unconverted(obj, api_version)
        return copied(answer), found[1]

    while True:
        try:
            return await away(call.long, own, asked)
        except _Unconverted as wanted:
            key = orjson.dumps(wanted.obj), wanted.api_version
            known[key] = await conversion.converted(copied(wanted.obj), wanted.api_version)


async def tracked(
    call: Call, new: Object, live: Object | None, reset: tuple[str, ...], *, cleared: bool = False
) -> Object:
    """Result of `track`. A conversion webhook may be called, and long work leaves the event loop."""
    conversion = call.resource.strategy.conversion
    if conversion is not None and conversion.webhook is not None:
        await _tracked(call, new, live, reset, cleared=cleared)
        return new
    if call.long:
        return await elsewhere(partial(track, call, new, live, reset, cleared=cleared))
    return track(call, new, live, reset, cleared=cleared)


async def _tracked(
    call: Call, new: Object, live: Object | None, reset: tuple[str, ...], *, cleared: bool
) -> None:
    """Run `track` with a conversion webhook. If the webhook fails, managedFields are dropped."""
    sent = new["metadata"].get("managedFields")

    def own(convert: ssa.Convert) -> None:
        if sent is not None:
            new["metadata"]["managedFields"] = sent
        _track(call, new, live, reset, cleared=cleared, convert=convert)

    try:
        await converting(call, own)
    except status.APIError:
        new["metadata"].pop("managedFields", None)


def copied(obj: Object) -> Object:
    """Deep copy of an object, for a conversion."""
    copy: Object = orjson.loads(orjson.dumps(obj))
    return copy


def track(
    call: Call, new: Object, live: Object | None, reset: tuple[str, ...], *, cleared: bool = False
) -> Object:
    """Update the managedFields of `new` after a create (`live` is None), update or patch. Both objects are in the
    request's version. Returns the object with which the write goes on."""
    owned = call.sent.as_owned(new, new=live is None)
    _track(call, owned, live, reset, cleared=cleared, convert=converter(call))
    return call.sent.with_null_lists(call.resource.schema, new)


def _track(
    call: Call,
    new: Object,
    live: Object | None,
    reset: tuple[str, ...],
    *,
    cleared: bool,
    convert: ssa.Convert,
) -> None:
    ssa.update_managed_fields(
        call.resource.schema,
        live,
        new,
        manager=manager(call),
        api_version=call.resource.api_version,
        now=call.context.now,
        subresource=call.info.subresource,
        reset_fields=reset,
        cleared=cleared,
        convert=convert,
    )


def track_answer(call: Call, obj: Object, schema: Schema, api_version: str) -> None:
    """Set the managedFields of a kind whose response is not stored."""
    ssa.update_managed_fields(
        schema,
        None,
        obj,
        manager=manager(call),
        api_version=api_version,
        now=call.context.now,
        subresource=call.info.subresource,
    )


def track_scale(call: Call, new: Object, live: Object) -> None:
    """Update the managedFields of a Scale; those of `live` are the stored ones."""
    ssa.update_managed_fields(
        schema_for("autoscaling", "v1", "Scale"),
        live,
        new,
        manager=manager(call),
        api_version=SCALE,
        now=call.context.now,
        subresource="scale",
    )


def of_scale(call: Call, obj: Object, path: Scale) -> list[Object]:
    """managedFields of an object's replicas, translated to fields of its Scale."""
    return scale.to_scale(obj["metadata"].get("managedFields"), _replicas(call, path))


def from_scale(call: Call, new: Object, written: Object, path: Scale) -> None:
    """Translate the managedFields of a written Scale back to the scaled object."""
    metadata = new["metadata"]
    owners = scale.to_parent(
        metadata.get("managedFields"),
        written["metadata"].get("managedFields"),
        call.resource.api_version,
        _replicas(call, path),
    )
    if owners:
        metadata["managedFields"] = owners
    else:
        metadata.pop("managedFields", None)


def _replicas(call: Call, path: Scale) -> dict[str, str]:
    """Path of the replicas in each version of the kind."""
    resource, resources = call.resource, call.api.resources
    found = {}
    for version in resources.versions(resource.group):
        other = resources.get(resource.group, version, resource.resource)
        if other is not None:
            scaling = other.strategy.subresources.get("scale")
            found[other.api_version] = (
                scaling.spec_replicas if isinstance(scaling, Scale) else path.spec_replicas
            )
    return found
