"""Python client libraries against a real server."""

from __future__ import annotations

import threading
from pathlib import Path
from typing import Any

import pytest

pytestmark = [
    pytest.mark.usefixtures("swept"),
    pytest.mark.filterwarnings(
        "ignore::DeprecationWarning",
        "ignore:Kubernetes version .* is not supported",
        "ignore::ResourceWarning",
        "ignore::pytest.PytestUnraisableExceptionWarning",
    ),
]


def test_kubernetes(namespace: str, widgets: str, kubeconfig: Path, tmp_path: Path) -> None:
    kubernetes = pytest.importorskip("kubernetes")
    with kubernetes.config.new_client_from_config(str(kubeconfig)) as session:
        core = kubernetes.client.CoreV1Api(session)
        body = {"metadata": {"name": "a"}, "data": {"x": "1"}}
        made = core.create_namespaced_config_map(namespace, body)
        assert made.data == {"x": "1"} and made.metadata.creation_timestamp is not None
        core.patch_namespaced_config_map("a", namespace, {"data": {"x": "2"}})
        made.metadata.resource_version, stale = None, made.metadata.resource_version
        made.data = {"x": "3"}
        core.replace_namespaced_config_map("a", namespace, made)
        made.metadata.resource_version = stale
        with pytest.raises(kubernetes.client.ApiException) as conflict:
            core.replace_namespaced_config_map("a", namespace, made)
        assert conflict.value.status == 409
        listed = core.list_namespaced_config_map(namespace, limit=1)
        assert [item.metadata.name for item in listed.items] == ["a"]

        threading.Timer(0.1, core.delete_namespaced_config_map, ("a", namespace)).start()
        events = kubernetes.watch.Watch().stream(
            core.list_namespaced_config_map, namespace, resource_version=stale, timeout_seconds=5
        )
        types = []
        for event in events:
            types.append(event["type"])
            if event["type"] == "DELETED":
                break
        assert types == ["MODIFIED", "MODIFIED", "DELETED"]

        custom = kubernetes.client.CustomObjectsApi(session)
        where = ("example.com", "v1", namespace, "widgets")
        widget = {
            "apiVersion": "example.com/v1",
            "kind": "Widget",
            "metadata": {"name": "w"},
            "spec": {"size": 1},
        }
        custom.create_namespaced_custom_object(*where, widget)
        custom.patch_namespaced_custom_object_status(*where, "w", {"status": {"ok": True}})
        assert custom.get_namespaced_custom_object(*where, "w")["status"] == {"ok": True}
        custom.delete_namespaced_custom_object(*where, "w")

        dynamic = kubernetes.dynamic.DynamicClient(session, cache_file=str(tmp_path / "cache.json"))
        deployments = dynamic.resources.get(api_version="apps/v1", kind="Deployment")
        assert deployments.get(namespace=namespace).items == []


def test_lightkube(namespace: str, widgets: str) -> None:
    pytest.importorskip("lightkube.core", reason="lightkube is not installed")
    import lightkube
    from lightkube.generic_resource import create_namespaced_resource
    from lightkube.models.meta_v1 import ObjectMeta
    from lightkube.resources.core_v1 import ConfigMap

    api = lightkube.Client(field_manager="tests", namespace=namespace)
    api.create(ConfigMap(metadata=ObjectMeta(name="a"), data={"x": "1"}))
    api.patch(ConfigMap, "a", {"data": {"y": "2"}})
    api.apply(ConfigMap(metadata=ObjectMeta(name="a"), data={"z": "3"}))
    held = api.get(ConfigMap, "a")
    assert held.data == {"x": "1", "y": "2", "z": "3"}
    assert list(api.list(ConfigMap, labels={"no": "thing"})) == []
    assert held.metadata is not None
    threading.Timer(0.1, api.delete, (ConfigMap, "a")).start()
    for kind, shown in api.watch(ConfigMap, resource_version=held.metadata.resourceVersion, server_timeout=5):
        assert shown.metadata is not None
        assert (kind, shown.metadata.name) == ("DELETED", "a")
        break
    with pytest.raises(lightkube.ApiError) as absent:
        api.get(ConfigMap, "a")
    assert absent.value.status.code == 404
    widget = create_namespaced_resource("example.com", "v1", "Widget", "widgets")
    api.create(widget(metadata=ObjectMeta(name="w"), spec={"size": 1}))
    assert api.get(widget, "w")["spec"] == {"size": 1}


def test_kr8s(namespace: str) -> None:
    kr8s = pytest.importorskip("kr8s")
    from kr8s.objects import ConfigMap, Deployment

    api = kr8s.api(namespace=namespace)
    made = ConfigMap({"metadata": {"name": "a", "namespace": namespace}, "data": {"x": "1"}}, api=api)
    made.create()
    assert made.exists()
    made.label(app="x")
    made.patch({"data": {"y": "2"}})
    found: list[Any] = list(api.get("configmaps", namespace=namespace, label_selector={"app": "x"}))
    assert [item.name for item in found] == ["a"] and found[0].data == {"x": "1", "y": "2"}
    made.delete()
    made.wait("delete", timeout=5)
    spec = {
        "selector": {"matchLabels": {"a": "b"}},
        "template": {
            "metadata": {"labels": {"a": "b"}},
            "spec": {"containers": [{"name": "c", "image": "i"}]},
        },
    }
    web = Deployment({"metadata": {"name": "web", "namespace": namespace}, "spec": spec}, api=api)
    web.create()
    web.patch({"spec": {"replicas": 4}})
    web.refresh()
    assert web.replicas == 4
