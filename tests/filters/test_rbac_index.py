"""The index of RBAC rules: it agrees with a simple authorizer, follows changes one by one, and works in turns."""

from __future__ import annotations

import asyncio
import random
from collections.abc import Callable, Coroutine
from typing import Any, NamedTuple

import orjson
import pytest

from kubist.api.filters.authorization.policy_rules import Role, Rule
from kubist.api.filters.authorization.query import AuthorizationQuery, aggregate
from kubist.api.filters.authorization.rbac import GROUP, RBAC
from kubist.api.rbac import uncovered
from kubist.api.resources.context import User
from kubist.base import turns
from kubist.base.jsontext.quoting import quoted
from kubist.model.meta.object import Object
from kubist.storage.cache.cache import Change, Entry

Verdict = tuple[bool | None, str]


class Kind(NamedTuple):
    prefix: str
    head: bytes = b"{"


class StoredEntry(Entry):
    """Entry that counts how often it is parsed."""

    parsed = 0

    def object(self) -> Object:
        StoredEntry.parsed += 1
        return super().object()


class Objects:
    """One collection of the cache."""

    loaded = True

    def __init__(self, resource: str) -> None:
        self.kind = Kind(f"/registry/{resource}/")
        self.entries: dict[str, Entry] = {}
        self._subscribers: list[Callable[[list[Change]], None]] = []

    def get(self, key: str) -> Entry | None:
        return self.entries.get(key)

    def subscribe(self, _: object, subscriber: Callable[[list[Change]], None]) -> None:
        self._subscribers = [subscriber]

    def put(self, path: str, obj: Object | None) -> None:
        key = self.kind.prefix + path
        old, new = self.entries.pop(key, None), None
        if obj is not None:
            tail = orjson.dumps({"metadata": {}, **obj})[1:]
            new = self.entries[key] = StoredEntry(key, 1, tail, self.kind)  # type: ignore[arg-type]
        if old is not None or new is not None:
            for subscriber in self._subscribers:
                subscriber([Change(1, old, new)])


class Cluster:
    """Roles and bindings, their authorizer, and a simple authorizer that reads all of them for each request."""

    def __init__(self) -> None:
        names = ("clusterroles", "roles", "clusterrolebindings", "rolebindings")
        self.objects = {name: Objects(name) for name in names}
        self.rbac = RBAC(self)  # type: ignore[arg-type]
        self.resources = self

    def stored(self, _: str, resource: str) -> str:
        return resource

    def collection(self, resource: str) -> Objects:
        return self.objects[resource]

    def bind(
        self, name: str, role: str, *subjects: Object, namespace: str = "", kind: str = "ClusterRole"
    ) -> None:
        binding = {"roleRef": {"kind": kind, "name": role}, "subjects": list(subjects)}
        if namespace:
            self.objects["rolebindings"].put(f"{namespace}/{name}", binding)
        else:
            self.objects["clusterrolebindings"].put(name, binding)

    def reload(self) -> None:
        """Loads the collections again, as the cache does after it lost the store's history."""
        for collection in self.objects.values():
            collection.entries = dict(collection.entries)

    def _sources(self, user: User, namespace: str) -> tuple[list[tuple[str, list[Object]]], str]:
        sources, errors = [], []
        for scope in ("", namespace) if namespace else ("",):
            bindings = self.objects["rolebindings" if scope else "clusterrolebindings"].entries
            for key in sorted(bindings):
                entry = bindings[key]
                obj = orjson.loads(entry.json())
                if entry.namespace != scope:
                    continue
                called = next((told for s in obj["subjects"] if (told := _called(s, user, scope))), None)
                if called is None:
                    continue
                kind, name = obj["roleRef"]["kind"], obj["roleRef"]["name"]
                if kind not in ("Role", "ClusterRole"):
                    errors.append(f"unsupported role reference kind: {quoted(kind)}")
                    continue
                roles = self.objects["roles" if kind == "Role" else "clusterroles"]
                role = roles.get(roles.kind.prefix + (f"{scope}/{name}" if kind == "Role" else name))
                if role is None:
                    errors.append(f"{kind.lower()}.{GROUP} {quoted(name)} not found")
                    continue
                where = f"RoleBinding {quoted(f'{entry.name}/{scope}')}" if scope else ""
                where = where or f"ClusterRoleBinding {quoted(entry.name)}"
                reason = f"RBAC: allowed by {where} of {kind} {quoted(name)} to {called}"
                sources.append((reason, orjson.loads(role.json()).get("rules") or []))
        return sources, aggregate(errors)

    def decide(self, query: AuthorizationQuery) -> Verdict:
        """Verdict of the simple authorizer."""
        sources, error = self._sources(query.user, query.namespace)
        for reason, rules in sources:
            for rule in map(Rule, rules):
                if not query.is_resource:
                    if rule.allows_path(query.verb, query.path):
                        return True, reason
                elif rule.allows(query.verb, query.group, query.resource, query.subresource) and (
                    not rule.names or query.name in rule.names
                ):
                    return True, reason
        return None, f"RBAC: {error}" if error else ""

    def rules(self, user: User, namespace: str) -> tuple[list[Object], list[Object], str]:
        """Rules of a user by the simple authorizer."""
        sources, error = self._sources(user, namespace)
        rules = [rule for _, rules in sources for rule in rules]
        fields = ("verbs", "apiGroups", "resources", "resourceNames")
        return (
            [{f: rule[f] for f in fields if rule.get(f)} for rule in rules if rule.get("resources")],
            [
                {f: rule[f] for f in ("verbs", "nonResourceURLs")}
                for rule in rules
                if rule.get("nonResourceURLs")
            ],
            error,
        )


def _called(subject: Object, user: User, scope: str) -> str:
    kind, name = subject["kind"], subject["name"]
    if kind == "ServiceAccount":
        home = subject.get("namespace") or scope
        is_user = bool(home) and user.name == f"system:serviceaccount:{home}:{name}"
        return f"{kind} {quoted(f'{name}/{home}')}" if is_user else ""
    is_user = name in user.groups if kind == "Group" else kind == "User" and name == user.name
    return f"{kind} {quoted(name)}" if is_user else ""


class Chance:
    """Random roles, bindings and requests of a small world, in which most things meet."""

    VERBS = ("get", "list", "create", "*")
    GROUPS = ("", "apps", "*")
    RESOURCES = ("pods", "pods/log", "deployments", "*/scale", "deployments/scale", "*")
    NAMES = ("a", "b", "c", "")
    URLS = ("/healthz", "/healthz/*", "/api*", "*")
    SPACES = ("one", "two")
    USERS = ("jo", "system:serviceaccount:one:bot", "flo")

    def __init__(self, seed: int) -> None:
        self.chance = random.Random(seed)

    def some(self, values: tuple[str, ...]) -> list[str]:
        return self.chance.sample(values, self.chance.randint(1, 2))

    def rule(self) -> Object:
        if self.chance.random() < 0.25:
            return {"verbs": self.some(self.VERBS), "nonResourceURLs": self.some(self.URLS)}
        rule = {"verbs": self.some(self.VERBS[: self.chance.randint(3, 4)])}
        rule |= {
            "apiGroups": self.some(self.GROUPS),
            "resources": self.some(self.RESOURCES[: self.chance.randint(3, 6)]),
        }
        if self.chance.random() < 0.1:
            rule["verbs"] = [*rule["verbs"], *(f"verb{n}" for n in range(80))]
        return {**rule, "resourceNames": self.some(self.NAMES)} if self.chance.random() < 0.6 else rule

    def subject(self) -> Object:
        match self.chance.choice(("User", "Group", "ServiceAccount", "Dog")):
            case "ServiceAccount":
                return {
                    "kind": "ServiceAccount",
                    "name": "bot",
                    "namespace": self.chance.choice(("one", "two", "")),
                }
            case "Group":
                return {"kind": "Group", "name": self.chance.choice(("devs", "ops"))}
            case kind:
                return {"kind": kind, "name": self.chance.choice(self.USERS)}

    def change(self, cluster: Cluster) -> None:
        pick = self.chance.choice
        resource = pick(("clusterroles", "roles", "clusterrolebindings", "rolebindings"))
        name = f"{resource[0]}{self.chance.randint(0, 6)}"
        path = name if resource.startswith("cluster") else f"{pick(self.SPACES)}/{name}"
        obj: Object | None = None
        if self.chance.random() < 0.75:
            if resource.endswith("bindings"):
                kind = pick(
                    ("ClusterRole", "Role", "Role") if resource == "rolebindings" else ("ClusterRole", "Rule")
                )
                ref = {"kind": kind, "name": f"{'r' if kind == 'Role' else 'c'}{self.chance.randint(0, 7)}"}
                obj = {"roleRef": ref, "subjects": [self.subject() for _ in range(self.chance.randint(0, 4))]}
            else:
                obj = {"rules": [self.rule() for _ in range(self.chance.randint(0, 4))]}
        cluster.objects[resource].put(path, obj)

    def user(self) -> User:
        return User(
            self.chance.choice(self.USERS), groups=self.chance.choice(((), ("devs",), ("ops", "devs")))
        )

    def query(self) -> AuthorizationQuery:
        pick = self.chance.choice
        if self.chance.random() < 0.25:
            path = pick(("/healthz", "/healthz/x", "/apis", "/version"))
            return AuthorizationQuery(self.user(), pick(("get", "create")), path)
        resource, _, subresource = pick(("pods", "pods/log", "deployments", "deployments/scale")).partition(
            "/"
        )
        return AuthorizationQuery(
            self.user(),
            pick(("get", "list", "delete", "verb7")),
            is_resource=True,
            group=pick(("", "apps", "batch")),
            resource=resource,
            subresource=subresource,
            namespace=pick(("", *self.SPACES)),
            name=pick((*self.NAMES, "d")),
        )


@pytest.fixture
def short_turns(monkeypatch: pytest.MonkeyPatch) -> None:
    """Work yields at each opportunity."""
    monkeypatch.setattr(turns, "TURN", -1.0)


@pytest.mark.parametrize("seed", range(6))
def test_index_agrees_with_a_simple_authorizer(seed: int) -> None:
    async def compare() -> int:
        chance, cluster = Chance(seed), Cluster()
        allowed = 0
        for _ in range(250):
            chance.change(cluster)
            for _ in range(4):
                query = chance.query()
                verdict = await cluster.rbac.decide(query)
                assert verdict == cluster.decide(query)
                allowed += verdict[0] is True
            user, namespace = chance.user(), chance.chance.choice(("", *chance.SPACES))
            rules = await cluster.rbac.rules(user, namespace)
            expected = cluster.rules(user, namespace)
            assert (rules.resource_rules, rules.non_resource_rules, rules.error) == expected
            wanted = [chance.rule() for _ in range(chance.chance.randint(1, 3))]
            relevant = await cluster.rbac.relevant_rules(user, namespace, wanted)
            own = [*relevant.resource_rules, *relevant.non_resource_rules]
            assert uncovered(own, wanted) == uncovered([*expected[0], *expected[1]], wanted)
            assert relevant.error == expected[2]
        return allowed

    assert 50 < asyncio.run(compare()) < 800


@pytest.mark.usefixtures("short_turns")
@pytest.mark.parametrize("seed", range(4))
def test_changes_and_reloads_during_a_decision_count(seed: int) -> None:
    """Each verdict is the one of a state between request and response, and later ones are of the last state."""

    async def compare() -> None:
        chance, cluster = Chance(seed), Cluster()
        for _ in range(60):
            queries = [chance.query() for _ in range(5)]
            chance.change(cluster)
            tasks = [asyncio.ensure_future(cluster.rbac.decide(query)) for query in queries]
            tasks.append(asyncio.ensure_future(cluster.rbac.decide(chance.query())))
            possible: list[set[Verdict]] = [set() for _ in queries]
            while not all(task.done() for task in tasks):
                for verdicts, query in zip(possible, queries, strict=True):
                    verdicts.add(cluster.decide(query))
                await asyncio.sleep(0)
                if chance.chance.random() < 0.2:
                    chance.change(cluster)
                if chance.chance.random() < 0.1:
                    tasks[-1].cancel()
                if chance.chance.random() < 0.05:
                    cluster.reload()
            for task, verdicts, query in zip(tasks, possible, queries, strict=False):
                allowed = {verdict[0] for verdict in verdicts} | {cluster.decide(query)[0]}
                assert task.result()[0] in allowed
            for query in queries:
                assert await cluster.rbac.decide(query) == cluster.decide(query)

    asyncio.run(compare())


EVERYBODY = {"kind": "Group", "name": "system:authenticated"}
JO = User("jo", groups=("system:authenticated",))


def get(name: str) -> AuthorizationQuery:
    return AuthorizationQuery(
        JO, "get", is_resource=True, resource="configmaps", namespace="default", name=name
    )


def crowded(bindings: int, roles: int = 30, rules: int = 300) -> Cluster:
    """Cluster with many bindings of everybody to roles with many rules."""
    cluster = Cluster()
    read = {"verbs": ["get"], "apiGroups": [""], "resources": ["configmaps"]}
    for role in range(roles):
        names = [{**read, "resourceNames": [f"n{role}-{n}"]} for n in range(rules)]
        cluster.objects["clusterroles"].put(f"r{role}", {"rules": names})
    for binding in range(bindings):
        cluster.bind(f"b{binding:05}", f"r{binding % roles}", EVERYBODY)
    return cluster


class Counts:
    """Steps of an authorizer: parsed objects, compared rules, and roles looked at."""

    def __init__(self, monkeypatch: pytest.MonkeyPatch) -> None:
        self.rules = self.roles = 0
        allows, source = Rule.allows, RBAC._source

        def count_rules(rule: Rule, *args: Any) -> bool:
            self.rules += 1
            return allows(rule, *args)

        def count_roles(rbac: RBAC, *args: Any) -> Coroutine[Any, Any, Any]:
            self.roles += 1
            return source(rbac, *args)

        monkeypatch.setattr(Rule, "allows", count_rules)
        monkeypatch.setattr(RBAC, "_source", count_roles)
        StoredEntry.parsed = 0

    def take(self) -> tuple[int, int, int]:
        counts = (StoredEntry.parsed, self.rules, self.roles)
        StoredEntry.parsed = self.rules = self.roles = 0
        return counts


def test_a_role_is_read_once_for_all_its_bindings(monkeypatch: pytest.MonkeyPatch) -> None:
    async def test() -> None:
        cluster, counts = crowded(1000), Counts(monkeypatch)
        assert await cluster.rbac.decide(get("none")) == (None, "")
        parsed, rules, _ = counts.take()
        assert (parsed, rules) == (1000 + 30, 9000)
        assert await cluster.rbac.decide(get("other")) == (None, "")
        assert (await cluster.rbac.decide(get("n29-299")))[0] is True
        await cluster.rbac.rules(JO, "default")
        assert counts.take() == (0, 0, 0)

    asyncio.run(test())


@pytest.mark.parametrize("bindings", [10, 1000])
def test_a_change_costs_the_same_with_any_number_of_bindings(
    monkeypatch: pytest.MonkeyPatch, bindings: int
) -> None:
    async def test() -> None:
        cluster, counts = crowded(bindings, roles=bindings, rules=9), Counts(monkeypatch)
        await cluster.rbac.decide(get("none"))
        counts.take()
        cluster.bind("new", "r1", EVERYBODY)
        await cluster.rbac.decide(get("none"))
        assert counts.take() == (1, 0, 2)  # the binding; one role for the verdict and for the errors
        cluster.objects["clusterroles"].put("r2", {"rules": []})
        await cluster.rbac.decide(get("none"))
        assert counts.take() == (1, 0, 2)
        cluster.objects["clusterrolebindings"].put("new", None)
        await cluster.rbac.decide(get("none"))
        assert counts.take() == (0, 0, 2)

    asyncio.run(test())


@pytest.mark.usefixtures("short_turns")
def test_long_work_leaves_turns_to_others() -> None:
    async def count(work: Coroutine[Any, Any, object]) -> int:
        task, others = asyncio.ensure_future(work), 0
        while not task.done():
            others += 1
            await asyncio.sleep(0)
        return others

    async def test() -> None:
        cluster = crowded(1000)
        assert await count(cluster.rbac.decide(get("none"))) > 1000 + 2 * 9000 / 64
        assert await count(cluster.rbac.rules(JO, "default")) > 900
        wanted = [
            {"verbs": ["*"], "apiGroups": ["*"], "resources": ["configmaps"], "resourceNames": ["n1-1"]}
        ]
        assert await count(cluster.rbac.relevant_rules(JO, "default", wanted)) >= 30
        subjects = [{"kind": "User", "name": f"u{n}"} for n in range(10_000)]
        cluster.bind("wide", "r1", *subjects)
        assert await count(cluster.rbac.decide(get("none"))) > 2 * 10_000 / 64

    asyncio.run(test())


def test_waiting_requests_of_a_user_share_the_work(monkeypatch: pytest.MonkeyPatch) -> None:
    async def test() -> None:
        cluster, counts = crowded(100), Counts(monkeypatch)
        await asyncio.gather(*(cluster.rbac.decide(get(f"none{n}")) for n in range(20)))
        parsed, rules, roles = counts.take()
        assert (parsed, rules, roles) == (130, 9000, 60)

    asyncio.run(test())


@pytest.mark.usefixtures("short_turns")
def test_cancelled_work_starts_again() -> None:
    async def test() -> None:
        cluster = crowded(3, roles=3)
        for turns_before in range(0, 60, 3):
            cluster.bind("again", "r1", EVERYBODY, {"kind": "User", "name": f"u{turns_before}"})
            rules = [{"verbs": ["get"], "apiGroups": [""], "resources": ["configmaps"]}] * 300
            cluster.objects["clusterroles"].put("r1", {"rules": rules[: 290 + turns_before % 2]})
            task = asyncio.ensure_future(cluster.rbac.decide(get("none")))
            for _ in range(turns_before):
                await asyncio.sleep(0)
            task.cancel()
            await asyncio.wait([task])
            assert await cluster.rbac.decide(get("none")) == cluster.decide(get("none"))
            rules_of_jo = await cluster.rbac.rules(JO, "default")
            assert rules_of_jo.resource_rules == cluster.rules(JO, "default")[0]

    asyncio.run(test())


def test_rules_with_many_pairs_do_not_blow_up_the_index() -> None:
    async def test() -> None:
        many = [f"x{n}" for n in range(2000)]
        role = {"rules": [{"verbs": many, "apiGroups": [""], "resources": many}]}
        cluster = Cluster()
        cluster.objects["clusterroles"].put("wide", role)
        cluster.bind("b", "wide", EVERYBODY)
        query = AuthorizationQuery(JO, "x7", is_resource=True, resource="x1999")
        assert await cluster.rbac.decide(query) == cluster.decide(query)
        (indexed,) = cluster.rbac._roles.values()
        assert isinstance(indexed, Role)
        assert sum(map(len, indexed._by_resource.values())) == 1

    asyncio.run(test())
