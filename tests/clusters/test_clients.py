"""Clients below /clusters/NAME: kubectl, Python libraries, kopf, HTTP/2. They use a kubeconfig with the path."""

from __future__ import annotations

import os
import ssl
import subprocess
import sys
import urllib.request
from collections.abc import Iterator
from pathlib import Path

import httpx
import pytest

from kubist.testing import Cluster
from kubist.testing.clients import Clients
from kubist.testing.hosted_clusters import LogicalCluster
from tests import programs
from tests.clients.conftest import CRD
from tests.clients.test_kopf import OPERATOR
from tests.simulation.streams.conftest import Kubectl
from tests.simulation.streams.test_kubectl import TRANSPORTS, free_port
from tests.waiting import wait_for

needs_kubectl = programs.needs("kubectl")
POD = {
    "apiVersion": "v1",
    "kind": "Pod",
    "metadata": {"name": "web", "annotations": {"kubist.io/logs": "one\ntwo"}},
    "spec": {"containers": [{"name": "main", "image": "nginx"}]},
}


@pytest.fixture(scope="module")
def cluster(host: Cluster) -> Iterator[LogicalCluster]:
    """A cluster with simulated pods, a pod and a CRD."""
    with host.clusters.create("team-a", workloads=True, manifests=[CRD, POD]) as made:
        made.wait("pod/web")
        yield made


def trust(cluster: Cluster) -> ssl.SSLContext:
    return ssl.create_default_context(cafile=str(cluster.ca))


@pytest.fixture
def kubectl(cluster: LogicalCluster) -> Kubectl:
    return Kubectl(cluster)


@needs_kubectl
def test_kubectl_reads_and_writes(cluster: LogicalCluster, kubectl: Kubectl, tmp_path: Path) -> None:
    assert cluster.url in kubectl("cluster-info")
    assert kubectl("create", "configmap", "a", "--from-literal=x=1") == "configmap/a created\n"
    manifest = tmp_path / "widget.yaml"
    manifest.write_text("apiVersion: example.com/v1\nkind: Widget\nmetadata: {name: w}\nspec: {size: 3}\n")
    assert kubectl("apply", "-f", str(manifest)) == "widget.example.com/w created\n"
    assert (
        kubectl("apply", "--server-side", "-f", str(manifest)) == "widget.example.com/w serverside-applied\n"
    )
    assert "size\t<integer>" in kubectl("explain", "widget.spec")
    assert "number of desired pods" in kubectl("explain", "deployment.spec.replicas").lower()
    assert "widgets" in kubectl("api-resources", "--api-group=example.com")
    assert kubectl("auth", "whoami", "-o", "jsonpath={.status.userInfo.username}") == "kubernetes-admin"
    assert "deleted" in kubectl("delete", "configmap", "a")
    with kubectl.start("get", "configmaps", "--watch-only", "-o", "name") as watcher:
        assert watcher.stdout is not None
        wait_for(lambda: any(cluster.inner.api.watchers.values()))
        kubectl("create", "configmap", "seen")
        assert watcher.stdout.readline() == "configmap/seen\n"
        watcher.kill()


@needs_kubectl
@pytest.mark.parametrize("transport", TRANSPORTS)
def test_kubectl_streams(cluster: LogicalCluster, transport: str, tmp_path: Path) -> None:
    kubectl, port = Kubectl(cluster, **TRANSPORTS[transport]), free_port()
    assert kubectl("logs", "web") == "one\ntwo\n"
    assert kubectl("exec", "web", "--", "echo", "hello") == "hello\n"
    assert kubectl("exec", "-i", "web", "--", "cat", given="from stdin") == "from stdin"
    (tmp_path / "file").write_bytes(content := os.urandom(100_000))
    kubectl("cp", str(tmp_path / "file"), "web:/file")
    kubectl("cp", "web:/file", str(tmp_path / "back"))
    assert (tmp_path / "back").read_bytes() == content
    with kubectl.start("port-forward", "pod/web", f"{port}:80", "--address=127.0.0.1") as forwarder:
        assert forwarder.stdout is not None
        assert forwarder.stdout.readline() == f"Forwarding from 127.0.0.1:{port} -> 80\n"
        opener = urllib.request.build_opener(urllib.request.ProxyHandler({}))
        with opener.open(f"http://127.0.0.1:{port}/", timeout=30) as response:
            assert "nothing runs behind port 80" in response.read().decode()
        forwarder.kill()


@pytest.mark.usefixtures("swept")
@pytest.mark.filterwarnings(
    "ignore::DeprecationWarning",
    "ignore:Kubernetes version .* is not supported",
    "ignore::ResourceWarning",
    "ignore::pytest.PytestUnraisableExceptionWarning",
)
def test_python_libraries(cluster: LogicalCluster) -> None:
    kubernetes = pytest.importorskip("kubernetes")
    clients = Clients(cluster)
    core = kubernetes.client.CoreV1Api(clients.kubernetes)
    assert "web" in [pod.metadata.name for pod in core.list_namespaced_pod("default").items]
    resources = pytest.importorskip("lightkube.resources.core_v1")
    assert clients.lightkube.get(resources.Pod, "web").metadata.name == "web"
    pytest.importorskip("kr8s")
    assert [pod.name for pod in clients.kr8s.get("pods", "web")] == ["web"]
    clients.close()


def test_kopf_operator(cluster: LogicalCluster, tmp_path: Path) -> None:
    pytest.importorskip("kopf")
    log = tmp_path / "operator.log"
    command = [sys.executable, "-m", "kopf", "run", "--standalone", "--namespace", "default", str(OPERATOR)]
    environment = {name: value for name, value in os.environ.items() if not name.lower().endswith("_proxy")}
    environment |= {"KUBECONFIG": str(cluster.kubeconfig), "HOME": str(tmp_path)}
    with (
        log.open("wb") as output,
        subprocess.Popen(command, stdout=output, stderr=output, env=environment) as process,
    ):
        widget = {"apiVersion": "example.com/v1", "kind": "Widget", "metadata": {"name": "k"}}
        cluster.load({**widget, "spec": {"size": 4}})
        path = "/apis/example.com/v1/namespaces/default/widgets/k"
        wait_for(
            lambda: cluster.request("GET", path).get("status", {}).get("seen") == 4,
            60,
            pause=0.05,
            explain=log.read_text,
        )
        process.kill()
    cluster.request(
        "PATCH", path, {"metadata": {"finalizers": None}}, content_type="application/merge-patch+json"
    )


def test_http2_serves_host_and_clusters_on_one_connection(host: Cluster, cluster: LogicalCluster) -> None:
    with host.clusters.create("other") as other, httpx.Client(http2=True, verify=trust(host)) as client:
        for each in (host, cluster, other, cluster, host):
            headers = {"Authorization": f"Bearer {each.token}"}
            answer = client.get(f"{each.url}/api/v1/namespaces/kube-system", headers=headers)
            assert (answer.http_version, answer.status_code) == ("HTTP/2", 200)
            assert answer.json() == each.get("namespace/kube-system")


def test_links_have_the_prefix(cluster: LogicalCluster) -> None:
    prefix = "/clusters/team-a"
    paths = cluster.request("GET", "/openapi/v3")["paths"]
    assert all(each["serverRelativeURL"].startswith(f"{prefix}/openapi/v3/") for each in paths.values())
    with httpx.Client(verify=trust(cluster)) as client:
        headers = {"Authorization": f"Bearer {cluster.token}"}
        answer = client.get(f"{cluster.url}/openapi/v3/api/v1?hash=old", headers=headers)
        assert answer.status_code == 301
        assert answer.headers["Location"] == paths["api/v1"]["serverRelativeURL"]
        assert client.get(cluster.host.url + answer.headers["Location"], headers=headers).status_code == 200
    issuer = cluster.request("GET", "/.well-known/openid-configuration")
    assert issuer["issuer"] == cluster.url
    assert issuer["jwks_uri"] == f"{cluster.url}/openid/v1/jwks"
    assert cluster.user("alice")._document["clusters"][0]["cluster"]["server"] == cluster.url
    review = {"spec": {"token": cluster.service_account("robot").token}}
    path = "/apis/authentication.k8s.io/v1/tokenreviews"
    assert cluster.request("POST", path, review)["status"]["audiences"] == [cluster.url]


def test_bench_of_a_cluster_is_its_own(host: Cluster, cluster: LogicalCluster) -> None:
    cluster.clock.advance("1h")
    try:
        ahead = cluster.request("GET", "/kubist/v1/clock")["offset"]
        assert ahead == pytest.approx(3600, abs=1)
        assert host.request("GET", "/kubist/v1/clock")["offset"] == 0
        made = cluster.load({"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": "late"}})[0]
        here = host.load({"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": "now"}})[0]
        assert made["metadata"]["creationTimestamp"] > here["metadata"]["creationTimestamp"]
    finally:
        cluster.request("DELETE", "/kubist/v1/clock")
    with cluster.faults.add(verb="get", user_agent="kubist", status=418) as fault:
        assert host.get("configmap/now")
        with pytest.raises(Exception, match="Teapot"):
            cluster.get("configmap/late")
        assert fault.hits == 1
