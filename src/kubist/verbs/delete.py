"""delete: in two phases where anything holds the object (grace, finalizers), at once otherwise."""

from __future__ import annotations

import datetime
from typing import Any

from kubist.http.messages import Response
from kubist.meta import status
from kubist.storage.cache import Entry
from kubist.verbs import body, create
from kubist.verbs.call import Call
from kubist.verbs.guarded import MODIFIED
from kubist.verbs.options import DeleteOptions, delete_options

Object = dict[str, Any]

ORPHAN = "orphan"
FOREGROUND = "foregroundDeletion"


async def delete(call: Call) -> Response:
    if call.info.subresource:
        raise status.method_not_allowed()
    shown = call.negotiate("object")
    options = delete_options(body.read_delete_options(call), call.query)
    call.context.dry_run = options.dry_run
    call.resource.strategy.before_delete(call.context, call.info.name, options.propagation)
    registry, resource = call.api.registry, call.resource
    entry = await registry.read(resource, call.info.namespace, call.info.name)
    if entry is None:
        raise call.not_found()
    gone, held = await remove(call, entry, options)
    if held is not None:
        return await call.entry(200, held, shown)
    if not gone or resource.strategy.returns_deleted:
        return await call.value(200, create.from_storage(call, gone), shown)
    return await call.value(200, deleted_status(call, gone), shown)


def deleted_status(call: Call, obj: Object) -> status.Status:
    resource, metadata = call.resource, obj["metadata"]
    details = {"name": metadata["name"]}
    if resource.group:
        details["group"] = resource.group
    details["kind"] = resource.resource
    details["uid"] = metadata.get("uid", "")
    return status.success(0, details)


async def remove(call: Call, entry: Entry, options: DeleteOptions) -> tuple[Object, Entry | None]:
    """Delete what `entry` is a version of. Answers (the object that is gone, None), or (whatever, the version
    that stays and waits)."""
    registry, resource, context = call.api.registry, call.resource, call.context
    strategy = resource.strategy
    admitted = False
    while True:
        obj = entry.object()
        check_preconditions(call, obj, options)
        if not admitted:
            await call.api.admission.delete(context, obj)
            admitted = True
        special = strategy.mark_deleted(context, obj)
        if special is None:
            marked = mark(call, obj, options)
        elif special:
            if strategy.keeps_propagation:
                _set_finalizers(call, obj["metadata"], options)
            marked = Marked(changed=True, waits=True)
        else:
            marked = Marked(changed=False, waits=strategy.held(obj))
        if context.dry_run:
            obj["metadata"]["resourceVersion"] = str(entry.revision)
            return obj, None if not marked.waits else registry.kind(resource).entry(
                entry.key, registry.kind(resource).encode(obj), entry.revision
            )
        written: Entry | None = entry
        if marked.changed:
            written = await registry.replace(resource, entry, obj)
        if written is not None and marked.waits:
            return obj, written
        if written is not None:
            revision = await registry.remove(resource, written)
            if revision is not None:
                gone = written.object()
                await strategy.after_delete(context, gone)
                return gone, None
        fresh = await registry.refresh(resource, entry, entry.key)
        if fresh is None:
            raise call.not_found(entry.name)
        if options.resource_version is not None:
            raise call.conflict(entry.name, MODIFIED)
        entry = fresh


def check_preconditions(call: Call, obj: Object, options: DeleteOptions) -> None:
    metadata = obj["metadata"]
    pairs = (("UID", options.uid, "uid"), ("ResourceVersion", options.resource_version, "resourceVersion"))
    for word, wanted, field in pairs:
        if wanted is not None and wanted != metadata.get(field, ""):
            held = metadata.get(field, "")
            why = f"Precondition failed: {word} in precondition: {wanted}, {word} in object meta: {held}"
            where = call.resource.strategy.precondition_kind or call.resource.kind
            raise status.conflict(call.resource.group, where, metadata["name"], why)


class Marked:
    """What marking an object for deletion did: whether it changed, and whether it now waits."""

    __slots__ = ("changed", "waits")

    def __init__(self, changed: bool, waits: bool) -> None:
        self.changed = changed
        self.waits = waits


def mark(call: Call, obj: Object, options: DeleteOptions) -> Marked:
    """Set deletionTimestamp, grace and the finalizers of the propagation policy, as far as each is due."""
    strategy, metadata = call.resource.strategy, obj["metadata"]
    terminating = "deletionTimestamp" in metadata
    graceful = False
    grace = 0
    if terminating:
        held = metadata.get("deletionGracePeriodSeconds")
        knows_grace = strategy.grace_period(call.context, obj, options.grace_period_seconds) is not None
        if knows_grace and held is not None:
            asked = options.grace_period_seconds
            if asked is None or max(asked, 0 if asked >= 0 else 1) >= held:
                if not held and not metadata.get("finalizers"):
                    return Marked(False, False)
                changed = _set_finalizers(call, metadata, options)
                return Marked(changed, True)
            grace = asked if asked >= 0 else 1
            when = parse_time(metadata["deletionTimestamp"]) + datetime.timedelta(seconds=grace - held)
            metadata["deletionTimestamp"] = format_time(when)
            metadata["deletionGracePeriodSeconds"] = grace
            graceful = True
    else:
        period = strategy.grace_period(call.context, obj, options.grace_period_seconds)
        if period is not None:
            grace, graceful = period, True
            when = parse_time(call.context.now) + datetime.timedelta(seconds=grace)
            metadata["deletionTimestamp"] = format_time(when)
            metadata["deletionGracePeriodSeconds"] = grace
            raise_generation(metadata)
    changed = _set_finalizers(call, metadata, options) or graceful
    finalizers = bool(metadata.get("finalizers"))
    if finalizers and not graceful:
        if "deletionTimestamp" not in metadata:
            metadata["deletionTimestamp"] = call.context.now
            raise_generation(metadata)
            changed = True
        if metadata.get("deletionGracePeriodSeconds") != 0:
            metadata["deletionGracePeriodSeconds"] = 0
            changed = True
    return Marked(changed, finalizers or (graceful and grace > 0))


def raise_generation(metadata: Object) -> None:
    if metadata.get("generation", 0) > 0:
        metadata["generation"] += 1


def _set_finalizers(call: Call, metadata: Object, options: DeleteOptions) -> bool:
    """Add or remove the two finalizers by which garbage collection is told what to do with dependents."""
    before = metadata.get("finalizers") or []
    wanted = [name for name in before if name not in (ORPHAN, FOREGROUND)]
    orphan, foreground = _propagation(call, before, options)
    if orphan:
        wanted.append(ORPHAN)
    if foreground:
        wanted.append(FOREGROUND)
    if set(wanted) == set(before):
        return False
    if wanted:
        metadata["finalizers"] = wanted
    else:
        metadata.pop("finalizers", None)
    return True


def _propagation(call: Call, before: list[str], options: DeleteOptions) -> tuple[bool, bool]:
    """Whether dependents are to be orphaned, and whether they are to go first."""
    policy = options.propagation_policy
    if call.resource.strategy.default_propagation == "Unsupported":
        return False, False
    if options.orphan_dependents is not None:
        return options.orphan_dependents, False
    if policy:
        return policy == "Orphan", policy == "Foreground"
    if ORPHAN in before:
        return True, False
    if FOREGROUND in before:
        return False, True
    return call.resource.strategy.default_propagation == "Orphan", False


def parse_time(text: str) -> datetime.datetime:
    return datetime.datetime.strptime(text, "%Y-%m-%dT%H:%M:%SZ").replace(tzinfo=datetime.UTC)


def format_time(when: datetime.datetime) -> str:
    return when.strftime("%Y-%m-%dT%H:%M:%SZ")
