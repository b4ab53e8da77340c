"""managedFields for every kind of write: who the manager is, and the ownership that follows."""

from __future__ import annotations

from typing import Any

from kubist.kinds.strategy import Scale
from kubist.patch import apply as ssa
from kubist.patch.apply import managers, sets
from kubist.patch.apply.managers import Identity, Managed, Owned
from kubist.schema.catalog import schema_for
from kubist.schema.node import Schema
from kubist.verbs.call import Call

Object = dict[str, Any]
SCALE = "autoscaling/v1"


def manager(call: Call) -> str:
    """fieldManager, or the first part of the User-Agent."""
    if call.context.field_manager:
        return call.context.field_manager
    name = "".join(char for char in call.context.user_agent.partition("/")[0] if char.isprintable())
    return name.encode()[:128].decode(errors="ignore") or "unknown"


def converter(call: Call) -> ssa.Convert | None:
    """How to see an object in the other versions of its kind; None where there are none."""
    resource, resources = call.resource, call.api.resources
    group = resource.group
    if (
        not resource.custom
        and resource.api_version == resource.storage_version
        and len(resources.versions(group)) < 2
    ):
        return None

    def convert(obj: Object, api_version: str) -> tuple[Object, Schema] | None:
        wanted_group, _, version = api_version.rpartition("/")
        found = resources.get(wanted_group, version, resource.resource)
        if found is None or found.prefix != resource.prefix:
            return None
        if obj.get("apiVersion") == api_version:
            return obj, found.schema
        return resource.strategy.convert(copied(obj), api_version), found.schema

    return convert


def copied(obj: Object) -> Object:
    """A copy deep enough for a conversion to work on."""
    import orjson

    copy: Object = orjson.loads(orjson.dumps(obj))
    return copy


def track(
    call: Call, new: Object, live: Object | None, reset: tuple[str, ...], *, cleared: bool = False
) -> None:
    """Keep the managedFields of `new`, made by a create (`live` None), an update or a patch. Both objects are
    in the request's version."""
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
        convert=converter(call),
    )


def track_answer(call: Call, obj: Object, schema: Schema, api_version: str) -> None:
    """The same for a kind that is answered rather than stored."""
    ssa.update_managed_fields(
        schema,
        None,
        obj,
        manager=manager(call),
        api_version=api_version,
        now=call.context.now,
        subresource=call.info.subresource,
    )


def track_scale(call: Call, scale: Object, live: Object) -> None:
    """The same for the scale of an object, of which `live` has the owners."""
    ssa.update_managed_fields(
        schema_for("autoscaling", "v1", "Scale"),
        live,
        scale,
        manager=manager(call),
        api_version=SCALE,
        now=call.context.now,
        subresource="scale",
    )


def of_scale(obj: Object, path: Scale) -> list[Object]:
    """An object's managedFields as far as they are about its replicas, in terms of its Scale."""
    replicas = sets.dotted("spec.replicas")
    owners: Managed = {}
    for who, owned in _owners(obj, path):
        owners[_rescoped(who, SCALE)] = Owned(SCALE, replicas, owned.time)
    return managers.encode(owners)


def _owners(obj: Object, path: Scale) -> list[tuple[Identity, Owned]]:
    """Who owns the replicas of an object."""
    where = tuple("f:" + part for part in path.spec_replicas.split("."))
    managed = managers.decode(obj["metadata"].get("managedFields"), trusted=True)
    return [(who, owned) for who, owned in managed.items() if sets.has(owned.fields, where)]


def _rescoped(who: Identity, api_version: str) -> Identity:
    return Identity(who.manager, who.operation, api_version if who.api_version else "", who.subresource)


def from_scale(new: Object, old: Object, scale: Object, path: Scale) -> None:
    """Carry the owners of a written Scale over to the object whose replicas it set."""
    stored = old["metadata"].get("managedFields")
    if not stored:
        return
    api_version = new["apiVersion"]
    managed = managers.decode(stored, trusted=True)
    replicas = sets.dotted(path.spec_replicas)
    before = {_rescoped(who, SCALE): who for who, _ in _owners(old, path)}
    after = managers.decode(scale["metadata"].get("managedFields"), trusted=True)
    if not before and not after:
        return
    for seen, who in before.items():
        if seen not in after:
            fields = sets.difference(managed[who].fields, replicas)
            if fields:
                managed[who] = Owned(managed[who].api_version, fields, managed[who].time)
            else:
                del managed[who]
    for seen in after:
        if seen not in before:
            who = _rescoped(seen, api_version)
            held = managed.get(who)
            fields = sets.union(held.fields, replicas) if held is not None else replicas
            managed[who] = Owned(api_version, fields, held.time if held is not None else "")
    new["metadata"]["managedFields"] = managers.encode(managed)
