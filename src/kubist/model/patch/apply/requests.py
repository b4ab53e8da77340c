"""Entry points for the verbs: update managedFields of a written object, and apply a configuration."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from kubist.model.meta.object import Object
from kubist.model.meta.objectmeta import APISERVER_MANAGER
from kubist.model.patch.apply import conflicts, last_applied, managers, ownership
from kubist.model.patch.apply.created import creator
from kubist.model.patch.apply.empty import empty
from kubist.model.patch.apply.managers import Managed
from kubist.model.patch.apply.ownership import Conflicting
from kubist.model.patch.apply.sets import dotted
from kubist.model.patch.apply.typed import BadValue, type_of
from kubist.model.patch.apply.validate import problems
from kubist.model.patch.apply.versions import Convert, Versions
from kubist.model.patch.errors import MalformedPatch, UnclassifiedError
from kubist.model.schema.node import Schema


def update_managed_fields(
    schema: Schema,
    live: Object | None,
    new: Object,
    *,
    manager: str,
    api_version: str,
    now: str,
    subresource: str = "",
    reset_fields: Sequence[str] = (),
    cleared: bool = False,
    convert: Convert | None = None,
) -> None:
    """Sets `metadata.managedFields` of `new`, the result of a create (`live` is None), update or patch.

    Both objects are in the version of the request, decoded and defaulted, before admission. `reset_fields` are
    the dotted paths that this endpoint never changes. `cleared`: the client sent an empty list, which decoding
    drops. A live object without managedFields stays untracked.
    """
    metadata = new["metadata"]
    sent = metadata.pop("managedFields", [] if cleared else None)
    stored = live["metadata"].get("managedFields") if live is not None else None
    managed = _live_or_sent(stored, None if subresource else sent) if sent or stored else {}
    if not managed and live is not None:
        return
    who = managers.updater(manager, api_version, subresource)
    try:
        if managed:
            old = empty(schema) if live is None else _without_managed_fields(live)
            versions = Versions(api_version, schema, convert, subresource)
            if _no_longer_fits(schema, old, new):
                return
            managed = ownership.update(versions, old, new, managed, who, dotted(*reset_fields), now)
        elif _no_longer_fits(schema, new):
            return
        elif fields := creator(schema, tuple(reset_fields))(new):
            managed[who] = managers.Owned(api_version, fields, now)
    except BadValue:
        return
    if managed:
        metadata["managedFields"] = managers.encode(managed)


def own_status(
    schema: Schema,
    live: Object,
    new: Object,
    *,
    api_version: str,
    now: str,
    reset_fields: Sequence[str] = ("spec",),
) -> None:
    """Makes the API server the field manager of a status that it wrote itself."""
    update_managed_fields(
        schema,
        live,
        new,
        manager=APISERVER_MANAGER,
        api_version=api_version,
        now=now,
        subresource="status",
        reset_fields=reset_fields,
    )


def _live_or_sent(stored: Any, sent: Any) -> Managed:
    """Owners before an update: the ones the client sent, if valid, otherwise the stored ones."""
    if sent is not None and sent != stored:
        if managers.is_reset(sent):
            return {}
        try:
            managed = managers.decode(sent, trusted=False)
        except ValueError:
            managed = {}
        if managed:
            return managed
    try:
        return managers.decode(stored, trusted=True)
    except ValueError:
        return {}


def _no_longer_fits(schema: Schema, *objects: Object) -> str:
    """Error message if an object does not match its schema. Only the schema of a custom resource can change
    after the write."""
    if schema.name:
        return ""
    kind = type_of(schema)
    return next((wrong for obj in objects if (wrong := problems(kind, obj, duplicates=True))), "")


def _without_managed_fields(obj: Object) -> Object:
    if "managedFields" not in obj["metadata"]:
        return obj
    obj = obj.copy()
    metadata = obj["metadata"] = obj["metadata"].copy()
    del metadata["managedFields"]
    return obj


def apply(
    schema: Schema,
    live: Object | None,
    applied: Object,
    *,
    manager: str,
    api_version: str,
    now: str,
    force: bool = False,
    subresource: str = "",
    reset_fields: Sequence[str] = (),
    convert: Convert | None = None,
) -> Object:
    """Object that results from applying to `live` (None: create), with managedFields, not yet decoded and
    defaulted.

    The result shares parts with both arguments, which are not modified. Raises `ApplyConflict`, or another API
    error if `applied` is invalid.
    """
    if _metadata(applied).get("managedFields") is not None:
        raise MalformedPatch("metadata.managedFields must be nil")
    versions = Versions(api_version, schema, convert, subresource)
    reset = dotted(*reset_fields)
    try:
        managed = managers.decode(_metadata(live or {}).get("managedFields"), trusted=True)
    except ValueError as bad:
        raise UnclassifiedError(f"failed to decode managed fields: {bad}") from None
    nothing = empty(schema)
    old = nothing if live is None else _without_managed_fields(live)
    untracked = not managed and live is not None
    if untracked and (wrong := problems(versions.kind, old, duplicates=True)):
        raise UnclassifiedError(
            "failed to create manager for existing fields: "
            f"failed to convert new object ({_format_object(old)}) to smd typed: {wrong}"
        )
    if wrong := problems(versions.kind, applied):
        raise UnclassifiedError(f"failed to create typed patch object ({_format_object(applied)}): {wrong}")
    if wrong := _no_longer_fits(schema, old):
        raise UnclassifiedError(f"failed to create typed live object ({_format_object(old)}): {wrong}")
    who = managers.applier(manager, subresource)
    try:
        if untracked:
            earlier = managers.updater("before-first-apply", api_version, subresource)
            managed = ownership.update(versions, nothing, old, managed, earlier, reset, now)
        obj, managed = _apply(versions, old, applied, managed, who, reset, now, force)
    except BadValue as bad:
        raise UnclassifiedError(str(bad)) from None
    if manager == last_applied.MANAGER:
        obj = last_applied.renew(obj, applied)
    obj = obj.copy()
    metadata = obj["metadata"] = _metadata(obj).copy()
    metadata.pop("managedFields", None)
    if managed:
        metadata["managedFields"] = managers.encode(managed)
    return obj


def _apply(
    versions: Versions,
    live: Object,
    applied: Object,
    managed: Managed,
    who: managers.Identity,
    reset: dict[str, Any],
    now: str,
    force: bool,
) -> tuple[Object, Managed]:
    try:
        return ownership.apply(versions, live, applied, managed, who, reset, now, force)
    except Conflicting as met:
        rest = met.conflicts
        if who.manager == last_applied.MANAGER:
            rest = conflicts.without(rest, last_applied.covered(versions.kind, live, versions.api_version))
        if rest:
            raise conflicts.error(rest) from None
    return ownership.apply(versions, live, applied, managed, who, reset, now, force=True)


def _metadata(obj: Object) -> Object:
    metadata = obj.get("metadata")
    return metadata if isinstance(metadata, dict) else {}


def _format_object(obj: Object) -> str:
    metadata = _metadata(obj)
    namespace, name = (
        text if isinstance(text := metadata.get(key), str) else "" for key in ("namespace", "name")
    )
    return f"{namespace}/{name}; {_shown_kind(obj)}"


def _shown_kind(obj: Object) -> str:
    group, _, version = str(obj.get("apiVersion", "")).rpartition("/")
    return f"{group}/{version}, Kind={obj.get('kind', '')}"


def restore_times(live: Object, new: Object) -> None:
    """Gives `new` the managedFields of `live` if only their times differ, so that the write is a no-op."""
    before, after = live["metadata"].get("managedFields"), new["metadata"].get("managedFields")
    if not before or not after or len(before) != len(after):
        return
    if (
        _same_but_for("managedFields", live["metadata"], new["metadata"])
        and _same_but_for("metadata", live, new)
        and managers.differ_only_in_time(before, after)
    ):
        new["metadata"]["managedFields"] = before


def _same_but_for(name: str, one: Object, other: Object) -> bool:
    if len(one) != len(other):
        return False
    for key, value in one.items():
        if key != name and (key not in other or (other[key] is not value and other[key] != value)):
            return False
    return True
