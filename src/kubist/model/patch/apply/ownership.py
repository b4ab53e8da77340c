"""Field ownership after a write.

An update owns the fields that it changes. An apply owns the fields in its configuration, may cause conflicts,
and gives up fields that it no longer contains.
"""

from __future__ import annotations

import orjson

from kubist.model.meta.object import Object
from kubist.model.patch.apply import managers, sets
from kubist.model.patch.apply.conflicts import Conflicts
from kubist.model.patch.apply.fields import claimed, reconciled, with_structs
from kubist.model.patch.apply.managers import Identity, Managed, Owned
from kubist.model.patch.apply.merge import merge, remove
from kubist.model.patch.apply.sets import Set
from kubist.model.patch.apply.typed import Type
from kubist.model.patch.apply.versions import Changes, Versions


class Conflicting(Exception):
    """An apply without force changed fields of other managers."""

    def __init__(self, conflicts: Conflicts) -> None:
        super().__init__()
        self.conflicts = conflicts


def update(
    versions: Versions, old: Object, new: Object, managed: Managed, who: Identity, reset: Set, now: str
) -> Managed:
    """Owners after `who` updated `old` to `new`."""
    changes = Changes(versions, old, new, reset)
    managed = _reconciled(versions, old, managed)
    own = managed.pop(who, None)
    managed, _ = _taken(managed, changes)
    here = changes.here
    mine = managers.tracked(here.changed)
    if own is not None:
        lost = here.removed if mine is here.changed else sets.union(here.removed, here.changed)
        kept = sets.difference(own.fields, lost)
        if mine or kept:
            managed[who] = Owned(versions.api_version, sets.union(mine, kept), now if mine else own.time)
    elif mine:
        managed[who] = Owned(versions.api_version, mine, now)
    managers.cap_updaters(managed)
    return managed


def apply(
    versions: Versions,
    live: Object,
    applied: Object,
    managed: Managed,
    who: Identity,
    reset: Set,
    now: str,
    force: bool,
) -> tuple[Object, Managed]:
    """Object, not yet defaulted, and its owners after `who` applied. Returns `live` itself if nothing changed."""
    managed = _reconciled(versions, live, managed)
    last = managed.get(who)
    claim = sets.recursive_difference(claimed(versions.kind, applied), reset)
    managed[who] = Owned(versions.api_version, claim, last.time if last is not None else "")
    new = _pruned(versions, merge(versions.kind, live, applied), managed, last, claim)
    others = managed.copy()
    mine = others.pop(who)
    others, conflicts = _taken(others, Changes(versions, live, new, reset))
    if conflicts and not force:
        raise Conflicting(conflicts)
    changed = new != live
    if fields := managers.tracked(claim):
        others[who] = Owned(versions.api_version, fields, now if changed else mine.time)
    return (new if changed else live), others


def _reconciled(versions: Versions, obj: Object, managed: Managed) -> Managed:
    """Owners without those of unknown versions, with field sets adapted to the current schema."""
    result: Managed = {}
    kinds: dict[str, Type | None] = {versions.api_version: versions.kind}
    for identity, owned in managed.items():
        if owned.api_version not in kinds:
            pair = versions.at(obj, owned.api_version, "live object")
            kinds[owned.api_version] = pair[1] if pair is not None else None
        kind = kinds[owned.api_version]
        if kind is not None:
            if not _as_the_schema_splits(kind, orjson.dumps(owned.fields)):
                owned = Owned(owned.api_version, reconciled(kind, owned.fields), owned.time)
            result[identity] = owned
    return result


def _as_the_schema_splits(kind: Type, fields: bytes) -> bool:
    """Whether the field set needs no adaptation. Cached, because many objects have the same field sets."""
    is_same = kind.splits.get(fields)
    if is_same is None:
        field_set = orjson.loads(fields)
        is_same = kind.splits[fields] = reconciled(kind, field_set) is field_set
    return is_same


def _taken(managed: Managed, changes: Changes) -> tuple[Managed, Conflicts]:
    """Owners without the changed and removed fields, and the changed fields they owned (conflicts)."""
    left: Managed = {}
    conflicts: Conflicts = {}
    for identity, owned in managed.items():
        comparison = changes.at(owned.api_version)
        if comparison is None:
            continue
        fields = owned.fields
        conflict = sets.intersection(fields, comparison.changed)
        if conflict:
            conflicts[identity] = conflict
            fields = sets.difference(fields, conflict)
        fields = sets.difference(fields, comparison.removed)
        if fields:
            left[identity] = owned if fields is owned.fields else Owned(owned.api_version, fields, owned.time)
    return left, conflicts


def _pruned(versions: Versions, merged: Object, managed: Managed, last: Owned | None, claim: Set) -> Object:
    """`merged` without fields that `last` applied, this apply omits, and no other manager owns."""
    if last is None or not last.fields:
        return merged
    if last.api_version == versions.api_version and not sets.difference(last.fields, claim):
        return merged
    pair = versions.at(merged, last.api_version, "merged object to last applied version")
    if pair is None:
        return merged
    whole, kind = pair
    gone = with_structs(kind, last.fields)
    rest = remove(kind, whole, gone)
    rest = _with_owned(versions, whole, rest, last.api_version, managed)
    had = with_structs(kind, claimed(kind, whole))
    has = with_structs(kind, claimed(kind, rest))
    dropped = sets.intersection(sets.difference(had, has), gone)
    if not dropped:
        return merged
    pruned = versions.at(remove(kind, whole, dropped), versions.api_version, "pruned object")
    return merged if pruned is None else pruned[0]


def _with_owned(
    versions: Versions, whole: Object, rest: Object, api_version: str, managed: Managed
) -> Object:
    """`rest`, a part of `whole`, with all fields that any manager owns put back."""
    owned: dict[str, list[Set]] = {api_version: []}
    for entry in managed.values():
        owned.setdefault(entry.api_version, []).append(entry.fields)
    for version, parts in owned.items():
        fields = sets.union_all(parts)
        pair = versions.at(whole, version, "merged object")
        part = versions.at(rest, version, "pruned object")
        if pair is None or part is None:
            continue
        obj, kind = pair
        had = with_structs(kind, claimed(kind, obj))
        has = with_structs(kind, claimed(kind, part[0]))
        lost = sets.difference(had, sets.union(has, with_structs(kind, fields)))
        rest = remove(kind, obj, lost) if lost else obj
    pair = versions.at(rest, api_version, "pruned object")
    return rest if pair is None else pair[0]
