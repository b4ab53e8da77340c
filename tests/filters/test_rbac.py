"""RBAC: rule matching, and decisions that follow changes of objects at once."""

from __future__ import annotations

import pytest
import yaml

from kubist.api.filters.authorization.policy_rules import Rule
from kubist.model.meta.object import Object
from tests.filters.askers import Person, bind, grant, group, rbac, user
from tests.live import Client, Live

READ = {"verbs": ["get", "list", "watch"], "apiGroups": [""], "resources": ["configmaps"]}


@pytest.mark.parametrize(
    ("resources", "asked", "allowed"),
    [
        (["pods"], ("pods", ""), True),
        (["pods"], ("pods", "log"), False),
        (["pods/log"], ("pods", "log"), True),
        (["pods/log"], ("pods", ""), False),
        (["*"], ("pods", "exec"), True),
        (["*/scale"], ("deployments", "scale"), True),
        (["*/scale"], ("deployments", ""), False),
        (["*/scale"], ("deployments", "status"), False),
        (["pods/*"], ("pods", "log"), False),
        (["pods/*"], ("pods", ""), False),
    ],
)
def test_rule_matches_resources(resources: list[str], asked: tuple[str, str], allowed: bool) -> None:
    rule = Rule({"verbs": ["*"], "apiGroups": ["*"], "resources": resources})
    assert rule.allows("get", "any", *asked) is allowed


@pytest.mark.parametrize(
    ("urls", "path", "allowed"),
    [
        (["/healthz"], "/healthz", True),
        (["/healthz"], "/healthz/etcd", False),
        (["/healthz/*"], "/healthz/etcd", True),
        (["/healthz*"], "/healthzz", True),
        (["*"], "/anything", True),
        (["/a", "/b"], "/b", True),
    ],
)
def test_rule_matches_paths(urls: list[str], path: str, allowed: bool) -> None:
    assert Rule({"verbs": ["get"], "nonResourceURLs": urls}).allows_path("get", path) is allowed
    assert not Rule({"verbs": ["get"], "nonResourceURLs": urls}).allows_path("post", path)


def test_binding_takes_effect_and_ends_at_once(admin: Client, someone: Person, space: str) -> None:
    name = someone.more["Impersonate-User"]
    path = f"/api/v1/namespaces/{space}/configmaps"
    assert someone.ask("GET", path).status == 403
    role = grant(admin, user(name), READ, namespace=space)
    assert someone.ask("GET", path).status == 200
    assert someone.ask("DELETE", path).status == 403
    assert someone.ask("GET", "/api/v1/configmaps").status == 403
    admin.delete(rbac(f"namespaces/{space}/roles/{role}"))
    refused = someone.ask("GET", path)
    assert refused.status == 403
    assert refused.json["message"].endswith(f'RBAC: role.rbac.authorization.k8s.io "{role}" not found')


def test_changed_role_takes_effect_at_once(admin: Client, someone: Person) -> None:
    role = grant(admin, user(someone.more["Impersonate-User"]), READ)
    assert someone.may("list", "configmaps") and not someone.may("delete", "configmaps")
    admin.patch(rbac(f"clusterroles/{role}"), {"rules": [{**READ, "verbs": ["delete"]}]})
    assert not someone.may("list", "configmaps") and someone.may("delete", "configmaps")


def test_groups_and_service_accounts_can_be_bound(admin: Client, cluster: Live, space: str) -> None:
    grant(admin, group(f"team-{space}"), READ)
    member = Person(cluster, "admin-token", Impersonate_User="x", Impersonate_Group=f"team-{space}")
    assert member.may("get", "configmaps", namespace="anywhere")
    account = {"kind": "ServiceAccount", "name": "robot"}
    grant(admin, account, READ, namespace=space)
    robot = Person(cluster, "admin-token", Impersonate_User=f"system:serviceaccount:{space}:robot")
    assert robot.may("get", "configmaps", namespace=space)
    assert not robot.may("get", "configmaps", namespace="default")


def test_resource_names_limit_a_rule(admin: Client, someone: Person) -> None:
    grant(admin, user(someone.more["Impersonate-User"]), {**READ, "resourceNames": ["one"]})
    assert someone.may("get", "configmaps", name="one")
    assert not someone.may("get", "configmaps", name="two")
    assert not someone.may("get", "configmaps")


def test_role_binding_limits_a_cluster_role_to_its_namespace(
    admin: Client, someone: Person, space: str
) -> None:
    bind(admin, user(someone.more["Impersonate-User"]), "ClusterRole", "cluster-admin", space)
    assert someone.may("create", "apps/deployments", namespace=space)
    assert not someone.may("create", "apps/deployments", namespace="default")
    assert not someone.may("list", "namespaces")


def test_reason_names_the_binding(admin: Client, space: str) -> None:
    account = {"kind": "ServiceAccount", "name": "robot", "namespace": space}
    binding = bind(admin, account, "ClusterRole", "cluster-admin", space)
    spec = {
        "user": f"system:serviceaccount:{space}:robot",
        "resourceAttributes": {"verb": "get", "resource": "pods", "namespace": space},
    }
    review = admin.post("/apis/authorization.k8s.io/v1/subjectaccessreviews", {"spec": spec})
    told = f'RBAC: allowed by RoleBinding "{binding}/{space}" of ClusterRole "cluster-admin" to '
    assert review["status"] == {"allowed": True, "reason": told + f'ServiceAccount "robot/{space}"'}


@pytest.mark.parametrize("media", ["application/json", "application/yaml", "application/json; pretty"])
def test_review_lists_thousands_of_rules(admin: Client, someone: Person, space: str, media: str) -> None:
    names = [f"n{n}" for n in range(2500)]
    rules = [{**READ, "resourceNames": [name]} for name in names]
    before = _review(someone)["resourceRules"]
    grant(admin, user(someone.more["Impersonate-User"]), *rules, namespace=space)
    urls = [{"verbs": ["get"], "nonResourceURLs": [f"/{name}"]} for name in names]
    grant(admin, user(someone.more["Impersonate-User"]), *urls)
    path = "/apis/authorization.k8s.io/v1/selfsubjectrulesreviews"
    accept, _, pretty = media.partition("; ")
    someone.more["Accept"] = accept
    answer = someone.ask("POST", f"{path}?pretty={bool(pretty)}", {"spec": {"namespace": space}})
    status = yaml.safe_load(answer.body)["status"]
    assert status["resourceRules"] == [*before, *rules]
    assert status["nonResourceRules"][-len(urls) :] == urls
    assert status["incomplete"] is False


def _review(someone: Person) -> Object:
    path = "/apis/authorization.k8s.io/v1/selfsubjectrulesreviews"
    status: Object = someone.post(path, {"spec": {"namespace": "default"}})["status"]
    return status
