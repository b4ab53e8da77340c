"""Helpers of a cluster for objects: create, update, patch, scale, list with selectors; also as another user."""

from __future__ import annotations

import pytest

from kubist.model.meta.object import Object
from kubist.testing import Cluster, Refused
from tests.testing.widgets import CRD


def config_map(name: str, **labels: str) -> Object:
    return {"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": name, "labels": labels}}


def deployment(replicas: int = 1) -> Object:
    container = {"name": "c", "image": "nginx", "env": [{"name": "A", "value": "1"}]}
    template = {"metadata": {"labels": {"app": "web"}}, "spec": {"containers": [container]}}
    spec = {"replicas": replicas, "selector": {"matchLabels": {"app": "web"}}, "template": template}
    return {"apiVersion": "apps/v1", "kind": "Deployment", "metadata": {"name": "web"}, "spec": spec}


def test_create_generates_a_name(cluster: Cluster) -> None:
    made = cluster.create({"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"generateName": "web-"}})
    name = made["metadata"]["name"]
    assert name.startswith("web-") and len(name) == 9
    assert cluster.get(made)["metadata"]["uid"] == made["metadata"]["uid"]
    cluster.delete(made)
    cluster.wait(made, "delete")


def test_create_of_an_existing_object_is_refused(cluster: Cluster) -> None:
    cluster.create(config_map("a"))
    with pytest.raises(Refused, match="already exists") as caught:
        cluster.create("{apiVersion: v1, kind: ConfigMap, metadata: {name: a}}")
    assert caught.value.code == 409


def test_create_in_a_namespace(cluster: Cluster) -> None:
    cluster.create({"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": "team"}})
    assert cluster.create(config_map("a"), namespace="team")["metadata"]["namespace"] == "team"
    own = config_map("b")
    own["metadata"]["namespace"] = "team"
    assert cluster.create(own)["metadata"]["namespace"] == "team"
    cluster.delete(own)
    assert names(cluster.list("cm --field-selector metadata.name!=kube-root-ca.crt", "team")) == ["a"]


def test_stale_update_conflicts(cluster: Cluster) -> None:
    made = cluster.create(config_map("a"))
    updated = cluster.update({**made, "data": {"k": "1"}})
    assert updated["data"] == {"k": "1"}
    with pytest.raises(Refused, match="the object has been modified") as caught:
        cluster.update({**made, "data": {"k": "2"}})
    assert caught.value.code == 409


def test_update_of_a_status(cluster: Cluster) -> None:
    pod = {"apiVersion": "v1", "kind": "Pod", "metadata": {"name": "p"}}
    made = cluster.create({**pod, "spec": {"containers": [{"name": "c", "image": "i"}]}})
    made["status"]["phase"] = "Running"
    assert cluster.update(made, subresource="status")["status"]["phase"] == "Running"
    conditions = {"status": {"conditions": [{"type": "Ready", "status": "True"}]}}
    assert cluster.patch("pod/p", conditions, subresource="status")["status"]["phase"] == "Running"
    assert cluster.wait("pod/p")


def test_patch_merges_lists_of_built_in_kinds(cluster: Cluster) -> None:
    cluster.create(deployment())
    env = {"env": [{"name": "B", "value": "2"}]}
    patch = {"spec": {"template": {"spec": {"containers": [{"name": "c", **env}]}}}}
    [container] = cluster.patch("deploy/web", patch)["spec"]["template"]["spec"]["containers"]
    assert container["image"] == "nginx" and [each["name"] for each in container["env"]] == ["B", "A"]
    with pytest.raises(Refused, match="image"):
        cluster.patch("deploy/web", patch, type="merge")


def test_patch_of_a_list_is_a_json_patch(cluster: Cluster) -> None:
    cluster.create(config_map("a", app="web"))
    patch = [{"op": "replace", "path": "/metadata/labels/app", "value": "api"}]
    assert cluster.patch("cm/a", patch)["metadata"]["labels"] == {"app": "api"}


def test_custom_resources_get_merge_patches(cluster: Cluster) -> None:
    cluster.load(CRD)
    widget = {
        "apiVersion": "example.com/v1",
        "kind": "Widget",
        "metadata": {"name": "w"},
        "spec": {"size": 1},
    }
    made = cluster.create(widget)
    assert cluster.patch(made, {"spec": {"size": 2}})["spec"]["size"] == 2


def test_scale(cluster: Cluster) -> None:
    cluster.create(deployment())
    assert cluster.scale("deployment/web", 3)["spec"]["replicas"] == 3
    assert cluster.get("deployment/web")["spec"]["replicas"] == 3
    with pytest.raises(Refused, match="greater than or equal to 0"):
        cluster.scale("deployment/web", -1)


def names(objects: list[Object]) -> list[str]:
    return [each["metadata"]["name"] for each in objects]


def test_list_with_selectors(cluster: Cluster) -> None:
    cluster.load({"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": "team"}})
    cluster.create(config_map("a", app="web"))
    cluster.create(config_map("b", app="api"))
    cluster.create(config_map("c", app="web"), namespace="team")
    assert names(cluster.list("cm", label_selector="app=web")) == ["a"]
    assert names(cluster.list("cm", label_selector="app in (web, api)")) == ["a", "b"]
    assert names(cluster.list("cm -l app=web -A")) == ["a", "c"]
    assert names(cluster.list("cm --selector=app -n team")) == ["c"]
    assert names(cluster.list("cm", None, label_selector="app=web")) == ["a", "c"]
    assert names(cluster.list("cm", field_selector="metadata.name=b")) == ["b"]
    assert names(cluster.list("namespaces --field-selector metadata.name=team")) == ["team"]


def test_listed_objects_can_be_written(cluster: Cluster) -> None:
    cluster.create(config_map("a", app="web"))
    [found] = cluster.list("cm -l app=web")
    assert (found["apiVersion"], found["kind"]) == ("v1", "ConfigMap")
    cluster.update({**found, "data": {"k": "v"}})
    assert cluster.get(found)["data"] == {"k": "v"}


def test_users_have_the_same_helpers(cluster: Cluster) -> None:
    rules = [{"apiGroups": [""], "resources": ["configmaps"], "verbs": ["create", "list"]}]
    alice = cluster.user("alice", rules=rules)
    made = alice.create(config_map("a", app="web"))
    assert names(alice.list("cm -l app=web")) == ["a"]
    with pytest.raises(Refused, match='User "alice" cannot delete resource "configmaps"'):
        alice.delete(made)
