"""RBAC authorizer: roles and bindings, indexed by subject and kept up to date by the cache. A decision
decodes no object.

The rules of a user in a namespace are gathered once (`Grants`) and dropped when any role or binding changes.
"""

from __future__ import annotations

import asyncio
from collections.abc import Iterator
from typing import TYPE_CHECKING, Any

from kubist.api.filters.authorization.query import AuthorizationQuery, aggregate
from kubist.api.resources.context import Rules, User
from kubist.base.caching import BoundedCache
from kubist.base.jsontext.quoting import quoted
from kubist.model.meta.object import Object
from kubist.storage.cache.cache import Change, Collection, Entry

if TYPE_CHECKING:
    from kubist.api.object_store.registry import Registry

GROUP = "rbac.authorization.k8s.io"
GRANTS = 4096
"""Maximum number of cached grants (pairs of user and namespace)."""
ANSWERS = 16_384
"""Maximum number of cached answers of all grants together."""

Subject = tuple[str, str, str]
"""Kind (User or Group), name, and the namespace of the binding ("" for cluster-wide)."""
Answer = list[tuple[frozenset[str], str]]
"""For each rule that allows a request: the names that it is limited to (empty: all), and the reason."""
Answers = dict[tuple[Any, ...], Answer]
"""Key: grants, verb, and either group, resource and subresource, or the path."""


class Rule:
    """A PolicyRule compiled for fast checks. `said` is the original rule, for reviews and the escalation check."""

    __slots__ = ("groups", "names", "resources", "said", "urls", "verbs")

    def __init__(self, said: Object) -> None:
        self.said = said
        self.verbs = frozenset(said.get("verbs") or ())
        self.groups = frozenset(said.get("apiGroups") or ())
        self.resources = frozenset(said.get("resources") or ())
        self.names = frozenset(said.get("resourceNames") or ())
        self.urls = tuple(said.get("nonResourceURLs") or ())

    def allows(self, verb: str, group: str, resource: str, subresource: str) -> bool:
        """Whether the rule covers the verb and resource. The caller checks `names` (empty: all)."""
        if not ("*" in self.verbs or verb in self.verbs):
            return False
        if not ("*" in self.groups or group in self.groups):
            return False
        resources = self.resources
        if "*" in resources:
            return True
        if not subresource:
            return resource in resources
        return f"{resource}/{subresource}" in resources or f"*/{subresource}" in resources

    def allows_path(self, verb: str, path: str) -> bool:
        if not ("*" in self.verbs or verb in self.verbs):
            return False
        return any(
            url == path or (url.endswith("*") and path.startswith(url.rstrip("*"))) for url in self.urls
        )


class Binding:
    """A RoleBinding or ClusterRoleBinding: its subjects and its role."""

    __slots__ = ("name", "namespace", "role_kind", "role_name", "subjects")

    def __init__(self, entry: Entry) -> None:
        obj = entry.object()
        self.name, self.namespace = entry.name, entry.namespace
        role = obj.get("roleRef") or {}
        self.role_kind: str = role.get("kind", "")
        self.role_name: str = role.get("name", "")
        self.subjects = [self._subject(subject) for subject in obj.get("subjects") or ()]

    def _subject(self, subject: Object) -> tuple[Subject, str]:
        """The subject as an index key, and its description in reasons."""
        kind, name = subject.get("kind", ""), subject.get("name", "")
        if kind != "ServiceAccount":
            return (kind, name, self.namespace), f"{kind} {quoted(name)}"
        home = subject.get("namespace") or self.namespace
        username = f"system:serviceaccount:{home}:{name}" if home else ""
        return ("User", username, self.namespace), f"{kind} {quoted(f'{name}/{home}')}"

    def reason(self, called: str) -> str:
        kind, name = ("RoleBinding", f"{self.name}/{self.namespace}") if self.namespace else ("", "")
        binding = f"{kind} {quoted(name)}" if kind else f"ClusterRoleBinding {quoted(self.name)}"
        return f"RBAC: allowed by {binding} of {self.role_kind} {quoted(self.role_name)} to {called}"


class Grants:
    """All rules of one user in one namespace, grouped by the binding that grants them, with its reason."""

    __slots__ = ("answers", "denied", "errors", "sources")

    def __init__(
        self, sources: list[tuple[str, tuple[Rule, ...]]], errors: list[str], answers: Answers
    ) -> None:
        self.sources = sources
        self.errors = errors
        self.denied = f"RBAC: {aggregate(errors)}" if errors else ""
        self.answers = answers

    def rules(self) -> Iterator[Rule]:
        for _, rules in self.sources:
            yield from rules

    def decide(self, attributes: AuthorizationQuery) -> tuple[bool | None, str]:
        if attributes.is_resource:
            question: tuple[Any, ...] = (
                self,
                attributes.verb,
                attributes.group,
                attributes.resource,
                attributes.subresource,
            )
        else:
            question = (self, attributes.verb, attributes.path)
        answers = self.answers.get(question)
        if answers is None:
            answers = self.answers[question] = self._answer(question[1:])
        for names, reason in answers:
            if not names or attributes.name in names:
                return True, reason
        return None, self.denied

    def _answer(self, question: tuple[str, ...]) -> Answer:
        answer = []
        for reason, rules in self.sources:
            for rule in rules:
                if len(question) == 2:
                    if rule.allows_path(*question):
                        answer.append((_ANY, reason))
                elif rule.allows(*question):
                    answer.append((rule.names, reason))
        return answer


_ANY: frozenset[str] = frozenset()


class RBAC:
    """The authorizer. It reads roles and bindings from the cache."""

    def __init__(self, registry: Registry) -> None:
        self._registry = registry
        self._collections: dict[str, Collection] = {}
        self._seen: list[tuple[Collection, Any]] = []
        self._bindings: dict[str, Binding] = {}
        self._subjects: dict[Subject, set[str]] = {}
        self._roles: dict[str, tuple[Rule, ...]] = {}
        """Rules of stored roles by key."""
        self._grants: BoundedCache[tuple[str, tuple[str, ...], str], Grants] = BoundedCache(
            entries=GRANTS, key_length=4096
        )
        self._answers: Answers = BoundedCache(entries=ANSWERS, key_length=256)
        self._loading: list[asyncio.Future[None]] = []

    async def decide(self, attributes: AuthorizationQuery) -> tuple[bool | None, str]:
        user = attributes.user
        return self.grants(user, attributes.namespace).decide(attributes)

    def rules(self, user: User, namespace: str) -> Rules:
        grants = self.grants(user, namespace)
        said = [rule.said for rule in grants.rules()]
        return Rules(
            [
                _rule_of_review(rule, "apiGroups", "resources", "resourceNames")
                for rule in said
                if rule.get("resources")
            ],
            [_rule_of_review(rule, "nonResourceURLs") for rule in said if rule.get("nonResourceURLs")],
            error=aggregate(grants.errors),
        )

    def grants(self, user: User, namespace: str) -> Grants:
        """Rules of a user from the bindings of the namespace (if any) and of the cluster."""
        for collection, entries in self._seen:
            if collection.entries is not entries or not collection.loaded:
                self._load()
                break
        if not self._seen:
            self._load()
        key = (user.name, user.groups, namespace)
        grants = self._grants.get(key)
        if grants is None:
            grants = self._grants[key] = self._gather(user, namespace)
            if key not in self._grants:
                grants.answers = {}  # The key is too long for the cache, so these grants are used only once.
            elif len(self._grants) == 1:
                self._answers.clear()  # Drop the answers of grants that were dropped or have changed.
        return grants

    def role(self, kind: str, name: str, namespace: str) -> tuple[Rule, ...] | None:
        """Rules of a role; None if it does not exist."""
        resource = "roles" if kind == "Role" else "clusterroles"
        collection = self._collection(resource)
        key = (
            f"{collection.kind.prefix}{namespace}/{name}" if kind == "Role" else collection.kind.prefix + name
        )
        rules = self._roles.get(key)
        if rules is None and (entry := collection.get(key)) is not None:
            rules = self._roles[key] = tuple(Rule(rule) for rule in entry.object().get("rules") or ())
        return rules

    def _gather(self, user: User, namespace: str) -> Grants:
        sources, errors = [], []
        for scope in ("", namespace) if namespace else ("",):
            subjects = self._subjects
            matches = {subject for group in user.groups if (subject := ("Group", group, scope)) in subjects}
            if ("User", user.name, scope) in subjects:
                matches.add(("User", user.name, scope))
            keys = {key for subject in matches for key in subjects[subject]}
            for key in sorted(keys):
                binding = self._bindings[key]
                called = next(called for subject, called in binding.subjects if subject in matches)
                if binding.role_kind not in ("Role", "ClusterRole"):
                    errors.append(f"unsupported role reference kind: {quoted(binding.role_kind)}")
                    continue
                rules = self.role(binding.role_kind, binding.role_name, scope)
                if rules is None:
                    kind = binding.role_kind.lower()
                    errors.append(f"{kind}.{GROUP} {quoted(binding.role_name)} not found")
                else:
                    sources.append((binding.reason(called), rules))
        return Grants(sources, errors, self._answers)

    def _collection(self, resource: str) -> Collection:
        collection = self._collections.get(resource)
        if collection is None:
            stored = self._registry.resources.stored(GROUP, resource)
            assert stored is not None
            collection = self._collections[resource] = self._registry.collection(stored)
        return collection

    def _load(self) -> None:
        """Reads all bindings. This is repeated only when the cache was reloaded after it lost the store's history."""
        self._bindings.clear()
        self._subjects.clear()
        self._roles.clear()
        self._grants.clear()
        self._seen = []
        self._loading = [task for task in self._loading if not task.done()]
        for resource in ("clusterroles", "roles", "clusterrolebindings", "rolebindings"):
            collection = self._collection(resource)
            if not collection.loaded:
                self._loading.append(asyncio.ensure_future(collection.ready()))
            self._seen.append((collection, collection.entries))
            if resource.endswith("bindings"):
                collection.subscribe(self, self._bindings_changed)
                for entry in collection.entries.values():
                    self._bind(entry)
            else:
                collection.subscribe(self, self._roles_changed)

    def _roles_changed(self, changes: list[Change]) -> None:
        self._grants.clear()
        for change in changes:
            self._roles.pop(_key(change), None)

    def _bindings_changed(self, changes: list[Change]) -> None:
        self._grants.clear()
        for change in changes:
            key = _key(change)
            old = self._bindings.pop(key, None)
            for subject, _ in old.subjects if old is not None else ():
                if keys := self._subjects.get(subject):
                    keys.discard(key)
                    if not keys:
                        del self._subjects[subject]
            if change.new is not None:
                self._bind(change.new)

    def _bind(self, entry: Entry) -> None:
        binding = self._bindings[entry.key] = Binding(entry)
        for subject, _ in binding.subjects:
            self._subjects.setdefault(subject, set()).add(entry.key)


def _key(change: Change) -> str:
    entry = change.new or change.old
    assert entry is not None
    return entry.key


def _rule_of_review(rule: Object, *fields: str) -> Object:
    """A rule as reviews show it."""
    return {name: rule[name] for name in ("verbs", *fields) if rule.get(name)}
