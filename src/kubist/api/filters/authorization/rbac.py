"""RBAC authorizer: follows roles and bindings in the cache. A decision decodes no object.

The answer to a question of a user is computed once. After a change of roles or bindings, only the roles that
changed are looked at again. Work that grows with the number of rules is done in turns.
"""

from __future__ import annotations

import asyncio
from bisect import bisect_left
from collections.abc import Sequence
from functools import partial
from typing import TYPE_CHECKING, Any

from kubist.api.filters.authorization.bindings import Bindings, Rank, RoleRef, Scopes, user_scopes
from kubist.api.filters.authorization.policy_rules import EVERYTHING, NOTHING, Match, Needs, Question, Role
from kubist.api.filters.authorization.query import AuthorizationQuery, aggregate
from kubist.api.resources.context import Rules, User
from kubist.base.caching import BoundedCache
from kubist.base.jsontext.quoting import quoted
from kubist.base.turns import Turns
from kubist.model.meta.object import Object
from kubist.storage.cache.cache import Change, Collection, Entry

if TYPE_CHECKING:
    from kubist.api.object_store.registry import Registry

GROUP = "rbac.authorization.k8s.io"
GRANTS = 4096
"""Maximum number of cached grants (pairs of user and namespace)."""
ANSWERS = 16_384
"""Maximum number of cached answers of all grants together."""
WEIGHT = 300_000
"""Maximum number of object names and roles in all cached answers together."""


class Grants:
    """One user in one namespace."""

    __slots__ = ("cached", "computing", "scopes")

    def __init__(self, scopes: Scopes) -> None:
        self.scopes = scopes
        self.cached = True
        """False: the key is too long for the cache, so these grants are used only once."""
        self.computing = asyncio.Lock()
        """Held while an answer is computed: requests of one user with the same question share the work."""


class Source:
    """Role that allows a request, through the first binding that grants it."""

    __slots__ = ("everything", "names", "rank", "reason")

    def __init__(self, rank: Rank, match: Match) -> None:
        self.rank = rank
        self.everything, self.names = match
        self.reason: str | None = None


class Answer:
    """Answer to a question of a user: the roles that allow the request, in order of evaluation."""

    __slots__ = ("error", "order", "sources", "version")

    def __init__(self) -> None:
        self.version = -1
        self.sources: dict[RoleRef, Source] = {}
        self.order: list[Source] = []
        self.error: str | None = None

    def remove(self, role: RoleRef) -> None:
        source = self.sources.pop(role, None)
        if source is not None:
            place = bisect_left(self.order, source.rank, key=_rank)
            # A binding that was created again for another role gives two sources the same rank for a while.
            while self.order[place] is not source:
                place += 1
            del self.order[place]

    def add(self, role: RoleRef, source: Source) -> None:
        self.sources[role] = source
        self.order.insert(bisect_left(self.order, source.rank, key=_rank), source)

    def fill(self, sources: dict[RoleRef, Source]) -> None:
        self.sources = sources
        self.order = sorted(sources.values(), key=_rank)


def _rank(source: Source) -> Rank:
    return source.rank


class RBAC:
    """The authorizer. It reads roles and bindings from the cache."""

    def __init__(self, registry: Registry) -> None:
        self._registry = registry
        self._collections: dict[str, Collection] = {}
        self._seen: list[tuple[Collection, Any]] = []
        self._bindings = Bindings((), 0)
        self._roles: dict[RoleRef, Role] = {}
        self._grants: BoundedCache[tuple[str, tuple[str, ...], str], Grants] = BoundedCache(
            entries=GRANTS, key_length=4096
        )
        self._answers: BoundedCache[tuple[Any, ...], Answer] = BoundedCache(entries=ANSWERS, key_length=256)
        """Key: grants, verb, and either group, resource and subresource, or the path. Grants alone: the bindings
        without a role."""
        self._weight = 0
        self._loading: list[asyncio.Future[None]] = []

    async def decide(self, attributes: AuthorizationQuery) -> tuple[bool | None, str]:
        grants = self._granted_to(attributes.user, attributes.namespace)
        question: tuple[Any, ...]
        if attributes.is_resource:
            question = (
                grants,
                attributes.verb,
                attributes.group,
                attributes.resource,
                attributes.subresource,
            )
        else:
            question = (grants, attributes.verb, attributes.path)
        answer = self._answers.get(question)
        if answer is None or answer.version != self._bindings.version:
            answer = await self._answer(grants, question)
        for source in answer.order:
            if source.everything or attributes.name in source.names:
                if source.reason is None:
                    source.reason = self._bindings.reason(source.rank, grants.scopes)
                return True, source.reason
        error = await self._errors(grants)
        return None, f"RBAC: {error}" if error else ""

    async def rules(self, user: User, namespace: str) -> Rules:
        """Rules of all bindings of a user, in order of evaluation."""
        grants = self._granted_to(user, namespace)
        rules = Rules([], [], error=await self._errors(grants))
        turns = Turns()
        for ref in self._bindings.granted(grants.scopes):
            role = await self._role(ref, turns)
            if role is not None:
                rules.resource_rules += role.resource_rules
                rules.non_resource_rules += role.non_resource_rules
            await turns.pause()
        return rules

    async def relevant_rules(self, user: User, namespace: str, wanted: Sequence[Object]) -> Rules:
        """Rules of a user that may cover some of the wanted rules. A role counts once."""
        grants = self._granted_to(user, namespace)
        rules = Rules([], [], error=await self._errors(grants))
        turns = Turns()
        needs = Needs(wanted)
        for ref in self._bindings.roles(grants.scopes):
            role = await self._role(ref, turns)
            if role is not None:
                rules.resource_rules += await role.relevant(needs, turns)
            await turns.pause()
        return rules

    def _granted_to(self, user: User, namespace: str) -> Grants:
        for collection, entries in self._seen:
            if collection.entries is not entries or not collection.loaded:
                self._load()
                break
        if not self._seen:
            self._load()
        key = (user.name, user.groups, namespace)
        grants = self._grants.get(key)
        if grants is None:
            grants = self._grants[key] = Grants(user_scopes(user.name, user.groups, namespace))
            grants.cached = key in self._grants
            if grants.cached and len(self._grants) == 1:
                self._forget()  # Drops the answers of grants that were dropped.
        return grants

    async def _answer(self, grants: Grants, question: tuple[Any, ...]) -> Answer:
        """Current answer to a question."""
        async with grants.computing:
            answer = self._answers.get(question) or Answer()
            turns = Turns()
            while answer.version != (bindings := self._bindings).version:
                await bindings.apply_pending()
                if bindings is self._bindings:
                    await self._renew(answer, grants.scopes, question[1:], turns)
            if grants.cached:
                self._answers[question] = answer
            return answer

    async def _renew(self, answer: Answer, scopes: Scopes, question: Question, turns: Turns) -> None:
        """Brings an answer up to the present version of the bindings. They may change in the meantime."""
        bindings = self._bindings
        version = bindings.version
        scopes = bindings.present(scopes)
        changed = bindings.changed(answer.version)
        answer.error = None
        if changed is not None:
            for ref in changed:
                answer.remove(ref)
                source = await self._source(bindings, ref, scopes, question, turns)
                if source is not None:
                    answer.add(ref, source)
                await turns.pause()
        else:
            sources = {}
            for ref in bindings.roles(scopes):
                source = await self._source(bindings, ref, scopes, question, turns)
                if source is not None:
                    sources[ref] = source
                await turns.pause()
            answer.fill(sources)
            self._weigh(len(sources))
        answer.version = version

    async def _source(
        self, bindings: Bindings, ref: RoleRef, scopes: Scopes, question: Question, turns: Turns
    ) -> Source | None:
        rank = bindings.rank(ref, scopes)
        if rank is None:
            return None
        role = await self._role(ref, turns)
        if not question:
            return Source(rank, EVERYTHING) if role is None else None
        if role is None:
            return None
        match = role.known(question)
        if match is None:
            match = await role.match(question, turns)
            self._weigh(1 + len(match.names))
        return Source(rank, match) if match != NOTHING else None

    async def _role(self, ref: RoleRef, turns: Turns) -> Role | None:
        """A role with its rules; None if it does not exist."""
        role = self._roles.get(ref)
        if role is None:
            kind, name, namespace = ref
            if kind not in ("Role", "ClusterRole"):
                return None
            collection = self._collection("roles" if kind == "Role" else "clusterroles")
            prefix = collection.kind.prefix
            entry = collection.get(f"{prefix}{namespace}/{name}" if kind == "Role" else prefix + name)
            if entry is None:
                return None
            role = self._roles[ref] = Role(entry)
        if not role.loaded:
            await role.load(turns)
        return role

    async def _errors(self, grants: Grants) -> str:
        """Errors of the user's bindings: they refer to roles that do not exist."""
        answer = self._answers.get((grants,))
        if answer is None or answer.version != self._bindings.version:
            answer = await self._answer(grants, (grants,))
        if answer.error is None:
            refs = {source.rank: ref for ref, source in answer.sources.items()}
            answer.error = aggregate(_error(refs[source.rank]) for source in answer.order)
        return answer.error

    def _weigh(self, weight: int) -> None:
        """Adds to the weight of the cached answers, and drops them all if they are too heavy."""
        self._weight += weight
        if self._weight > WEIGHT:
            self._forget()

    def _forget(self) -> None:
        self._weight = 0
        self._answers.clear()
        for role in self._roles.values():
            role.forget()

    def _collection(self, resource: str) -> Collection:
        collection = self._collections.get(resource)
        if collection is None:
            stored = self._registry.resources.stored(GROUP, resource)
            assert stored is not None
            collection = self._collections[resource] = self._registry.collection(stored)
        return collection

    def _load(self) -> None:
        """Reads all bindings. Happens again only when the cache was reloaded after it lost the store's history."""
        self._roles.clear()
        self._grants.clear()
        self._answers.clear()
        self._seen = []
        self._loading = [task for task in self._loading if not task.done()]
        bindings: list[Entry] = []
        for resource in ("clusterroles", "roles", "clusterrolebindings", "rolebindings"):
            collection = self._collection(resource)
            if not collection.loaded:
                self._loading.append(asyncio.ensure_future(collection.ready()))
            self._seen.append((collection, collection.entries))
            if resource.endswith("bindings"):
                collection.subscribe(self, self._bindings_changed)
                bindings += collection.entries.values()
            else:
                kind = "Role" if resource == "roles" else "ClusterRole"
                collection.subscribe(self, partial(self._roles_changed, kind))
        self._bindings = Bindings(bindings, self._bindings.version + 1)

    def _roles_changed(self, kind: str, changes: list[Change]) -> None:
        for change in changes:
            entry = change.new or change.old
            assert entry is not None
            ref = (kind, entry.name, entry.namespace)
            self._roles.pop(ref, None)
            self._bindings.touch(ref)

    def _bindings_changed(self, changes: list[Change]) -> None:
        for change in changes:
            entry = change.new or change.old
            assert entry is not None
            self._bindings.delay(entry.key, change.new)


def _error(role: RoleRef) -> str:
    kind, name, _ = role
    if kind not in ("Role", "ClusterRole"):
        return f"unsupported role reference kind: {quoted(kind)}"
    return f"{kind.lower()}.{GROUP} {quoted(name)} not found"
