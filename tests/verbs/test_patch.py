"""Patch and apply, besides the recordings: effect of metadata in the patch."""

from __future__ import annotations

from typing import Any

import pytest

from kubist.testing import Cluster
from kubist.testing.cluster import Refused

pytestmark = pytest.mark.kubist(controllers=())
MAPS = "/api/v1/namespaces/default/configmaps"
LEASES = "/apis/coordination.k8s.io/v1/namespaces/default/leases"
APPLY = "application/apply-patch+yaml"
MERGE = "application/merge-patch+json"
JSON = "application/json-patch+json"
STRATEGIC = "application/strategic-merge-patch+json"


def patch(cluster: Cluster, path: str, body: Any, content_type: str) -> Any:
    return cluster.request("PATCH", f"{path}?fieldManager=m", body, content_type)


def applied(cluster: Cluster, **metadata: Any) -> Any:
    body = {"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": "a", **metadata}}
    return patch(cluster, f"{MAPS}/a", body, APPLY)


WITHOUT_VERSION: list[tuple[Any, str]] = [
    ({"apiVersion": None}, MERGE),
    ({"apiVersion": "", "kind": None}, MERGE),
    ([{"op": "remove", "path": "/apiVersion"}], JSON),
]


@pytest.mark.parametrize(("change", "content_type"), WITHOUT_VERSION)
def test_a_patch_cannot_take_the_version_away(cluster: Cluster, change: Any, content_type: str) -> None:
    cluster.request("POST", MAPS, {"metadata": {"name": "a"}, "data": {"k": "v"}})
    with pytest.raises(Refused) as refused:
        patch(cluster, f"{MAPS}/a", change, content_type)
    assert (refused.value.code, refused.value.status["reason"]) == (400, "BadRequest")


@pytest.mark.parametrize(
    ("change", "content_type"), [({"kind": None}, MERGE), ({"apiVersion": None}, STRATEGIC)]
)
def test_a_patch_may_take_the_kind_away(cluster: Cluster, change: Any, content_type: str) -> None:
    cluster.request("POST", MAPS, {"metadata": {"name": "a"}, "data": {"k": "v"}})
    assert patch(cluster, f"{MAPS}/a", change, content_type)["data"] == {"k": "v"}


def test_applied_object_keeps_its_deletion_timestamp(cluster: Cluster) -> None:
    made = applied(cluster, deletionTimestamp="2024-01-01T00:00:00Z", finalizers=["a.b/c"], selfLink="/x")
    assert made["metadata"]["deletionTimestamp"] == "2024-01-01T00:00:00Z"
    assert "selfLink" not in made["metadata"]
    patch(cluster, f"{MAPS}/a", {"metadata": {"finalizers": None}}, MERGE)
    with pytest.raises(Refused):
        cluster.request("GET", f"{MAPS}/a")


def test_a_put_that_creates_drops_the_self_link(cluster: Cluster) -> None:
    body = {
        "apiVersion": "coordination.k8s.io/v1",
        "kind": "Lease",
        "metadata": {"name": "l", "selfLink": "/x"},
    }
    assert "selfLink" not in cluster.request("PUT", f"{LEASES}/l", body)["metadata"]


@pytest.mark.parametrize(
    ("metadata", "code"),
    [
        ({"resourceVersion": "x"}, 500),
        ({"resourceVersion": "x", "labels": {"b!": "c"}}, 500),
        ({"uid": "u"}, 409),
        ({"uid": "u", "labels": {"b!": "c"}}, 409),
        ({"uid": "u", "managedFields": [{}]}, 400),
    ],
)
def test_apply_that_would_create_is_rejected(cluster: Cluster, metadata: dict[str, Any], code: int) -> None:
    with pytest.raises(Refused) as refused:
        applied(cluster, **metadata)
    assert refused.value.code == code


REWRITTEN: list[tuple[str, str, Any, Any]] = [
    ("limitranges", "v1", {"limits": [{"type": "Pod", "max": {"cpu": "500m"}}]}, {"max": {"cpu": "0.5"}}),
    ("networkpolicies", "networking.k8s.io/v1", {"podSelector": {}, "egress": [{}]}, {"to": []}),
]


@pytest.mark.parametrize(("resource", "api_version", "spec", "change"), REWRITTEN)
def test_a_list_sent_in_another_way_changes_its_owner(
    cluster: Cluster, resource: str, api_version: str, spec: Any, change: Any
) -> None:
    prefix = "api" if api_version == "v1" else "apis"
    path = f"/{prefix}/{api_version}/namespaces/default/{resource}"
    made = cluster.request("POST", f"{path}?fieldManager=maker", {"metadata": {"name": "a"}, "spec": spec})
    name = "limits" if "limits" in spec else "egress"
    sent = {"spec": {name: [{**spec[name][0], **change}]}}
    new = patch(cluster, f"{path}/a", sent, MERGE)
    assert new["spec"] == made["spec"]
    owners = [
        e["manager"] for e in new["metadata"]["managedFields"] if f"f:{name}" in e["fieldsV1"]["f:spec"]
    ]
    assert owners == ["m"]


SECRETS = "/api/v1/namespaces/default/secrets"
STRING_DATA = {"stringData": {"a": "two"}}


@pytest.mark.parametrize(
    ("change", "content_type"),
    [
        (STRING_DATA, MERGE),
        (STRING_DATA, STRATEGIC),
        ([{"op": "add", "path": "/stringData", "value": {"a": "two"}}], JSON),
        ({"apiVersion": "v1", "kind": "Secret", "metadata": {"name": "a"}, **STRING_DATA}, APPLY),
    ],
)
@pytest.mark.parametrize("immutable", [False, True])
def test_string_data_does_not_change_the_stored_object_in_place(
    cluster: Cluster, immutable: bool, change: Any, content_type: str
) -> None:
    """stringData is merged into data, which the patch shares with the stored object."""
    made = cluster.request(
        "POST", SECRETS, {"metadata": {"name": "a"}, "data": {"a": "b25l"}, "immutable": immutable}
    )
    if immutable:
        with pytest.raises(Refused) as refused:
            patch(cluster, f"{SECRETS}/a", change, content_type)
        assert refused.value.code == 422
        assert cluster.request("GET", f"{SECRETS}/a") == made
    else:
        written = patch(cluster, f"{SECRETS}/a", change, content_type)
        assert written["data"] == {"a": "dHdv"}
        assert written["metadata"]["resourceVersion"] != made["metadata"]["resourceVersion"]
        owners = [entry["manager"] for entry in written["metadata"]["managedFields"]]
        assert "m" in owners


@pytest.mark.parametrize(
    ("entries", "owners"),
    [
        ([], []),
        ([{}], []),
        ([{"fieldsV1": None, "manager": ""}], []),
        ([{"fieldsV1": {}}], ["first", "m"]),
        ([{}, {}], ["first", "m"]),
    ],
)
def test_only_empty_entries_make_all_owners_forgotten(
    cluster: Cluster, entries: list[Any], owners: list[str]
) -> None:
    cluster.request("POST", f"{MAPS}?fieldManager=first", {"metadata": {"name": "a"}, "data": {"k": "v"}})
    change = {"metadata": {"managedFields": entries}, "data": {"l": "w"}}
    changed = patch(cluster, f"{MAPS}/a", change, MERGE)
    assert sorted(entry["manager"] for entry in changed["metadata"].get("managedFields", ())) == owners
