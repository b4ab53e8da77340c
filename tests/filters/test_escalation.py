"""Privilege escalation check: users grant only permissions that they have, unless they may `escalate` or `bind`."""

from __future__ import annotations

import pytest

from kubist.model.meta.object import Object
from tests.filters.askers import Person, grant, rbac, user
from tests.live import Client

GROUP = "rbac.authorization.k8s.io"
MANAGE = {"verbs": ["*"], "apiGroups": [GROUP], "resources": ["roles", "rolebindings", "clusterroles"]}
READ = {"verbs": ["get", "list"], "apiGroups": [""], "resources": ["configmaps"]}


@pytest.fixture
def manager(admin: Client, someone: Person, space: str) -> Person:
    """User that may write roles and read config maps in a namespace."""
    rules: list[Object] = [
        {
            "verbs": ["create", "update", "patch", "get"],
            "apiGroups": [GROUP],
            "resources": ["roles", "rolebindings"],
        },
        READ,
    ]
    grant(admin, user(someone.more["Impersonate-User"]), *rules, namespace=space)
    return someone


def role(name: str, *rules: Object) -> Object:
    return {"metadata": {"name": name}, "rules": list(rules)}


@pytest.mark.parametrize(
    ("rule", "missing"),
    [
        (READ, ""),
        (READ | {"verbs": ["get"], "resourceNames": ["one"]}, ""),
        (READ | {"verbs": ["get", "delete", "watch"]},
         '{APIGroups:[""], Resources:["configmaps"], Verbs:["delete" "watch"]}'),
        (READ | {"resources": ["configmaps/status"], "verbs": ["get"]},
         '{APIGroups:[""], Resources:["configmaps/status"], Verbs:["get"]}'),
        (READ | {"verbs": ["*"], "resources": ["*"], "apiGroups": ["*"]},
         '{APIGroups:["*"], Resources:["*"], Verbs:["*"]}'),
    ],
)  # fmt: skip
def test_role_may_grant_only_permissions_of_its_author(
    manager: Person, space: str, rule: Object, missing: str
) -> None:
    answer = manager.ask("POST", rbac(f"namespaces/{space}/roles"), role("new", rule))
    assert answer.status == (403 if missing else 201)
    if missing:
        assert answer.json["message"].endswith(f"permissions not currently held:\n{missing}")


def test_any_change_of_a_stronger_role_is_rejected(admin: Client, manager: Person, space: str) -> None:
    path = rbac(f"namespaces/{space}/roles")
    admin.post(path, role("strong", READ | {"resources": ["secrets"]}))
    labels = {"metadata": {"labels": {"a": "b"}}}
    merge = "application/merge-patch+json"
    assert manager.ask("PATCH", f"{path}/strong", labels, merge).status == 403
    owners = {"metadata": {"finalizers": ["example.com/f"]}}
    assert manager.ask("PATCH", f"{path}/strong", owners, merge).status == 200


def test_escalate_verb_bypasses_the_check_for_roles_only(admin: Client, manager: Person, space: str) -> None:
    who = user(manager.more["Impersonate-User"])
    grant(admin, who, {"verbs": ["escalate"], "apiGroups": [GROUP], "resources": ["roles"]}, namespace=space)
    path = rbac(f"namespaces/{space}")
    assert manager.ask("POST", f"{path}/roles", role("strong", READ | {"verbs": ["*"]})).status == 201
    assert manager.ask("POST", f"{path}/rolebindings", binding("strong", "Role")).status == 403


def binding(name: str, kind: str) -> Object:
    ref = {"apiGroup": GROUP, "kind": kind, "name": name}
    return {"metadata": {"name": f"to-{name}"}, "roleRef": ref, "subjects": [user("jo")]}


def test_bind_verb_bypasses_the_check_for_the_named_role(admin: Client, manager: Person, space: str) -> None:
    path = rbac(f"namespaces/{space}/rolebindings")
    assert manager.ask("POST", path, binding("view", "ClusterRole")).status == 201
    assert manager.ask("POST", path, binding("system:node", "ClusterRole")).status == 403
    rule = {"verbs": ["bind"], "apiGroups": [GROUP], "resources": ["clusterroles"]}
    who = user(manager.more["Impersonate-User"])
    grant(admin, who, rule | {"resourceNames": ["system:node"]}, namespace=space)
    assert manager.ask("POST", path, binding("system:node", "ClusterRole")).status == 201
    assert manager.ask("POST", path, binding("cluster-admin", "ClusterRole")).status == 403


def test_binding_a_missing_role_is_not_found(manager: Person, space: str) -> None:
    answer = manager.ask("POST", rbac(f"namespaces/{space}/rolebindings"), binding("none", "Role"))
    assert answer.status == 404
    assert answer.json["details"] == {"name": "none", "group": GROUP, "kind": "rolebindings"}


def test_aggregation_rule_needs_all_permissions(admin: Client, someone: Person) -> None:
    name = someone.more["Impersonate-User"]
    grant(admin, user(name), {"verbs": ["create"], "apiGroups": [GROUP], "resources": ["clusterroles"]})
    gathering = {"clusterRoleSelectors": [{"matchLabels": {"a": "b"}}]}
    body = {"metadata": {"name": f"gather-{name}"}, "aggregationRule": gathering}
    answer = someone.ask("POST", rbac("clusterroles"), body)
    assert answer.status == 403
    assert "must have cluster-admin privileges" in answer.json["message"]
    everything: list[Object] = [
        {"verbs": ["*"], "apiGroups": ["*"], "resources": ["*"]},
        {"verbs": ["*"], "nonResourceURLs": ["*"]},
    ]
    grant(admin, user(name), *everything)
    assert someone.ask("POST", rbac("clusterroles"), body).status == 201


def test_dry_run_escalation_is_rejected(manager: Person, space: str) -> None:
    path = rbac(f"namespaces/{space}/roles?dryRun=All")
    assert manager.ask("POST", path, role("x", MANAGE)).status == 403
