"""Impersonation: headers and permissions, in legacy and constrained modes."""

from __future__ import annotations

import pytest

from kubist.api.filters.impersonation import LONGEST, LONGEST_SHOWN, wanted_user
from kubist.base.http.messages import Request
from kubist.model.meta.object import Object
from kubist.model.meta.status import APIError
from tests.filters.askers import Person, grant, user
from tests.live import Client, Live

LEGACY = {"verbs": ["impersonate"], "apiGroups": ["", "authentication.k8s.io"], "resources": ["*"]}


def headers(**values: str) -> dict[str, str]:
    return {name.replace("_", "-"): value for name, value in values.items()}


def test_headers_describe_the_impersonated_user() -> None:
    request = Request(
        "GET",
        "/",
        "",
        headers(
            impersonate_user="jo",
            impersonate_uid="7",
            impersonate_group="a, b, c",
            **{"impersonate_extra_example.com%2Fscopes": "view"},
        ),
        repeated={"impersonate-group": ["a, b", "c"]},
    )
    wanted = wanted_user(request)
    assert wanted is not None
    assert (wanted.name, wanted.uid, wanted.groups) == ("jo", "7", ("a, b", "c"))
    assert wanted.extra == (("example.com/scopes", ("view",)),)


@pytest.mark.parametrize("name", ["impersonate-group", "impersonate-uid", "impersonate-extra-scopes"])
def test_groups_uid_and_extra_need_a_user_name(name: str) -> None:
    with pytest.raises(APIError) as refused:
        wanted_user(Request("GET", "/", "", {name: "x"}))
    assert refused.value.code == 400


def test_very_long_headers_are_rejected_and_not_repeated() -> None:
    many = tuple(f"group-{number}" for number in range(1000))
    named = Request("GET", "/", "", {"impersonate-user": "jo", "impersonate-group": ", ".join(many)})
    named.repeated = {"impersonate-group": list(many)}
    wanted = wanted_user(named)
    assert wanted is not None and wanted.groups == many
    for length in (LONGEST_SHOWN + 1, LONGEST + 1):
        with pytest.raises(APIError) as refused:
            wanted_user(Request("GET", "/", "", {"impersonate-group": "\x01" * length}))
        assert refused.value.code == 400 and len(refused.value.message) < 100


def test_request_runs_as_the_impersonated_user(cluster: Live) -> None:
    jo = Person(cluster, "admin-token", Impersonate_User="jo", Impersonate_Group="a", Impersonate_Uid="7")
    assert jo.whoami() == {"username": "jo", "uid": "7", "groups": ["a", "system:authenticated"]}
    robot = Person(cluster, "admin-token", Impersonate_User="system:serviceaccount:default:robot")
    assert robot.whoami()["groups"][:2] == ["system:serviceaccounts", "system:serviceaccounts:default"]


@pytest.mark.parametrize(
    ("wanted", "allowed"),
    [
        ({"Impersonate_User": "jo"}, True),
        ({"Impersonate_User": "other"}, False),
        ({"Impersonate_User": "jo", "Impersonate_Group": "g"}, False),
        ({"Impersonate_User": "jo", "Impersonate_Uid": "1"}, False),
    ],
)
def test_permission_to_impersonate_may_name_users(
    cluster: Live, wanted: dict[str, str], allowed: bool
) -> None:
    admin = cluster.client
    rule = {"verbs": ["impersonate"], "apiGroups": [""], "resources": ["users"], "resourceNames": ["jo"]}
    grant(admin, user("dev"), rule)
    answer = Person(cluster, "dev-token", **wanted).ask(
        "POST", "/apis/authentication.k8s.io/v1/selfsubjectreviews", {}
    )
    assert answer.status == (201 if allowed else 403)


CONSTRAINED = "impersonate-on:user-info:list"


@pytest.fixture
def limited(cluster: Live, admin: Client, space: str) -> Person:
    """Service account that may only list config maps of the namespace while impersonating jo."""
    admin.post(f"/api/v1/namespaces/{space}/serviceaccounts", {"metadata": {"name": "actor"}})
    made = admin.post(f"/api/v1/namespaces/{space}/serviceaccounts/actor/token", {"spec": {}})
    actor = {"kind": "ServiceAccount", "name": "actor", "namespace": space}
    group = "authentication.k8s.io"
    rule = {"verbs": ["impersonate:user-info"], "apiGroups": [group], "resources": ["users"]}
    grant(admin, actor, rule | {"resourceNames": ["jo"]})
    on = {"verbs": [CONSTRAINED], "apiGroups": [""], "resources": ["configmaps"]}
    grant(admin, actor, on, namespace=space)
    read = {"verbs": ["list", "get"], "apiGroups": [""], "resources": ["configmaps", "secrets"]}
    grant(admin, user("jo"), read)
    return Person(cluster, made["status"]["token"], Impersonate_User="jo")


def test_constrained_impersonation_allows_only_its_request(limited: Person, space: str) -> None:
    assert limited.ask("GET", f"/api/v1/namespaces/{space}/configmaps").status == 200
    refused: list[tuple[str, str]] = [
        (f"/api/v1/namespaces/{space}/configmaps/x", "impersonate-on:user-info:get"),
        (f"/api/v1/namespaces/{space}/secrets", CONSTRAINED),
        ("/api/v1/configmaps", CONSTRAINED),
    ]
    for path, verb in refused:
        answer = limited.ask("GET", path)
        assert answer.status == 403 and f"cannot {verb} resource" in answer.json["message"]


@pytest.mark.parametrize("groups", ["system:masters", "g"])
def test_constrained_impersonation_checks_groups(limited: Person, space: str, groups: str) -> None:
    limited.more["Impersonate-Group"] = groups
    answer = limited.ask("GET", f"/api/v1/namespaces/{space}/configmaps")
    assert answer.status == 403


def test_impersonated_node_has_the_nodes_group(cluster: Live, admin: Client, space: str) -> None:
    rules: list[Object] = [
        {
            "verbs": ["impersonate:arbitrary-node"],
            "apiGroups": ["authentication.k8s.io"],
            "resources": ["nodes"],
        },
        {
            "verbs": ["impersonate-on:arbitrary-node:create"],
            "apiGroups": ["authentication.k8s.io"],
            "resources": ["selfsubjectreviews"],
        },
    ]
    grant(admin, user("dev"), *rules)
    node = Person(cluster, "dev-token", Impersonate_User="system:node:one")
    assert node.whoami()["groups"] == ["system:nodes", "system:authenticated"]
