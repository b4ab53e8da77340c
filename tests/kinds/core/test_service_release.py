"""A write that stores no Service keeps no cluster IP and no node port."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import pytest

from tests.live import Client, Live, Pki

SERVICES = "/api/v1/namespaces/default/services"
ADDRESSES = "/apis/networking.k8s.io/v1/ipaddresses"
CHANGES: dict[str, dict[str, Any]] = {
    "node port": {"type": "NodePort", "ports": [{"port": 80, "protocol": "TCP", "nodePort": 30999}]},
    "health check": {
        "type": "LoadBalancer",
        "externalTrafficPolicy": "Local",
        "healthCheckNodePort": 30999,
        "allocateLoadBalancerNodePorts": False,
    },
    "second family": {"ipFamilyPolicy": "RequireDualStack"},
}


@pytest.fixture(scope="module")
def client(server_pki: Pki) -> Iterator[Client]:
    with Live(server_pki, service_cluster_ip_range="10.0.0.0/24,fd00::/112") as live:
        yield live.client
        live.client.close()


def addresses(client: Client) -> set[str]:
    return {address["metadata"]["name"] for address in client.get(ADDRESSES)["items"]}


def is_free(client: Client, port: int) -> bool:
    """Whether a new Service gets the node port."""
    ports = [{"port": 80, "nodePort": port}]
    probe = {"metadata": {"name": "probe"}, "spec": {"type": "NodePort", "ports": ports}}
    code = client.ask("POST", SERVICES, probe).status
    client.ask("DELETE", f"{SERVICES}/probe")
    return code == 201


def terminating(client: Client) -> dict[str, Any]:
    """A Service that only its finalizer keeps."""
    metadata = {"name": "s", "finalizers": ["example.com/f"]}
    client.post(SERVICES, {"metadata": metadata, "spec": {"ports": [{"port": 80}]}})
    client.delete(f"{SERVICES}/s")
    service: dict[str, Any] = client.get(f"{SERVICES}/s")
    assert "deletionTimestamp" in service["metadata"]
    return service


@pytest.mark.parametrize("change", CHANGES)
@pytest.mark.parametrize("method", ["PUT", "PATCH"])
def test_update_that_removes_the_last_finalizer_releases_what_it_allocated(
    client: Client, method: str, change: str
) -> None:
    before = addresses(client)
    service = terminating(client)
    if method == "PUT":
        service["metadata"].pop("finalizers")
        service["spec"].update(CHANGES[change])
        answer = client.put(f"{SERVICES}/s", service)
    else:
        patch = {"metadata": {"finalizers": None}, "spec": CHANGES[change]}
        answer = client.patch(f"{SERVICES}/s", patch)
    for field in CHANGES[change].keys() - {"ports"}:
        assert answer["spec"][field] == CHANGES[change][field]
    assert client.ask("GET", f"{SERVICES}/s").status == 404
    assert addresses(client) == before
    assert is_free(client, 30999)


@pytest.mark.parametrize("change", CHANGES)
@pytest.mark.parametrize("query", ["?dryRun=All", ""])
def test_update_that_fails_or_is_a_dry_run_releases_what_it_allocated(
    client: Client, query: str, change: str
) -> None:
    """Without dry run, the session affinity is invalid, which is noticed after the allocation."""
    before = addresses(client)
    service = terminating(client)
    held = addresses(client)
    service["spec"].update(CHANGES[change])
    if not query:
        service["spec"]["sessionAffinity"] = "Odd"
    answer = client.ask("PUT", f"{SERVICES}/s{query}", service)
    assert answer.status == (200 if query else 422), answer.json
    assert addresses(client) == held
    assert is_free(client, 30999)
    client.patch(f"{SERVICES}/s", {"metadata": {"finalizers": None}})
    assert addresses(client) == before


@pytest.mark.parametrize("query", ["?dryRun=All", ""])
def test_create_that_fails_or_is_a_dry_run_releases_what_it_allocated(client: Client, query: str) -> None:
    before = addresses(client)
    spec = {
        "type": "NodePort",
        "ports": [{"port": 80, "nodePort": 30999}],
        "ipFamilyPolicy": "PreferDualStack",
    }
    if not query:
        spec["sessionAffinity"] = "Odd"
    answer = client.ask("POST", SERVICES + query, {"metadata": {"name": "s"}, "spec": spec})
    assert answer.status == (201 if query else 422), answer.json
    assert addresses(client) == before
    assert is_free(client, 30999)
