"""metrics.k8s.io of a server with simulated pods."""

from __future__ import annotations

import http.client
import json
import ssl

import pytest

from kubist.model.meta.quantity import parse_quantity
from kubist.model.schema.catalog import is_builtin
from kubist.testing import Cluster
from kubist.testing.cluster import Refused
from tests import programs
from tests.simulation.streams.conftest import Kubectl, MakePod

BASE = "/apis/metrics.k8s.io/v1beta1"
PODS = f"{BASE}/namespaces/default/pods"
REQUESTS = {"requests": {"cpu": "100m", "memory": "32Mi"}}


def ask(cluster: Cluster, path: str, accept: str) -> tuple[str, bytes]:
    """Content type and body in the form asked for."""
    context = ssl.create_default_context(cafile=str(cluster.ca))
    connection = http.client.HTTPSConnection("127.0.0.1", cluster.port, context=context, timeout=30)
    try:
        headers = {"Authorization": f"Bearer {cluster.token}", "Accept": accept}
        connection.request("GET", path, headers=headers)
        response = connection.getresponse()
        assert response.status == 200
        return response.headers["Content-Type"], response.read()
    finally:
        connection.close()


def test_pod_metrics_have_the_form_of_metrics_server(cluster: Cluster, make_pod: MakePod) -> None:
    name = make_pod(resources=REQUESTS)
    found = cluster.request("GET", f"{PODS}/{name}")
    assert found["kind"] == "PodMetrics" and found["apiVersion"] == "metrics.k8s.io/v1beta1"
    metadata = found["metadata"]
    assert (metadata["name"], metadata["namespace"], metadata["labels"]) == (name, "default", {"app": name})
    assert found["timestamp"] == metadata["creationTimestamp"] and found["window"] == "15s"
    assert found["containers"] == [{"name": "main", "usage": {"cpu": "100m", "memory": "32Mi"}}]


def test_usage_comes_from_the_annotation(cluster: Cluster, make_pod: MakePod) -> None:
    name = make_pod({"kubist.io/usage": "cpu=250m"}, resources=REQUESTS)
    (container,) = cluster.request("GET", f"{PODS}/{name}")["containers"]
    assert container["usage"] == {"cpu": "250m", "memory": "32Mi"}


def test_list_selects_by_namespace_label_and_name(cluster: Cluster, make_pod: MakePod) -> None:
    name = make_pod()
    listed = cluster.request("GET", f"{PODS}?labelSelector=app%3D{name}")
    assert listed["kind"] == "PodMetricsList" and [i["metadata"]["name"] for i in listed["items"]] == [name]
    everywhere = cluster.request("GET", f"{BASE}/pods?fieldSelector=metadata.name%3D{name}")
    assert [item["metadata"]["name"] for item in everywhere["items"]] == [name]
    assert cluster.request("GET", f"{BASE}/namespaces/kube-system/pods")["items"] == []


def test_missing_metrics_are_not_found(cluster: Cluster) -> None:
    for path, message in (
        (f"{PODS}/none", 'podmetrics.metrics.k8s.io "default/none" not found'),
        (f"{BASE}/nodes/none", 'nodemetrics.metrics.k8s.io "none" not found'),
    ):
        with pytest.raises(Refused, match=message) as raised:
            cluster.request("GET", path)
        assert raised.value.code == 404


@pytest.mark.parametrize("method", ["POST", "DELETE"])
def test_metrics_cannot_be_changed(cluster: Cluster, method: str) -> None:
    with pytest.raises(Refused) as raised:
        cluster.request(method, PODS, {"metadata": {"name": "x"}})
    assert raised.value.code == 405


def test_node_metrics_add_their_pods(cluster: Cluster, make_pod: MakePod) -> None:
    name = make_pod({"kubist.io/usage": "cpu=7,memory=3Ti"})
    node = cluster.get(f"pod/{name}")["spec"]["nodeName"]
    found = cluster.request("GET", f"{BASE}/nodes/{node}")
    assert found["kind"] == "NodeMetrics"
    assert parse_quantity(found["usage"]["memory"]) >= parse_quantity("3Ti")
    assert parse_quantity(found["usage"]["cpu"]) >= parse_quantity("7")
    listed = cluster.request("GET", f"{BASE}/nodes")
    assert {item["metadata"]["name"] for item in listed["items"]} == {
        each["metadata"]["name"] for each in cluster.list("nodes")
    }


def test_nodes_of_others_have_no_metrics(cluster: Cluster) -> None:
    cluster.load({"apiVersion": "v1", "kind": "Node", "metadata": {"name": "elsewhere"}})
    try:
        with pytest.raises(Refused, match="not found"):
            cluster.request("GET", f"{BASE}/nodes/elsewhere")
    finally:
        cluster.delete("node/elsewhere")


def test_table_has_the_columns_of_metrics_server(cluster: Cluster, make_pod: MakePod) -> None:
    name = make_pod(resources=REQUESTS)
    accept = "application/json;as=Table;v=v1;g=meta.k8s.io"
    _, body = ask(cluster, f"{PODS}?labelSelector=app%3D{name}", accept)
    table = json.loads(body)
    assert [column["name"] for column in table["columnDefinitions"]] == ["Name", "cpu", "memory", "Window"]
    assert [row["cells"] for row in table["rows"]] == [[name, "100m", "32Mi", "15s"]]


def test_protobuf_has_the_fields_of_metrics_server(cluster: Cluster, make_pod: MakePod) -> None:
    name = make_pod(resources=REQUESTS)
    kind, body = ask(cluster, f"{PODS}/{name}", "application/vnd.kubernetes.protobuf")
    assert kind == "application/vnd.kubernetes.protobuf" and body.startswith(b"k8s\0")
    assert b"\x1a\x06\x08\x80\xac\xc7\xf07" in body, "the window of 15 s in nanoseconds, field 3"
    assert b"\x0a\x04main\x12" in body, "the name of a container, field 1, before its usage"


def test_discovery_and_openapi_have_the_group(cluster: Cluster) -> None:
    groups = {group["name"] for group in cluster.request("GET", "/apis")["groups"]}
    assert "metrics.k8s.io" in groups
    listed = cluster.request("GET", BASE)["resources"]
    assert [(each["name"], each["kind"], each["namespaced"], each["verbs"]) for each in listed] == [
        ("nodes", "NodeMetrics", False, ["get", "list"]),
        ("pods", "PodMetrics", True, ["get", "list"]),
    ]
    accept = "application/json;g=apidiscovery.k8s.io;v=v2;as=APIGroupDiscoveryList"
    assert b'"metrics.k8s.io"' in ask(cluster, "/apis", accept)[1]
    document = cluster.request("GET", "/openapi/v3/apis/metrics.k8s.io/v1beta1")
    schemas = document["components"]["schemas"]
    prefix = "io.k8s.metrics.pkg.apis.metrics.v1beta1."
    assert {prefix + "PodMetrics", prefix + "PodMetricsList", prefix + "NodeMetrics"} <= set(schemas)
    assert f"{BASE}/namespaces/{{namespace}}/pods" in document["paths"]
    old = cluster.request("GET", "/openapi/v2")
    assert prefix + "PodMetrics" in old["definitions"] and f"{BASE}/nodes" in old["paths"]


def test_plain_server_has_no_metrics() -> None:
    with Cluster() as plain:
        assert "metrics.k8s.io" not in {group["name"] for group in plain.request("GET", "/apis")["groups"]}
        with pytest.raises(Refused):
            plain.request("GET", f"{BASE}/nodes")
    assert not is_builtin("metrics.k8s.io", "v1beta1", "PodMetrics")


@programs.needs("kubectl")
def test_kubectl_top(cluster: Cluster, make_pod: MakePod) -> None:
    name = make_pod({"kubist.io/usage": "cpu=250m,memory=64Mi"})
    kubectl = Kubectl(cluster)
    header, row = kubectl("top", "pods", "-l", f"app={name}").splitlines()
    assert header.split() == ["NAME", "CPU(cores)", "MEMORY(bytes)"] and row.split() == [name, "250m", "64Mi"]
    assert kubectl("top", "pod", name, "--containers").splitlines()[1].split() == [
        name,
        "main",
        "250m",
        "64Mi",
    ]
    assert kubectl("top", "nodes").splitlines()[0].split()[:2] == ["NAME", "CPU(cores)"]
