"""delete: graceful while a grace period or a finalizer delays the removal, immediate otherwise.

Every step from a stored entry to its removal (`delete_object`), for delete, deletecollection and control loops:

1. preconditions: `check_preconditions`
2. validating admission: `admission.delete`
3. marking: deletionTimestamp, grace period and the finalizers of the propagation policy (`mark`)
4. if the deletion waits, the marked object is stored; otherwise it is removed, and the kind releases its resources
   (`after_delete`)

Steps 1, 3 and 4 run again with the newest version if another write came first.
"""

from __future__ import annotations

from typing import NamedTuple

from kubist.api.verbs.finalizers import set_propagation_finalizers
from kubist.api.verbs.options import DeleteOptions, delete_options, read_delete_options
from kubist.api.verbs.resource_request import ResourceRequest
from kubist.api.verbs.resource_versions import MODIFIED
from kubist.api.verbs.responses import negotiate_representation, respond_entry, respond_object
from kubist.api.verbs.storage_version import decode_entry, to_custom_storage_version, to_request_version
from kubist.base import clock
from kubist.base.http.messages import Response
from kubist.model.meta import status
from kubist.model.meta.durations import SECOND
from kubist.model.meta.object import Object
from kubist.model.meta.objectmeta import raise_generation_if_set
from kubist.model.meta.times import format_time, parse_time
from kubist.storage.cache.cache import Entry


async def delete(ctx: ResourceRequest) -> Response:
    if ctx.info.subresource:
        raise status.method_not_allowed()
    representation = negotiate_representation(ctx, "object")
    options = delete_options(read_delete_options(ctx), ctx.query)
    ctx.dry_run = options.dry_run
    ctx.options = options.to_json()
    ctx.resource.strategy.before_delete(ctx, ctx.info.name, options.propagation)
    registry, resource = ctx.api.registry, ctx.resource
    entry = await registry.read(resource, ctx.info.namespace, ctx.info.name)
    if entry is None:
        raise ctx.not_found()
    gone, remaining_entry = await delete_object(ctx, entry, options)
    if remaining_entry is not None:
        code = 202 if options.orphan_dependents is False else 200
        return await respond_entry(ctx, code, remaining_entry, representation)
    if resource.strategy.returns_deleted:
        return await respond_object(ctx, 200, to_request_version(ctx, gone), representation)
    return await respond_object(ctx, 200, deleted_status(ctx, gone), representation)


def deleted_status(ctx: ResourceRequest, obj: Object) -> status.Status:
    resource, metadata = ctx.resource, obj["metadata"]
    details = {"name": metadata["name"]}
    if resource.group:
        details["group"] = resource.group
    details["kind"] = resource.resource
    details["uid"] = metadata.get("uid", "")
    return status.success(0, details)


async def delete_object(
    ctx: ResourceRequest, entry: Entry, options: DeleteOptions, *, admitted: bool = False
) -> tuple[Object, Entry | None]:
    """Delete the object of `entry`, in its newest version. Returns (deleted object, None), or (object, entry that
    waits for its grace period or finalizers). With `admitted`, admission is skipped."""
    registry, resource = ctx.api.registry, ctx.resource
    strategy = resource.strategy
    while True:
        obj = await decode_entry(ctx, entry)
        check_preconditions(ctx, obj, options)
        if not admitted:
            await ctx.api.admission.delete(ctx, obj)
            admitted = True
        special = strategy.mark_deleted(ctx, obj)
        if special is None:
            marked = mark(ctx, obj, options)
        elif special:
            if strategy.keeps_propagation:
                set_propagation_finalizers(ctx, obj["metadata"], options)
            marked = Marked(write=True, waits=True)
        else:
            marked = Marked(write=False, waits=strategy.blocks_removal(obj))
        if ctx.dry_run:
            obj["metadata"]["resourceVersion"] = str(entry.revision)
            if not marked.waits:
                return obj, None
            kind = registry.kind(resource)
            value = kind.encode(await to_custom_storage_version(ctx, obj))
            return obj, kind.entry(entry.key, value, entry.revision)
        written: Entry | None = entry
        if marked.write:
            written = await registry.replace(resource, entry, await to_custom_storage_version(ctx, obj))
        if written is not None and marked.waits:
            return obj, written
        if written is not None:
            revision = await registry.remove(written)
            gone = written.object()
            if revision is not None:
                gone["metadata"]["resourceVersion"] = str(revision)
                await strategy.after_delete(ctx, gone)
                return gone, None
        fresh = await registry.refresh(resource, entry.key)
        if fresh is None:
            if written is not None and marked.write:
                return gone, None  # another request completed this deletion
            raise ctx.not_found(entry.name)
        if options.resource_version is not None:
            raise ctx.conflict(entry.name, MODIFIED)
        entry = fresh


def check_preconditions(ctx: ResourceRequest, obj: Object, options: DeleteOptions) -> None:
    metadata = obj["metadata"]
    pairs = (
        ("UID", options.uid, "uid", "deleted and then recreated"),
        ("ResourceVersion", options.resource_version, "resourceVersion", "modified"),
    )
    for word, value, field, happened in pairs:
        actual = metadata.get(field, "")
        if value is None or value == actual:
            continue
        where = ctx.resource.strategy.precondition_kind
        if where:
            why = f"Precondition failed: {word} in precondition: {value}, {word} in object meta: {actual}"
        else:
            why = f"the {word} in the precondition ({value}) does not match the {word} in record ({actual})."
            why += f" The object might have been {happened}"
        raise status.conflict(ctx.resource.stored_group, where or ctx.resource.kind, metadata["name"], why)


class Marked(NamedTuple):
    """Result of `mark`: whether to write the marked object, and whether the deletion must wait."""

    write: bool
    waits: bool


def mark(ctx: ResourceRequest, obj: Object, options: DeleteOptions) -> Marked:
    """Set deletionTimestamp, the grace period and the finalizers of the propagation policy."""
    metadata = obj["metadata"]
    grace = _grace(ctx, obj, options)
    if grace is PENDING:
        return Marked(write=False, waits=True)
    set_propagation_finalizers(ctx, metadata, options)
    has_finalizers = bool(metadata.get("finalizers"))
    if grace is None and has_finalizers:
        _mark_held(ctx, metadata)
    return Marked(write=grace is not None or has_finalizers, waits=has_finalizers or bool(grace))


PENDING = -1
"""Result of `_grace`: a graceful deletion is under way, and the request does not shorten it."""


def _grace(ctx: ResourceRequest, obj: Object, options: DeleteOptions) -> int | None:
    """Begin or shorten a graceful deletion. Returns its grace period in seconds, or None without one."""
    metadata, now = obj["metadata"], parse_time(ctx.now)
    new_period = options.grace_period_seconds
    if new_period is not None and new_period < 0:
        new_period = 1
    period = ctx.resource.strategy.grace_period(obj, new_period)
    if period is None:
        return None
    if "deletionTimestamp" not in metadata:
        when = now + _go_seconds(period)
        raise_generation_if_set(metadata)
    else:
        old_period = metadata.get("deletionGracePeriodSeconds")
        if not old_period:
            return None
        old_period = max(old_period, 1)
        if new_period is None or new_period >= old_period:
            return PENDING
        period = new_period
        when = parse_time(metadata["deletionTimestamp"]) + _go_seconds(period - old_period)
        if when < clock.now():
            # The requested grace period is over, but the kubelet must still see the request.
            when, period = now, min(period, 1)
    metadata["deletionTimestamp"] = format_time(when)
    metadata["deletionGracePeriodSeconds"] = period
    return period


def _mark_held(ctx: ResourceRequest, metadata: Object) -> None:
    """Mark an object that only finalizers hold."""
    now, since = ctx.now, metadata.get("deletionTimestamp")
    if since is None:
        raise_generation_if_set(metadata)
    if since is None or since > now:
        metadata["deletionTimestamp"] = now
    metadata["deletionGracePeriodSeconds"] = 0


def _go_seconds(seconds: int) -> int:
    """Seconds as a Go duration, whose nanoseconds overflow beyond 292 years."""
    nanoseconds = (seconds * SECOND + (1 << 63)) % (1 << 64) - (1 << 63)
    return nanoseconds // SECOND
