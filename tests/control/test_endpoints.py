"""Endpoints, EndpointSlices and mirrored slices of `--workloads` on a running server."""

from __future__ import annotations

from typing import Any

import pytest

from kubist.model.meta.object import Object
from kubist.testing import Cluster
from tests.waiting import wait_for

pytestmark = pytest.mark.kubist(workloads=True)
LABELS = {"app": "web"}
MERGE = "application/merge-patch+json"


def service(**spec: Any) -> Object:
    ports = [{"name": "web", "port": 80, "targetPort": 8080}]
    body = {"ports": ports, **spec}
    metadata = {"name": "web", "labels": {"team": "a"}}
    return {"apiVersion": "v1", "kind": "Service", "metadata": metadata, "spec": body}


def deployment(replicas: int) -> Object:
    template = {"metadata": {"labels": LABELS}, "spec": {"containers": [{"name": "c", "image": "nginx"}]}}
    spec = {"replicas": replicas, "selector": {"matchLabels": LABELS}, "template": template}
    return {"apiVersion": "apps/v1", "kind": "Deployment", "metadata": {"name": "web"}, "spec": spec}


def slices(cluster: Cluster) -> list[Object]:
    label = "kubernetes.io/service-name"
    return [s for s in cluster.list("endpointslices") if s["metadata"]["labels"].get(label) == "web"]


def addresses(cluster: Cluster) -> list[str]:
    return sorted(e["addresses"][0] for held in slices(cluster) for e in held.get("endpoints") or ())


def test_service_without_pods_has_one_empty_slice(cluster: Cluster) -> None:
    cluster.load(service(selector=LABELS, clusterIP="None"))
    wait_for(lambda: slices(cluster))
    (held,) = slices(cluster)
    assert held["addressType"] == "IPv4"
    assert not held.get("endpoints")
    assert held["metadata"]["labels"] == {
        "team": "a",
        "kubernetes.io/service-name": "web",
        "endpointslice.kubernetes.io/managed-by": "endpointslice-controller.k8s.io",
        "service.kubernetes.io/headless": "",
    }
    cluster.load(deployment(1))
    wait_for(lambda: addresses(cluster))
    (same,) = slices(cluster)
    assert same["metadata"]["name"] == held["metadata"]["name"]


def test_unready_pods_are_in_slice_and_endpoints(cluster: Cluster) -> None:
    cluster.load(service(selector=LABELS), deployment(1))
    gates = [{"conditionType": "example.com/gate"}]
    spec = {"containers": [{"name": "c", "image": "nginx"}], "readinessGates": gates}
    metadata = {"name": "unready", "labels": {**LABELS, "pod-template-hash": "x"}}
    cluster.load({"apiVersion": "v1", "kind": "Pod", "metadata": metadata, "spec": spec})

    def states() -> list[bool]:
        return sorted(
            e["conditions"]["ready"] for held in slices(cluster) for e in held.get("endpoints") or ()
        )

    wait_for(lambda: states() == [False, True])

    def subset() -> Object:
        found: list[Object] = cluster.get("endpoints/web").get("subsets") or [{}]
        return found[0]

    wait_for(lambda: len(subset().get("addresses", ())) == len(subset().get("notReadyAddresses", ())) == 1)


def test_deleted_slice_is_created_again_and_changed_one_is_restored(cluster: Cluster) -> None:
    cluster.load(service(selector=LABELS), deployment(1))
    wait_for(lambda: addresses(cluster))
    (held,) = slices(cluster)
    cluster.delete(f"endpointslice/{held['metadata']['name']}")
    wait_for(lambda: [s["metadata"]["uid"] for s in slices(cluster)] not in ([], [held["metadata"]["uid"]]))
    (new,) = slices(cluster)
    path = f"/apis/discovery.k8s.io/v1/namespaces/default/endpointslices/{new['metadata']['name']}"
    cluster.request("PATCH", path, {"endpoints": []}, MERGE)
    wait_for(lambda: addresses(cluster))


def test_many_endpoints_are_split_into_slices(cluster: Cluster) -> None:
    cluster.load(service(selector=LABELS), deployment(120))
    wait_for(lambda: len(addresses(cluster)) == 120, 60, pause=0.1)
    assert max(len(held["endpoints"]) for held in slices(cluster)) <= 100


def test_endpoints_of_a_service_without_selector_are_mirrored(cluster: Cluster) -> None:
    cluster.load(service())
    subsets = [{"addresses": [{"ip": "10.9.9.9"}], "ports": [{"name": "web", "port": 80}]}]
    endpoints = {"apiVersion": "v1", "kind": "Endpoints", "metadata": {"name": "web"}, "subsets": subsets}
    cluster.load(endpoints)
    wait_for(lambda: addresses(cluster) == ["10.9.9.9"])
    (held,) = slices(cluster)
    owner = held["metadata"]["ownerReferences"][0]
    assert (owner["kind"], owner["name"]) == ("Endpoints", "web")
    assert held["ports"] == [{"name": "web", "port": 80, "protocol": "TCP"}]
    path = "/api/v1/namespaces/default/endpoints/web"
    subsets[0]["addresses"] = [{"ip": "10.9.9.8"}]
    cluster.request("PATCH", path, {"subsets": subsets}, MERGE)
    wait_for(lambda: addresses(cluster) == ["10.9.9.8"])
    cluster.delete("endpoints/web")
    wait_for(lambda: not slices(cluster))


def test_endpoints_of_a_deleted_service_are_deleted(cluster: Cluster) -> None:
    cluster.load(service(selector=LABELS), deployment(1))
    wait_for(lambda: addresses(cluster))
    cluster.wait("endpoints/web", lambda held: bool(held.get("subsets")))
    cluster.delete("svc/web")
    cluster.wait("endpoints/web", "delete")
    wait_for(lambda: not slices(cluster))


def test_load_balancer_gets_an_address_and_events(cluster: Cluster) -> None:
    cluster.load(service(selector=LABELS, type="LoadBalancer"))
    cluster.wait("svc/web", lambda held: bool(held["status"]["loadBalancer"].get("ingress")))
    wanted = {"EnsuringLoadBalancer", "EnsuredLoadBalancer"}
    wait_for(lambda: wanted <= {event["reason"] for event in cluster.list("events")})
