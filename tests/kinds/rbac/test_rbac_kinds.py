"""Roles and bindings, and coverage of rules."""

import random
from typing import Any

import pytest

from kubist.api.rbac import MOST, Held, permissions, uncovered

V1 = "rbac.authorization.k8s.io/v1"
Causes = list[tuple[str, str]]


@pytest.mark.parametrize(
    ("rule", "expected"),
    [
        ("{verbs: [get], apiGroups: [''], resources: [pods]}", []),
        ("{verbs: [get], nonResourceURLs: [/healthz]}", []),
        ("{apiGroups: [''], resources: [pods]}", [("rules[0].verbs", "Required")]),
        ("{verbs: [get]}", [("rules[0].apiGroups", "Required"), ("rules[0].resources", "Required")]),
        (
            "{verbs: [get], nonResourceURLs: [/x], resourceNames: [a]}",
            [("rules[0].nonResourceURLs", "Invalid")],
        ),
    ],
)
def test_invalid_cluster_role_rule_is_rejected(kind_of: Any, rule: str, expected: Causes) -> None:
    assert kind_of(V1, "ClusterRole").create_errors(f"rules: [{rule}]") == expected


def test_role_with_urls_is_rejected(kind_of: Any) -> None:
    roles = kind_of(V1, "Role")
    assert roles.create_errors("rules: [{verbs: [get], nonResourceURLs: [/x]}]") == [
        ("rules[0].nonResourceURLs", "Invalid")
    ]


def test_aggregation_requires_selectors(kind_of: Any) -> None:
    roles = kind_of(V1, "ClusterRole")
    path = "aggregationRule.clusterRoleSelectors"
    assert roles.create_errors("aggregationRule: {}") == [(path, "Required")]
    bad = "aggregationRule: {clusterRoleSelectors: [{matchExpressions: [{key: a, operator: In}]}]}"
    assert roles.create_errors(bad) == [
        (f"{path}[0].matchExpressions[0].values", "Required"),
        (f"{path}[0]", "Invalid"),
    ]


@pytest.mark.parametrize(
    ("kind", "given", "expected"),
    [
        ("RoleBinding", "roleRef: {kind: Role, name: r}", []),
        ("ClusterRoleBinding", "roleRef: {kind: Role, name: r}", [("roleRef.kind", "NotSupported")]),
        (
            "RoleBinding",
            "roleRef: {apiGroup: apps, kind: Role}",
            [("roleRef.apiGroup", "NotSupported"), ("roleRef.name", "Required")],
        ),
        (
            "RoleBinding",
            "{roleRef: {kind: Role, name: r},"
            " subjects: [{kind: ServiceAccount, name: s}, {kind: Dog, name: d}]}",
            [("subjects[1].kind", "NotSupported")],
        ),
        (
            "ClusterRoleBinding",
            "{roleRef: {kind: ClusterRole, name: r}, subjects: [{kind: ServiceAccount, name: s}]}",
            [("subjects[0].namespace", "Required")],
        ),
    ],
)
def test_invalid_binding_is_rejected(kind_of: Any, kind: str, given: str, expected: Causes) -> None:
    assert kind_of(V1, kind).create_errors(given) == expected


def test_subject_groups_are_defaulted_and_role_ref_is_immutable(kind_of: Any) -> None:
    bindings = kind_of(V1, "RoleBinding")
    old = bindings.stored("{roleRef: {kind: Role, name: r}, subjects: [{kind: User, name: u}]}")
    assert old["roleRef"]["apiGroup"] == old["subjects"][0]["apiGroup"] == "rbac.authorization.k8s.io"
    assert bindings.change_errors(old, lambda b: b.update(subjects=[])) == []
    assert bindings.change_errors(old, lambda b: b["roleRef"].update(name="q")) == [("roleRef", "Invalid")]


def rule(verbs: str, groups: str, resources: str, names: str = "") -> dict[str, Any]:
    made = {"verbs": verbs.split(), "apiGroups": groups.split(","), "resources": resources.split()}
    return {**made, "resourceNames": names.split()} if names else made


@pytest.mark.parametrize(
    ("owner", "wanted", "covered"),
    [
        (rule("*", "*", "*"), rule("get", "apps", "deployments/scale"), True),
        (rule("get", "", "*/scale"), rule("get", "", "pods/scale"), True),
        (rule("get", "", "pods"), rule("get", "", "pods/log"), False),
        (rule("get", "", "pods"), rule("get", "", "pods", "a"), True),
        (rule("get", "", "pods", "a"), rule("get", "", "pods"), False),
        (rule("get", "", "pods", "a b"), rule("get", "", "pods", "b"), True),
        (
            {"verbs": ["get"], "nonResourceURLs": ["/api/*"]},
            {"verbs": ["get"], "nonResourceURLs": ["/api/x"]},
            True,
        ),
    ],
)
def test_rule_coverage(owner: dict[str, Any], wanted: dict[str, Any], covered: bool) -> None:
    assert (Held([owner]).lacks(wanted) is None) is covered


def test_missing_permissions_are_listed_one_by_one() -> None:
    owner = [rule("get", "", "pods"), rule("list", "", "services")]
    assert uncovered(owner, [rule("get list", "", "pods services")]) == [
        rule("list", "", "pods"),
        rule("get", "", "services"),
    ]


def test_coverage_agrees_with_exhaustive_check() -> None:
    """The index of held rules gives the same result as a check of every rule for every permission."""
    chance = random.Random(36)
    verbs, groups, names = ["get", "list", "*"], ["", "a", "*"], ["n", "m"]
    resources, urls = ["pods", "pods/log", "*/log", "*"], ["/a", "/a/*", "*", "/a/b"]

    def some(values: list[str]) -> list[str]:
        return chance.sample(values, chance.randint(1, 2))

    def made() -> dict[str, Any]:
        if chance.random() < 0.3:
            return {"verbs": some(verbs), "nonResourceURLs": some(urls)}
        resource_rule = {"verbs": some(verbs), "apiGroups": some(groups), "resources": some(resources)}
        return {**resource_rule, "resourceNames": some(names)} if chance.random() < 0.4 else resource_rule

    for _ in range(2000):
        owner, wanted = [made() for _ in range(chance.randint(0, 5))], [made() for _ in range(2)]
        missing = [
            permission
            for each in wanted
            for permission in permissions(each)
            if not any(_gives(held, permission) for held in owner)
        ]
        assert uncovered(owner, wanted) == missing


def _gives(held: dict[str, Any], permission: dict[str, Any]) -> bool:
    if held["verbs"] != ["*"] and not {"*", permission["verbs"][0]} & set(held["verbs"]):
        return False
    if urls := permission.get("nonResourceURLs"):
        prefixes = [url[:-1] for url in held.get("nonResourceURLs", ()) if url.endswith("*")]
        return urls[0] in held.get("nonResourceURLs", ()) or urls[0].startswith(tuple(prefixes))
    resource = permission["resources"][0]
    _, slash, sub = resource.partition("/")
    known = {"*", resource} | ({f"*/{sub}"} if slash else set())
    if not known & set(held.get("resources", ())):
        return False
    if not {"*", permission["apiGroups"][0]} & set(held["apiGroups"]):
        return False
    named = held.get("resourceNames")
    return not named or bool(set(permission.get("resourceNames", ())) & set(named))


def test_role_of_a_million_permissions_is_compared() -> None:
    wide = {
        "verbs": [f"v{n}" for n in range(1000)],
        "apiGroups": [""],
        "resources": [f"r{n}" for n in range(1000)],
    }
    held = [{"verbs": [f"v{n}"], "apiGroups": ["*"], "resources": ["*"]} for n in range(1000)]
    assert uncovered(held, [wide]) == []
    assert len(uncovered(held[1:], [wide])) > 0
    assert len(uncovered([], [wide])) == MOST
