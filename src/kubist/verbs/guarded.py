"""The guarded update: read, transform, check, write if nothing came between; otherwise again.

PUT, PATCH and apply differ only in how they make the new object out of the old one.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from dataclasses import replace
from functools import partial
from typing import Any

import orjson

from kubist.codec.representation import Representation
from kubist.filters.attributes import attributes
from kubist.http.messages import Response
from kubist.meta import objectmeta, status
from kubist.meta.fields import FieldError
from kubist.offload import LONG, Lengthy, away, elsewhere
from kubist.patch.apply import restore_times
from kubist.resources.strategy import Scale, Update
from kubist.storage.cache import Entry
from kubist.verbs import create
from kubist.verbs.call import Call
from kubist.verbs.metadata import carry_over_system_fields, check_resource_version, version_error
from kubist.verbs.storage_version import is_converted, to_request_version

Object = dict[str, Any]
Fresh = Callable[[], Awaitable[Object]]
"""Another copy of the old object, to make the new one of."""
Transform = Callable[[Object | None, Fresh], Awaitable[Object]]
"""Old object (stored version; None: absent), which is left alone, to new one (stored version), mutating admission
included. They share at most what `Fresh` has lent."""


class _Altered(Exception):
    """The old object was lent to make the new one of, and is no longer what it was."""


class Outcome:
    """What an update came to: a stored version, or in a dry run (and when it was removed) just an object."""

    __slots__ = ("created", "entry", "object")

    def __init__(self, entry: Entry | None, obj: Object, created: bool = False) -> None:
        self.entry = entry
        self.object = obj
        self.created = created


def update_target(call: Call) -> Update | Scale:
    """Strategy that an update, patch or apply goes through: that of the object or of the named subresource."""
    strategy = call.resource.strategy
    if not call.info.subresource:
        return strategy
    found = strategy.subresources.get(call.info.subresource)
    if isinstance(found, Update | Scale):
        return found
    raise status.method_not_allowed()


async def respond(call: Call, outcome: Outcome, shown: Representation) -> Response:
    """Response of an update, patch or apply: 201 if it created the object."""
    code = 201 if outcome.created else 200
    if outcome.entry is not None:
        return await call.entry(code, outcome.entry, shown)
    return await call.value(code, to_request_version(call, outcome.object), shown)


async def update(
    call: Call,
    path: Update,
    transform: Transform,
    *,
    create_absent: bool = False,
    precondition_uid: str | None = None,
    lend: bool = False,
) -> Outcome:
    """Bring `call.info.name` to what `transform` makes of it, through `path` (the object or a sub-resource).

    `lend`: it makes the new object of parts of the old one, without touching that, and so mostly needs no copy.
    Should somebody later change such a part in place, all of it is done again, with a copy.
    """
    registry, resource = call.api.registry, call.resource
    key = resource.key(call.info.namespace, call.info.name)
    entry = await registry.read(resource, call.info.namespace, call.info.name)
    plain = resource.strategy.conversion is None
    lend = lend and plain and not is_converted(call)
    while True:
        if entry is None:
            try:
                return await _absent(call, transform, create_absent, precondition_uid)
            except status.APIError as error:
                if error.reason != "AlreadyExists":
                    raise
                entry = await registry.refresh(resource, key)
                if entry is None:
                    raise
        call.long = call.long or len(entry.tail) > LONG
        old = entry.object() if plain else await call.opened(entry)
        if precondition_uid and old["metadata"].get("uid") != precondition_uid:
            raise _other_uid(call, precondition_uid, old["metadata"].get("uid", ""))
        try:
            new = await transform(old, partial(_lent, old) if lend else partial(call.opened, entry))
            check_resource_version(call, new, entry)
            outcome = await _write(call, path, entry, new, old, lend)
        except Exception:
            if not (lend and _altered(entry, old)):
                raise
            lend = False
            continue
        if outcome is not None:
            return outcome
        entry = await registry.refresh(resource, key)


async def _lent(old: Object) -> Object:
    return old


def _altered(entry: Entry, old: Object) -> bool:
    try:
        return orjson.dumps(old) != entry.json()
    except orjson.JSONEncodeError:  # something that is on its way to be replaced
        return True


async def seen(call: Call, old: Object | None, fresh: Fresh) -> Object | None:
    """The old object in the request's version, to look at."""
    if old is None or not is_converted(call):
        return old
    return to_request_version(call, await fresh())


async def _absent(call: Call, transform: Transform, create_absent: bool, uid: str | None) -> Outcome:
    """No such object: not found, or made new where the kind (or an apply) allows that."""
    if not create_absent:
        raise call.not_found()
    if uid:
        raise _other_uid(call, uid, "")
    new = await transform(None, _nothing)
    version = new["metadata"].get("resourceVersion")
    if version and (why := version_error(version)):
        raise status.plain_error(why)
    asked = replace(attributes(call.user, call.info), verb="create")
    verdict = await call.api.authorization.verdict(asked)
    if not verdict.allowed:
        raise status.internal_error(verdict.error) if verdict.error else asked.forbidden(verdict.reason)
    if not call.context.dry_run:  # what is stored has neither
        new["metadata"].pop("resourceVersion", None)
        new["metadata"].pop("selfLink", None)
    new["metadata"].setdefault("name", call.info.name)
    entry = await create.insert(call, new)
    return Outcome(entry, new, created=True)


async def _nothing() -> Object:
    return {}


def _other_uid(call: Call, wanted: str, held: str) -> status.APIError:
    key = call.resource.key(call.info.namespace, call.info.name)
    if call.context.dry_run:
        key = key.removeprefix("/registry")
    why = f"Precondition failed: UID in precondition: {wanted}, UID in object meta: {held}"
    where = f"Code: 4, Key: {key}, ResourceVersion: 0, AdditionalErrorMsg: {why}"
    return call.conflict(call.info.name, f"StorageError: invalid object, {where}")


def share_unchanged(new: Object, old: Object) -> None:
    """Let `new` hold the very parts of `old` that it has unchanged: once it is prepared nothing but its metadata is
    changed in place, and whoever compares the parts again sees at once that they are the same."""
    for field, value in old.items():
        part = new.get(field)
        if part is not value and part == value and field != "metadata":
            new[field] = value


def unchanged(new: Object, old: Object) -> bool:
    """Whether an update, once prepared, changes nothing. That its manager wrote the same again is no change."""
    metadata, before = new["metadata"], old["metadata"]
    same = all(metadata.get(field) == value for field, value in before.items() if field not in _WRITTEN)
    if same:
        restore_times(old, new)
    metadata["resourceVersion"] = before["resourceVersion"]
    return same and new == old


_WRITTEN = ("managedFields", "resourceVersion")


def raise_generation(call: Call, new: Object, old: Object) -> None:
    strategy, sent_empty = call.resource.strategy, call.sent_empty
    watched = strategy.generation
    if not watched:
        return
    if sent_empty is not None:
        sent_empty.take(new)
    changed = False
    for field in watched:
        if (value := new.get(field)) is not (held := old.get(field)) and value != held:
            changed = True
    if sent_empty is not None:
        changed = changed or (strategy.empty_is_change and sent_empty.within(watched, new))
        sent_empty.put(new)
    if changed:
        new["metadata"]["generation"] = old["metadata"].get("generation", 0) + 1


async def _write(
    call: Call, path: Update, entry: Entry, new: Object, old: Object, lent: bool
) -> Outcome | None:
    """Check and store; None if another write came first."""
    context, resource = call.context, call.resource
    carry_over_system_fields(new, old)
    pending = path.before_update(context, new, old)
    undo = await pending if pending is not None else None
    try:
        path.prepare_for_update(context, new, old)
        if lent and _altered(entry, old):
            raise _Altered
        share_unchanged(new, old)
        raise_generation(call, new, old)
        try:
            await away(call.long, _check, call, path, new, old)
        except Lengthy:
            await elsewhere(_check, call, path, new, old)
        await call.api.admission.validate(context, new, old)
        create.settle(call, new)
        if call.info.subresource == "scale":  # the replicas were put in whatever the schema says
            resource.strategy.prune(new)
        if _finished(call, new, old):
            return await _remove(call, entry, new)
        if context.dry_run:
            if undo is not None:
                await undo()
            new["metadata"]["resourceVersion"] = str(entry.revision)
            return Outcome(None, new)
        if unchanged(new, old) and not await call.api.registry.stale(entry):
            written: Entry | None = entry
        else:
            stored = new if resource.strategy.conversion is None else await call.closed(new)
            written = await call.api.registry.replace(resource, entry, stored)
    except BaseException:
        if undo is not None:
            await undo()
        raise
    if written is None:
        if undo is not None:
            await undo()
        return None
    if written is not entry:
        released = path.after_update(context, new, old)
        if released is not None:
            await released
    return Outcome(written, new)


def _check(call: Call, path: Update, new: Object, old: Object) -> None:
    """Validate a changed object: 422 with all causes."""
    context, resource = call.context, call.resource

    def validated(new: Object) -> list[FieldError]:
        errors = objectmeta.validate_any_update(
            new["metadata"], old["metadata"], namespaced=resource.namespaced
        )
        return errors + path.validate_update(context, new, old)

    errors = validated(new)
    if errors:
        if call.sent_empty is not None:
            errors = call.sent_empty.reworded(errors, new, validated)
        raise status.invalid(resource.stored_group, resource.kind, call.info.name, errors)
    for warning in path.warnings_on_update(context, new, old):
        context.warn(warning)


def _finished(call: Call, new: Object, old: Object) -> bool:
    """A terminating object that nothing holds any more after this update."""
    before = old["metadata"]
    if "deletionTimestamp" not in before or before.get("deletionGracePeriodSeconds"):
        return False
    return not call.resource.strategy.held(new)


async def _remove(call: Call, entry: Entry, new: Object) -> Outcome | None:
    new["metadata"]["resourceVersion"] = str(entry.revision)
    if call.context.dry_run:
        return Outcome(None, new)
    if await call.api.registry.remove(entry) is None:
        return None
    await call.resource.strategy.after_delete(call.context, entry.object())
    return Outcome(None, new)
