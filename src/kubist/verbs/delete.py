"""delete: graceful while a grace period or a finalizer holds the object, at once otherwise."""

from __future__ import annotations

import time
from typing import NamedTuple

from kubist.http.messages import Response
from kubist.meta import status
from kubist.meta.durations import SECOND
from kubist.meta.generation import raise_generation_if_set
from kubist.meta.object import Object
from kubist.meta.times import format_time, parse_time
from kubist.storage.cache import Entry
from kubist.verbs import deleteoptions
from kubist.verbs.call import Call
from kubist.verbs.finalizers import set_propagation_finalizers
from kubist.verbs.metadata import MODIFIED
from kubist.verbs.options import DeleteOptions, delete_options
from kubist.verbs.storage_version import to_request_version


async def delete(call: Call) -> Response:
    if call.info.subresource:
        raise status.method_not_allowed()
    shown = call.negotiate("object")
    options = delete_options(deleteoptions.read(call), call.query)
    call.context.dry_run = options.dry_run
    call.context.options = options.given()
    call.resource.strategy.before_delete(call.context, call.info.name, options.propagation)
    registry, resource = call.api.registry, call.resource
    entry = await registry.read(resource, call.info.namespace, call.info.name)
    if entry is None:
        raise call.not_found()
    gone, held = await remove(call, entry, options)
    if held is not None:
        code = 202 if options.orphan_dependents is False else 200
        return await call.entry(code, held, shown)
    if resource.strategy.returns_deleted:
        return await call.value(200, to_request_version(call, gone), shown)
    return await call.value(200, deleted_status(call, gone), shown)


def deleted_status(call: Call, obj: Object) -> status.Status:
    resource, metadata = call.resource, obj["metadata"]
    details = {"name": metadata["name"]}
    if resource.group:
        details["group"] = resource.group
    details["kind"] = resource.resource
    details["uid"] = metadata.get("uid", "")
    return status.success(0, details)


async def remove(
    call: Call, entry: Entry, options: DeleteOptions, *, admitted: bool = False
) -> tuple[Object, Entry | None]:
    """Delete the object of `entry`, in its newest version. Returns (deleted object, None), or (object, entry that
    waits for its grace period or finalizers). With `admitted`, admission is skipped."""
    registry, resource, context = call.api.registry, call.resource, call.context
    strategy = resource.strategy
    while True:
        obj = await call.decode_entry(entry)
        check_preconditions(call, obj, options)
        if not admitted:
            await call.api.admission.delete(context, obj)
            admitted = True
        special = strategy.mark_deleted(context, obj)
        if special is None:
            marked = mark(call, obj, options)
        elif special:
            if strategy.keeps_propagation:
                set_propagation_finalizers(call, obj["metadata"], options)
            marked = Marked(write=True, waits=True)
        else:
            marked = Marked(write=False, waits=strategy.held(obj))
        if context.dry_run:
            obj["metadata"]["resourceVersion"] = str(entry.revision)
            return obj, None if not marked.waits else registry.kind(resource).entry(
                entry.key, registry.kind(resource).encode(obj), entry.revision
            )
        written: Entry | None = entry
        if marked.write:
            written = await registry.replace(resource, entry, await call.to_stored_version(obj))
        if written is not None and marked.waits:
            return obj, written
        if written is not None:
            revision = await registry.remove(written)
            gone = written.object()
            if revision is not None:
                gone["metadata"]["resourceVersion"] = str(revision)
                await strategy.after_delete(context, gone)
                return gone, None
        fresh = await registry.refresh(resource, entry.key)
        if fresh is None:
            if written is not None and marked.write:
                return gone, None  # somebody else completed what this delete began
            raise call.not_found(entry.name)
        if options.resource_version is not None:
            raise call.conflict(entry.name, MODIFIED)
        entry = fresh


def check_preconditions(call: Call, obj: Object, options: DeleteOptions) -> None:
    metadata = obj["metadata"]
    pairs = (
        ("UID", options.uid, "uid", "deleted and then recreated"),
        ("ResourceVersion", options.resource_version, "resourceVersion", "modified"),
    )
    for word, wanted, field, happened in pairs:
        held = metadata.get(field, "")
        if wanted is None or wanted == held:
            continue
        where = call.resource.strategy.precondition_kind
        if where:
            why = f"Precondition failed: {word} in precondition: {wanted}, {word} in object meta: {held}"
        else:
            why = f"the {word} in the precondition ({wanted}) does not match the {word} in record ({held})."
            why += f" The object might have been {happened}"
        raise status.conflict(call.resource.stored_group, where or call.resource.kind, metadata["name"], why)


class Marked(NamedTuple):
    """Marking of an object for deletion: whether it is written, and whether the deletion waits then."""

    write: bool
    waits: bool


def mark(call: Call, obj: Object, options: DeleteOptions) -> Marked:
    """Set deletionTimestamp, the grace period and the finalizers of the propagation policy."""
    metadata = obj["metadata"]
    grace = _grace(call, obj, options)
    if grace is PENDING:
        return Marked(write=False, waits=True)
    set_propagation_finalizers(call, metadata, options)
    held = bool(metadata.get("finalizers"))
    if grace is None and held:
        _mark_held(call, metadata)
    return Marked(write=grace is not None or held, waits=held or bool(grace))


PENDING = -1
"""Result of `_grace`: a graceful deletion is under way, and the request does not shorten it."""


def _grace(call: Call, obj: Object, options: DeleteOptions) -> int | None:
    """Begin or shorten a graceful deletion. Returns its grace period in seconds, or None without one."""
    metadata, now = obj["metadata"], parse_time(call.context.now)
    asked = options.grace_period_seconds
    if asked is not None and asked < 0:
        asked = 1
    period = call.resource.strategy.grace_period(call.context, obj, asked)
    if period is None:
        return None
    if "deletionTimestamp" not in metadata:
        when = now + _go_seconds(period)
        raise_generation_if_set(metadata)
    else:
        held = metadata.get("deletionGracePeriodSeconds")
        if not held:
            return None
        held = max(held, 1)
        if asked is None or asked >= held:
            return PENDING
        period = asked
        when = parse_time(metadata["deletionTimestamp"]) + _go_seconds(period - held)
        if when < time.time():
            # The grace asked for is over, but whoever stops the object still has to see that it is asked for.
            when, period = now, min(period, 1)
    metadata["deletionTimestamp"] = format_time(when)
    metadata["deletionGracePeriodSeconds"] = period
    return period


def _mark_held(call: Call, metadata: Object) -> None:
    """Mark an object that only finalizers hold."""
    now, since = call.context.now, metadata.get("deletionTimestamp")
    if since is None:
        raise_generation_if_set(metadata)
    if since is None or since > now:
        metadata["deletionTimestamp"] = now
    metadata["deletionGracePeriodSeconds"] = 0


def _go_seconds(seconds: int) -> int:
    """Seconds as a Go duration, whose nanoseconds overflow beyond 292 years."""
    nanoseconds = (seconds * SECOND + (1 << 63)) % (1 << 64) - (1 << 63)
    return nanoseconds // SECOND
