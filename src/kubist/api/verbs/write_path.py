"""Write path: every step from a decoded object to a stored entry, in order.

Create (`create_object`), from the object of a POST:

1. managed fields: `managed_fields.tracked`
2. conversion to the stored version: `to_storage_version`
3. mutating admission: `admission.admit`
4. `insert_object`: name, system fields, allocation, preparation, validation, validating admission, store

Update, patch and apply (`update_object`), from a stored object, in `_replace_object`:

1. the `Transform` of the verb makes the new object. PUT, PATCH and apply differ only here. Each ends with
   `finish_transform`: managed fields, conversion to the stored version, mutating admission
2. optimistic locking: `check_resource_version`
3. system fields, allocation, preparation, generation, validation, validating admission, then the store, or the deletion
   of an object whose last finalizer is gone

`update_object` starts again with the newest version if another write came first.

Delete (`delete.delete_object`), from a stored object: preconditions, validating admission, marking, then the store.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from dataclasses import replace
from functools import partial

from kubist.api.filters.authorization.query import attributes
from kubist.api.representation.representation import Representation
from kubist.api.resources.allocations import Allocations
from kubist.api.resources.strategy import Scale, Update, keep
from kubist.api.verbs import managed_fields
from kubist.api.verbs.finalizers import is_finalized
from kubist.api.verbs.lending import Stored, attempt
from kubist.api.verbs.metadata import carry_over_system_fields, set_name, set_system_fields
from kubist.api.verbs.resource_request import ResourceRequest
from kubist.api.verbs.resource_versions import check_resource_version, is_stored_version, version_error
from kubist.api.verbs.responses import respond_entry, respond_object
from kubist.api.verbs.storage_version import (
    decode_entry,
    is_converted,
    read_back,
    to_custom_storage_version,
    to_request_version,
    to_storage_version,
)
from kubist.api.verbs.validation import validate_new_object, validate_update
from kubist.base.http.messages import Response
from kubist.base.offload import LONG
from kubist.model.meta import objectmeta, status
from kubist.model.meta.object import Object
from kubist.model.patch.apply import restore_times
from kubist.storage.cache.cache import Entry

Fresh = Callable[[], Awaitable[Object]]
"""Returns the stored object, to build the new one from. The new object may share parts with it."""

Transform = Callable[[Object | None, Fresh], Awaitable[Object]]
"""Makes the new object from the stored one (None: absent), which it must not change. Both are in the stored version."""


class Outcome:
    """Result of a write: a stored entry, or only an object after a dry run and after the deletion of the object."""

    __slots__ = ("created", "entry", "object")

    def __init__(self, entry: Entry | None, obj: Object, created: bool = False) -> None:
        self.entry = entry
        self.object = obj
        self.created = created


async def respond(ctx: ResourceRequest, outcome: Outcome, representation: Representation) -> Response:
    """Response of a create, update, patch or apply: 201 if it created the object."""
    code = 201 if outcome.created else 200
    if outcome.entry is not None:
        return await respond_entry(ctx, code, outcome.entry, representation)
    return await respond_object(ctx, code, to_request_version(ctx, outcome.object), representation)


async def create_object(ctx: ResourceRequest, obj: Object) -> Outcome:
    """Create an object of the request's version."""
    obj = await managed_fields.tracked(ctx, obj, None, ctx.resource.strategy.reset_fields)
    obj = to_storage_version(ctx, obj)
    await ctx.api.admission.admit(ctx, obj, None)
    return await insert_object(ctx, obj)


async def insert_object(ctx: ResourceRequest, obj: Object) -> Outcome:
    """Complete, validate and store a new object of the stored version. An object that is created through a
    subresource gets no allocation: no cluster IP, for example."""
    strategy, metadata = ctx.resource.strategy, obj["metadata"]
    generated = set_name(ctx, metadata)
    set_system_fields(ctx, metadata)
    async with Allocations() as allocations:
        if not ctx.info.subresource:
            pending = strategy.before_write(ctx, obj, None, allocations)
            if pending is not None:
                await pending
        prepare_for_create(ctx, obj)
        await validate_new_object(ctx, obj)
        await ctx.api.admission.validate(ctx, obj, None)
        obj = as_stored(ctx, obj)
        check_no_resource_version(ctx, metadata)
        if ctx.resource.custom is None:
            stored = obj
        else:  # A conversion that fails is the error even if the name exists.
            stored = await (read_back if ctx.dry_run else to_custom_storage_version)(ctx, obj)
        await check_absent(ctx, metadata["name"], generated)
        if ctx.dry_run:
            return Outcome(None, stored, created=True)
        entry = await _insert(ctx, stored, generated)
        allocations.keep()
        return Outcome(entry, obj, created=True)


def prepare_for_create(ctx: ResourceRequest, obj: Object) -> None:
    """Set the first generation and status, and let the kind prepare the object."""
    strategy = ctx.resource.strategy
    if strategy.generation_fields:
        obj["metadata"]["generation"] = 1
    if strategy.first_status is not None:
        obj["status"] = managed_fields.copied(strategy.first_status)
    strategy.prepare(ctx, obj, None)


def prepare_for_update(ctx: ResourceRequest, target: Update, new: Object, old: Object) -> None:
    """Restore the fields that this path never changes, and let the kind prepare the object."""
    fields = target.reset_fields if target.restored_fields is None else target.restored_fields
    if fields:
        keep(new, old, *fields)
    target.prepare(ctx, new, old)


def as_stored(ctx: ResourceRequest, obj: Object) -> Object:
    """The object without the empty lists and maps that only validation had to see. Defaults may apply in their
    place."""
    stored = ctx.sent.as_stored(obj)
    if stored is not obj:
        ctx.resource.strategy.default(stored)
    return stored


def check_no_resource_version(ctx: ResourceRequest, metadata: Object) -> None:
    """Reject a new object with the resourceVersion of a stored one. A dry run shows it in the response."""
    if (
        "resourceVersion" in metadata
        and not ctx.dry_run
        and is_stored_version(metadata.pop("resourceVersion"))
    ):
        raise status.plain_error("resourceVersion should not be set on objects to be created")


async def check_absent(ctx: ResourceRequest, name: str, generated: bool) -> None:
    """409 if the object exists. The store is asked only if the cache holds it, because the cache may be behind."""
    registry, resource = ctx.api.registry, ctx.resource
    if registry.collection(resource).get(resource.key(ctx.info.namespace, name)) is not None:
        existing = await registry.read(resource, ctx.info.namespace, name)
        if existing is not None:
            raise _exists(ctx, existing, generated)


async def _insert(ctx: ResourceRequest, obj: Object, generated: bool) -> Entry:
    try:
        return await ctx.api.registry.insert(ctx.resource, ctx.info.namespace, obj)
    except status.APIError as error:
        if error.reason == "AlreadyExists":
            raise _exists(ctx, None, generated, obj["metadata"]["name"]) from None
        raise


def _exists(ctx: ResourceRequest, entry: Entry | None, generated: bool, name: str = "") -> status.APIError:
    resource = ctx.resource
    error = status.already_exists(resource.group, resource.resource, entry.name if entry else name)
    if generated:
        if error.details is not None:
            error.details["retryAfterSeconds"] = 1
        error.headers = [("Retry-After", "1")]
        error.message += ", the server was not able to generate a unique name for the object"
    elif entry is not None and "deletionTimestamp" in entry.object()["metadata"]:
        error.message = f"object is being deleted: {error.message}"
    return error


def update_target(ctx: ResourceRequest) -> Update | Scale:
    """Strategy for an update, patch or apply: the object's or the named subresource's."""
    strategy = ctx.resource.strategy
    if not ctx.info.subresource:
        return strategy
    subresource = strategy.subresources.get(ctx.info.subresource)
    if isinstance(subresource, Update | Scale):
        return subresource
    raise status.method_not_allowed()


async def update_object(
    ctx: ResourceRequest,
    target: Update,
    transform: Transform,
    *,
    create_absent: bool = False,
    precondition_uid: str | None = None,
    lend: bool = False,
) -> Outcome:
    """Replace the object of the URL with the result of `transform`, by compare-and-swap until no other write
    intervenes. `lend`: `transform` never changes the object that `Fresh` returns (`lending.py`)."""
    registry, resource = ctx.api.registry, ctx.resource
    key = resource.key(ctx.info.namespace, ctx.info.name)
    entry = await registry.read(resource, ctx.info.namespace, ctx.info.name)
    plain = resource.custom is None
    replace_stored = partial(_replace_object, ctx, target, transform)
    while True:
        if entry is None:
            try:
                return await _create_absent(ctx, transform, create_absent, precondition_uid)
            except status.APIError as error:
                if error.reason != "AlreadyExists":
                    raise
                entry = await registry.refresh(resource, key)
                if entry is None:
                    raise
        ctx.long = ctx.long or len(entry.tail) > LONG
        old = entry.object() if plain else await decode_entry(ctx, entry)
        if precondition_uid and old["metadata"].get("uid") != precondition_uid:
            raise _other_uid(ctx, precondition_uid, old["metadata"].get("uid", ""))
        outcome = await attempt(ctx, entry, old, replace_stored, lend=lend)
        if outcome is not None:
            return outcome
        entry = await registry.refresh(resource, key)


async def finish_transform(
    ctx: ResourceRequest,
    target: Update,
    new: Object,
    old: Object | None,
    live: Object | None,
    *,
    cleared: bool = False,
    owned: bool = True,
) -> Object:
    """Common end of the transforms of PUT and PATCH: managed fields, stored version, mutating admission.

    `live` is the stored object in the request's version. `cleared`: the client sent an empty list of managedFields.
    Without `owned`, the fields get no owner."""
    new = await managed_fields.tracked(ctx, new, live, target.reset_fields, cleared=cleared)
    if not owned:
        new["metadata"].pop("managedFields", None)
    new = to_storage_version(ctx, new)
    await ctx.api.admission.admit(ctx, new, old)
    return new


async def in_request_version(ctx: ResourceRequest, old: Object | None, fresh: Fresh) -> Object | None:
    """The stored object in the request's version, for reading."""
    if old is None or not is_converted(ctx):
        return old
    return to_request_version(ctx, await fresh())


async def _create_absent(
    ctx: ResourceRequest, transform: Transform, allowed: bool, uid: str | None
) -> Outcome:
    """Create the object of an update or apply: 404 unless the kind or the verb allows it, 403 without the right to
    create."""
    if not allowed:
        raise ctx.not_found()
    if uid:
        raise _other_uid(ctx, uid, "")
    new = await transform(None, _nothing)
    version = new["metadata"].get("resourceVersion")
    if version and (why := version_error(version)):
        raise status.plain_error(why)
    query = replace(attributes(ctx.user, ctx.info), verb="create")
    verdict = await ctx.api.authorization.verdict(query)
    if not verdict.allowed:
        raise status.internal_error(verdict.error) if verdict.error else query.forbidden(verdict.reason)
    if not ctx.dry_run:  # stored objects have neither
        new["metadata"].pop("resourceVersion", None)
        new["metadata"].pop("selfLink", None)
    new["metadata"].setdefault("name", ctx.info.name)
    return await insert_object(ctx, new)


async def _nothing() -> Object:
    return {}


def _other_uid(ctx: ResourceRequest, expected: str, actual: str) -> status.APIError:
    key = ctx.resource.key(ctx.info.namespace, ctx.info.name)
    if ctx.dry_run:
        key = key.removeprefix("/registry")
    why = f"Precondition failed: UID in precondition: {expected}, UID in object meta: {actual}"
    where = f"Code: 4, Key: {key}, ResourceVersion: 0, AdditionalErrorMsg: {why}"
    return ctx.conflict(ctx.info.name, f"StorageError: invalid object, {where}")


async def _replace_object(
    ctx: ResourceRequest, target: Update, transform: Transform, stored: Stored
) -> Outcome | None:
    """Change, complete, validate and store an object; None if another write came first."""
    entry, old = stored.entry, stored.object
    new = await transform(old, stored.fresh)
    check_resource_version(ctx, new, entry)
    carry_over_system_fields(new, old)
    async with Allocations() as allocations:
        pending = target.before_write(ctx, new, old, allocations)
        if pending is not None:
            await pending
        prepare_for_update(ctx, target, new, old)
        stored.settle(new)
        raise_generation(ctx, new, old)
        await validate_update(ctx, target, new, old)
        await ctx.api.admission.validate(ctx, new, old)
        new = as_stored(ctx, new)
        if ctx.info.subresource == "scale" and ctx.resource.custom is not None:
            ctx.resource.custom.version.coerce(new)  # replicas were set without regard to the schema
        if is_finalized(ctx, new, old):
            return await _delete_finalized(ctx, entry, new)
        if ctx.dry_run:
            new["metadata"]["resourceVersion"] = str(entry.revision)
            return Outcome(None, await read_back(ctx, new))
        written = await _replace(ctx, entry, new, old)
        if written is None:
            return None
        allocations.keep()
    if written is not entry:
        released = target.after_update(ctx, new, old)
        if released is not None:
            await released
    return Outcome(written, new)


async def _replace(ctx: ResourceRequest, entry: Entry, new: Object, old: Object) -> Entry | None:
    """Store the new object unless it is unchanged. An entry with an outdated storage format or encryption is written
    again."""
    if is_unchanged(new, old) and not await ctx.api.registry.stale(entry):
        return entry
    stored = new if ctx.resource.custom is None else await to_custom_storage_version(ctx, new)
    return await ctx.api.registry.replace(ctx.resource, entry, stored)


def raise_generation(ctx: ResourceRequest, new: Object, old: Object) -> None:
    """Increment metadata.generation if a field that counts for it changed (spec, for most kinds)."""
    strategy = ctx.resource.strategy
    watched = strategy.generation_fields
    if not watched:
        return
    stored = ctx.sent.as_stored(new)
    changed = False
    for field in watched:
        if (value := stored.get(field)) is not (old_value := old.get(field)) and value != old_value:
            changed = True
    if changed or (strategy.empty_is_change and ctx.sent.is_empty_within(watched, new)):
        objectmeta.raise_generation(new, old)


_NOT_COMPARED = ("managedFields", "resourceVersion")


def is_unchanged(new: Object, old: Object) -> bool:
    """Whether a prepared update changes nothing. A new time in managedFields is no change."""
    metadata, before = new["metadata"], old["metadata"]
    same = all(metadata.get(field) == value for field, value in before.items() if field not in _NOT_COMPARED)
    if same:
        restore_times(old, new)
    metadata["resourceVersion"] = before["resourceVersion"]
    return same and new == old


async def _delete_finalized(ctx: ResourceRequest, entry: Entry, new: Object) -> Outcome | None:
    new["metadata"]["resourceVersion"] = str(entry.revision)
    if ctx.dry_run:
        return Outcome(None, new)
    if await ctx.api.registry.remove(entry) is None:
        return None
    await ctx.resource.strategy.after_delete(ctx, entry.object())
    return Outcome(None, new)
