"""Garbage collection: dependents by propagation policy of their owner."""

from __future__ import annotations

import time
from typing import Any

import pytest

from kubist.testing import Cluster
from kubist.testing.cluster import Refused

from .test_namespace import CRD

CONFIG_MAPS = "/api/v1/namespaces/default/configmaps"


def reference(owner: dict[str, Any], **more: Any) -> dict[str, Any]:
    metadata = owner["metadata"]
    named = {"apiVersion": owner.get("apiVersion", "v1"), "kind": owner.get("kind", "ConfigMap")}
    return {**named, "name": metadata["name"], "uid": metadata["uid"], **more}


def make(cluster: Cluster, name: str, *owners: dict[str, Any], **metadata: Any) -> dict[str, Any]:
    body = {"metadata": {"name": name, "ownerReferences": list(owners), **metadata}}
    made: dict[str, Any] = cluster.request("POST", CONFIG_MAPS, body)
    return made


def exists(cluster: Cluster, name: str) -> bool:
    try:
        cluster.get(f"cm/{name}")
    except Refused:
        return False
    return True


def test_background_deletion_deletes_all_dependents(cluster: Cluster) -> None:
    owner = make(cluster, "owner")
    child = make(cluster, "child", reference(owner))
    make(cluster, "grandchild", reference(child))
    cluster.delete("cm/owner")
    cluster.wait("cm/grandchild", "delete")
    assert not exists(cluster, "child")


def test_foreground_deletion_waits_for_blocking_dependents(cluster: Cluster) -> None:
    owner = make(cluster, "owner")
    make(cluster, "blocking", reference(owner, blockOwnerDeletion=True), finalizers=["example.com/hold"])
    make(cluster, "other", reference(owner))
    answer = cluster.delete("cm/owner", propagationPolicy="Foreground")
    assert answer["metadata"]["finalizers"] == ["foregroundDeletion"]
    cluster.wait("cm/other", "delete")
    cluster.wait("cm/blocking", lambda held: "deletionTimestamp" in held["metadata"])
    assert exists(cluster, "owner")
    patch = {"metadata": {"finalizers": None}}
    cluster.request("PATCH", f"{CONFIG_MAPS}/blocking", patch, "application/merge-patch+json")
    cluster.wait("cm/owner", "delete")


def test_orphan_deletion_keeps_dependents_without_the_reference(cluster: Cluster) -> None:
    owner = make(cluster, "owner")
    make(cluster, "child", reference(owner))
    cluster.delete("cm/owner", propagationPolicy="Orphan")
    cluster.wait("cm/owner", "delete")
    assert "ownerReferences" not in cluster.get("cm/child")["metadata"]


def test_object_with_one_remaining_owner_is_kept(cluster: Cluster) -> None:
    first, second = make(cluster, "first"), make(cluster, "second")
    make(cluster, "child", reference(first), reference(second))
    cluster.delete("cm/first")
    child = cluster.wait("cm/child", lambda held: len(held["metadata"]["ownerReferences"]) == 1)
    assert child["metadata"]["ownerReferences"][0]["name"] == "second"


@pytest.mark.parametrize(
    "owner",
    [
        {"apiVersion": "v1", "kind": "ConfigMap", "name": "never-was", "uid": "u"},
        {"apiVersion": "v1", "kind": "ConfigMap", "name": "kube-root-ca.crt", "uid": "of another"},
        {"apiVersion": "v1", "kind": "Node", "name": "absent", "uid": "u"},
    ],
    ids=["absent", "another uid", "cluster-scoped"],
)
def test_object_with_missing_owner_is_deleted(cluster: Cluster, owner: dict[str, Any]) -> None:
    make(cluster, "child", owner)
    cluster.wait("cm/child", "delete")


def test_owner_in_another_namespace_counts_as_missing(cluster: Cluster) -> None:
    cluster.request("POST", "/api/v1/namespaces", {"metadata": {"name": "other"}})
    owner = cluster.request("POST", "/api/v1/namespaces/other/configmaps", {"metadata": {"name": "owner"}})
    make(cluster, "child", reference(owner))
    cluster.wait("cm/child", "delete")


@pytest.mark.parametrize(
    "owner",
    [
        {"apiVersion": "nowhere.example.com/v1", "kind": "Thing", "name": "a", "uid": "u"},
        {"apiVersion": "v1", "kind": "Unknown", "name": "a", "uid": "u"},
    ],
)
def test_object_with_owner_of_unknown_kind_is_kept(cluster: Cluster, owner: dict[str, Any]) -> None:
    make(cluster, "child", owner)
    time.sleep(0.05)
    assert exists(cluster, "child")


def test_objects_that_own_each_other_are_deleted(cluster: Cluster) -> None:
    first = make(cluster, "first")
    second = make(cluster, "second", reference(first, blockOwnerDeletion=True))
    patch = {"metadata": {"ownerReferences": [reference(second, blockOwnerDeletion=True)]}}
    cluster.request("PATCH", f"{CONFIG_MAPS}/first", patch, "application/merge-patch+json")
    cluster.delete("cm/first", propagationPolicy="Foreground")
    cluster.wait("cm/second", "delete")
    cluster.wait("cm/first", "delete")


def test_custom_resources_can_be_owners_and_dependents(cluster: Cluster) -> None:
    cluster.load(CRD)
    path = "/apis/example.com/v1/namespaces/default/widgets"
    kind = {"apiVersion": "example.com/v1", "kind": "Widget"}
    widget = cluster.request("POST", path, {**kind, "metadata": {"name": "w"}})
    child = make(cluster, "child", reference(widget))
    owned = {**kind, "metadata": {"name": "owned", "ownerReferences": [reference(child)]}}
    cluster.request("POST", path, owned)
    cluster.delete("widget/w")
    cluster.wait("widget/owned", "delete")


def test_dependents_of_custom_resources_are_deleted_with_the_crd(cluster: Cluster) -> None:
    cluster.load(CRD)
    kind = {"apiVersion": "example.com/v1", "kind": "Widget"}
    widget = cluster.request(
        "POST", "/apis/example.com/v1/namespaces/default/widgets", {**kind, "metadata": {"name": "w"}}
    )
    make(cluster, "child", reference(widget))
    cluster.delete("crd/widgets.example.com")
    cluster.wait("crd/widgets.example.com", "delete")
    cluster.wait("cm/child", "delete")
