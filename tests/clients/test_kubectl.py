"""kubectl commands against a real server."""

from __future__ import annotations

import json
import subprocess
from pathlib import Path
from typing import Any

import pytest

from kubist.api.application import API
from tests import programs
from tests.live import Live

pytestmark = programs.needs("kubectl")


class Kubectl:
    def __init__(self, namespace: str, directory: Path) -> None:
        self.namespace = namespace
        self.directory = directory

    def __call__(self, *arguments: str, code: int = 0, given: str | None = None) -> str:
        # A cache of its own: within one second kubectl takes the list of OpenAPI documents from its cache, so it
        # would not see a CRD that is as new as that.
        cache = f"--cache-dir={self.directory / 'cache'}"
        command = ["kubectl", cache, "--namespace", self.namespace, *arguments]
        done = subprocess.run(command, input=given, capture_output=True, text=True, timeout=30, check=False)
        assert done.returncode == code, (command, done.stdout, done.stderr)
        return done.stdout + done.stderr

    def json(self, *arguments: str) -> Any:
        return json.loads(self(*arguments, "-o", "json"))

    def manifest(self, *objects: dict[str, Any]) -> str:
        path = self.directory / "manifest.json"
        path.write_text("\n---\n".join(json.dumps(obj) for obj in objects))
        return str(path)


@pytest.fixture
def kubectl(namespace: str, tmp_path: Path) -> Kubectl:
    return Kubectl(namespace, tmp_path)


def configmap(**data: str) -> dict[str, Any]:
    return {"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": "cm"}, "data": data}


def test_create_get_delete(kubectl: Kubectl) -> None:
    assert kubectl("create", "configmap", "a", "--from-literal=x=1") == "configmap/a created\n"
    assert "already exists" in kubectl("create", "configmap", "a", code=1)
    assert kubectl.json("get", "cm", "a")["data"] == {"x": "1"}
    header, row = kubectl("get", "cm").splitlines()
    assert header.split() == ["NAME", "DATA", "AGE"] and row.split()[:2] == ["a", "1"]
    assert "deleted" in kubectl("delete", "cm", "a")
    assert "NotFound" in kubectl("get", "cm", "a", code=1)
    assert kubectl("get", "cm") == f"No resources found in {kubectl.namespace} namespace.\n"


def test_kubectl_lists_every_resource(kubectl: Kubectl) -> None:
    assert "service/kubernetes" in kubectl("get", "all", "-A")
    names = kubectl("api-resources", "-o", "name").split()
    assert {"pods", "deployments.apps", "customresourcedefinitions.apiextensions.k8s.io"} <= set(names)
    assert "apps/v1" in kubectl("api-versions").split()
    assert "Server Version: v1.36" in kubectl("version")


def test_edit(kubectl: Kubectl, monkeypatch: pytest.MonkeyPatch) -> None:
    kubectl("create", "configmap", "a", "--from-literal=x=before")
    monkeypatch.setenv("KUBE_EDITOR", "sed -i s/before/after/")
    assert "configmap/a edited" in kubectl("edit", "cm", "a")
    assert kubectl.json("get", "cm", "a")["data"] == {"x": "after"}


def test_watch(kubectl: Kubectl) -> None:
    command = ["kubectl", "--namespace", kubectl.namespace, "get", "cm", "-w", "-o", "name"]
    with subprocess.Popen(command, stdout=subprocess.PIPE, text=True) as watch:
        assert watch.stdout is not None
        for name in ("a", "b"):
            kubectl("create", "configmap", name)
            assert watch.stdout.readline() == f"configmap/{name}\n"
        watch.terminate()


def test_apply_diff_and_server_side_apply(kubectl: Kubectl) -> None:
    assert "created" in kubectl("apply", "-f", kubectl.manifest(configmap(x="1", y="1")))
    assert "unchanged" in kubectl("apply", "-f", kubectl.manifest(configmap(x="1", y="1")))
    changed = kubectl.manifest(configmap(x="2"))
    shown = kubectl("diff", "-f", changed, code=1)
    assert '-  x: "1"' in shown and '+  x: "2"' in shown and '-  "y": "1"' in shown
    assert "configured" in kubectl("apply", "-f", changed)
    assert kubectl.json("get", "cm", "cm")["data"] == {"x": "2"}
    assert kubectl("diff", "-f", changed) == ""
    other = kubectl.manifest(configmap(x="3"))
    assert "conflict" in kubectl("apply", "--server-side", "--field-manager=me", "-f", other, code=1)
    applied = kubectl("apply", "--server-side", "--field-manager=me", "--force-conflicts", "-f", other)
    assert "serverside-applied" in applied
    assert kubectl.json("get", "cm", "cm")["data"] == {"x": "3"}


def test_deployment_is_labelled_scaled_updated_and_restarted(kubectl: Kubectl) -> None:
    kubectl("create", "deployment", "web", "--image=nginx:1")
    kubectl("label", "deployment", "web", "tier=front")
    kubectl("annotate", "deployment", "web", "note=yes")
    kubectl("scale", "deployment", "web", "--replicas=3")
    kubectl("set", "image", "deployment/web", "nginx=nginx:2")
    kubectl("rollout", "restart", "deployment/web")
    web = kubectl.json("get", "deployment", "web")
    assert web["metadata"]["labels"]["tier"] == "front" and web["metadata"]["annotations"]["note"] == "yes"
    assert web["spec"]["replicas"] == 3 and web["metadata"]["generation"] == 5
    template = web["spec"]["template"]
    assert template["spec"]["containers"][0]["image"] == "nginx:2"
    assert "kubectl.kubernetes.io/restartedAt" in template["metadata"]["annotations"]
    assert "StrategyType:           RollingUpdate" in kubectl("describe", "deployment", "web")


def test_kubectl_auth_commands(kubectl: Kubectl) -> None:
    assert kubectl("auth", "can-i", "create", "pods") == "yes\n"
    assert kubectl("auth", "can-i", "create", "pods", "--as=nobody", code=1).startswith("no")
    assert kubectl.json("auth", "whoami")["status"]["userInfo"]["username"] == "admin"
    kubectl("create", "serviceaccount", "robot")
    token = kubectl("create", "token", "robot").strip()
    who = kubectl.json("--token", token, "auth", "whoami")["status"]["userInfo"]
    assert who["username"] == f"system:serviceaccount:{kubectl.namespace}:robot"
    assert "forbidden" in kubectl("--token", token, "get", "pods", code=1)


def test_explain(kubectl: Kubectl) -> None:
    explained = kubectl("explain", "pod.spec")
    assert "containers\t<[]Container>" in explained
    assert "List of containers belonging to the pod." in explained


def test_explain_describes_the_common_fields_of_custom_resources(kubectl: Kubectl, widgets: str) -> None:
    assert "APIVersion defines" in kubectl("explain", "widget")
    metadata = kubectl("explain", "widget.metadata")
    assert "Standard object's metadata" in metadata
    assert "CreationTimestamp is a timestamp" in metadata


def test_wait(kubectl: Kubectl) -> None:
    kubectl("create", "configmap", "a")
    assert "condition met" in kubectl("wait", "--for=create", "cm/a", "--timeout=5s")
    assert "condition met" in kubectl("wait", "--for=jsonpath={.metadata.name}=a", "cm/a", "--timeout=5s")
    kubectl("delete", "cm", "a")
    kubectl("wait", "--for=delete", "cm/a", "--timeout=5s")


def test_custom_resource(kubectl: Kubectl, widgets: str) -> None:
    widget = {
        "apiVersion": "example.com/v1",
        "kind": "Widget",
        "metadata": {"name": "w"},
        "spec": {"size": 1},
    }
    assert "created" in kubectl("apply", "-f", kubectl.manifest(widget))
    assert kubectl.json("get", "wd", "w")["spec"] == {"size": 1}
    kubectl("patch", "widget", "w", "--type=merge", "-p", '{"spec":{"size":2}}')
    status = '{"status":{"phase":"Ready"}}'
    kubectl("patch", "widget", "w", "--subresource=status", "--type=merge", "-p", status)
    kubectl("wait", "--for=jsonpath={.status.phase}=Ready", "widget/w", "--timeout=5s")
    assert "size" in kubectl("explain", "widget.spec")
    kubectl("delete", "widget", "w")


def test_namespace_in_the_url_and_h2_on_the_wire(live: Live, tmp_path: Path, monkeypatch: Any) -> None:
    versions: set[str] = set()
    handle = API.__call__

    async def noted(self: API, request: Any) -> Any:
        versions.add(request.http_version)
        return await handle(self, request)

    path = live.pki.kubeconfig(live.server.port, tmp_path / "kubeconfig")
    monkeypatch.setenv("KUBECONFIG", str(path))
    monkeypatch.setattr(API, "__call__", noted)
    live.server._http._application = live.server.api  # type: ignore[union-attr]
    command = ["kubectl", "get", "ns", "default", "-o", "name"]
    shown = subprocess.run(command, capture_output=True, text=True, timeout=30, check=True).stdout
    assert shown == "namespace/default\n"
    live.client.get("/version")
    assert {version[0] for version in versions} == {"1", "2"}
