"""RoleBindings and ClusterRoleBindings, indexed by subject. The index follows their changes one by one."""

from __future__ import annotations

import asyncio
import logging
from bisect import bisect_left
from collections.abc import Iterable
from dataclasses import dataclass

from kubist.base.jsontext.quoting import quoted
from kubist.base.turns import Turns
from kubist.errors import DamagedStore
from kubist.storage.cache.cache import Entry

log = logging.getLogger("kubist.rbac")

STEP = 64
"""Subjects that are handled between two looks at the clock."""
CHANGES = 4096
"""Number of changed roles that the index remembers."""

Subject = tuple[str, str, str]
"""Kind (User or Group), name, and the namespace of the binding ("" for cluster-wide)."""
RoleRef = tuple[str, str, str]
"""Kind and name of a role, and the namespace of a Role ("" for a ClusterRole)."""
Rank = tuple[bool, str]
"""Order of evaluation: cluster-wide bindings first (False), then by key."""
Scopes = tuple[frozenset[Subject], ...]
"""Subjects that a user is: cluster-wide, then in the namespace of a request."""


@dataclass(slots=True)
class Binding:
    """A RoleBinding or ClusterRoleBinding: its subjects and its role."""

    name: str
    namespace: str
    role: RoleRef
    subjects: list[tuple[Subject, str, str]]
    """Each subject, and its kind and name in reasons."""

    def reason(self, subjects: frozenset[Subject]) -> str:
        """Reason of a decision: the binding, its role, and the first of its subjects that the user is."""
        called = next(
            f"{kind} {quoted(name)}" for subject, kind, name in self.subjects if subject in subjects
        )
        kind, name = ("RoleBinding", f"{self.name}/{self.namespace}") if self.namespace else ("", "")
        binding = f"{kind} {quoted(name)}" if kind else f"ClusterRoleBinding {quoted(self.name)}"
        role_kind, role_name, _ = self.role
        return f"RBAC: allowed by {binding} of {role_kind} {quoted(role_name)} to {called}"


def user_scopes(name: str, groups: Iterable[str], namespace: str) -> Scopes:
    """Subjects that a user is."""
    return tuple(
        frozenset((("User", name, scope), *(("Group", group, scope) for group in groups)))
        for scope in (("", namespace) if namespace else ("",))
    )


async def _parse(entry: Entry, turns: Turns) -> Binding:
    obj = entry.object()
    role = obj.get("roleRef") or {}
    kind, namespace = role.get("kind", ""), entry.namespace
    ref = (kind, role.get("name", ""), namespace if kind == "Role" else "")
    binding = Binding(entry.name, namespace, ref, [])
    for place, subject in enumerate(obj.get("subjects") or ()):
        kind, name = subject.get("kind", ""), subject.get("name", "")
        if kind == "ServiceAccount":
            home = subject.get("namespace") or namespace
            username = f"system:serviceaccount:{home}:{name}" if home else ""
            binding.subjects.append((("User", username, namespace), kind, f"{name}/{home}"))
        else:
            binding.subjects.append(((kind, name, namespace), kind, name))
        if place % STEP == 0:
            await turns.pause()
    return binding


class Bindings:
    """The index. Changes wait in `pending` until the next decision, which applies them in turns."""

    def __init__(self, entries: Iterable[Entry], version: int) -> None:
        self.version = version
        """Increases with each change of a role or binding, and again when the index has followed it. An answer of the
        present version is current, because answers are computed only while no change is pending."""
        self.pending: dict[str, Entry | None] = {entry.key: entry for entry in entries}
        """Bindings whose change is not in the index yet, by key. None: the binding was deleted."""
        self._oldest = version
        self._changed: dict[RoleRef, int] = {}
        """Roles that changed, or whose bindings changed, with the version of their last change. Oldest first."""
        self._bindings: dict[str, Binding] = {}
        self._subjects: dict[Subject, dict[RoleRef, list[str]]] = {}
        """For each subject its roles, each with the sorted keys of the bindings that grant it."""
        self._applying = asyncio.Lock()

    def delay(self, key: str, entry: Entry | None) -> None:
        """Records a change of a binding for the next decision."""
        self.pending[key] = entry
        self.version += 1

    async def apply_pending(self) -> None:
        """Applies all pending changes. A change stays pending until it is complete."""
        turns = Turns()
        async with self._applying:
            while self.pending:
                key, entry = next(iter(self.pending.items()))
                try:
                    new = await _parse(entry, turns) if entry is not None else None
                except DamagedStore as error:
                    log.error("%s", error)
                    new = None
                await self._replace(key, new, turns)
                if self.pending.get(key) is entry:
                    del self.pending[key]
                await turns.pause()

    async def _replace(self, key: str, new: Binding | None, turns: Turns) -> None:
        old = self._bindings.get(key)
        if old is not None:
            for place, (subject, _, _) in enumerate(old.subjects):
                self._remove(subject, old.role, key)
                if place % STEP == 0:
                    await turns.pause()
            del self._bindings[key]
            self.touch(old.role)
        if new is not None:
            self._bindings[key] = new
            for place, (subject, _, _) in enumerate(new.subjects):
                self._add(subject, new.role, key)
                if place % STEP == 0:
                    await turns.pause()
            self.touch(new.role)

    def _add(self, subject: Subject, role: RoleRef, key: str) -> None:
        keys = self._subjects.setdefault(subject, {}).setdefault(role, [])
        place = bisect_left(keys, key)
        if place == len(keys) or keys[place] != key:
            keys.insert(place, key)

    def _remove(self, subject: Subject, role: RoleRef, key: str) -> None:
        roles = self._subjects.get(subject, {})
        keys = roles.get(role, [])
        place = bisect_left(keys, key)
        if place < len(keys) and keys[place] == key:
            del keys[place]
            if not keys:
                del roles[role]
                if not roles:
                    del self._subjects[subject]

    def touch(self, role: RoleRef) -> None:
        """Records that a role has changed, or one of its bindings."""
        self.version += 1
        self._changed.pop(role, None)
        self._changed[role] = self.version
        if len(self._changed) > CHANGES:
            self._oldest = self._changed.pop(next(iter(self._changed)))

    def changed(self, version: int) -> list[RoleRef] | None:
        """Roles with changes after a version. None if the index does not remember them all."""
        if version < self._oldest:
            return None
        changed = []
        for role, changed_at in reversed(self._changed.items()):
            if changed_at <= version:
                break
            changed.append(role)
        return changed

    def present(self, scopes: Scopes) -> Scopes:
        """Only the subjects that have bindings at present."""
        return tuple(
            frozenset(subject for subject in subjects if subject in self._subjects) for subjects in scopes
        )

    def roles(self, scopes: Scopes) -> list[RoleRef]:
        """Roles of a user, each once, in no order."""
        roles: dict[RoleRef, None] = {}
        for subjects in self.present(scopes):
            for subject in subjects:
                roles.update(dict.fromkeys(self._subjects[subject]))
        return list(roles)

    def rank(self, role: RoleRef, scopes: Scopes) -> Rank | None:
        """Place of the first binding that grants the role to the user. None if there is none."""
        for place, subjects in enumerate(scopes):
            present = [roles for subject in subjects if (roles := self._subjects.get(subject)) is not None]
            granting = [roles[role][0] for roles in present if role in roles]
            if granting:
                return bool(place), min(granting)
        return None

    def reason(self, rank: Rank, scopes: Scopes) -> str:
        place, key = rank
        return self._bindings[key].reason(scopes[place])

    def granted(self, scopes: Scopes) -> list[RoleRef]:
        """Role of each binding of a user, in order of evaluation."""
        granted = []
        for subjects in self.present(scopes):
            roles: dict[str, RoleRef] = {}
            for subject in subjects:
                for role, keys in self._subjects[subject].items():
                    roles.update(dict.fromkeys(keys, role))
            granted += [roles[key] for key in sorted(roles)]
        return granted
