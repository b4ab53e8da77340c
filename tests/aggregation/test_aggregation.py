"""APIServices with a service: proxied requests and responses, availability, discovery."""

from __future__ import annotations

import json
import time
from pathlib import Path

import pytest

from kubist.api.webhooks.client import resolve
from kubist.base.http.tls.certificates import load_authority, save
from tests.aggregation.backends import (
    APISERVICES,
    GROUP,
    NAME,
    PATH,
    VERSION,
    Backend,
    condition,
    register,
    service,
)
from tests.live import Client, Live, Pki
from tests.waiting import wait_for

FLAVOURS = f"{PATH}/namespaces/default/flavours"
ALL = "application/json;g=apidiscovery.k8s.io;v=v2;as=APIGroupDiscoveryList"


@pytest.fixture
def registered(live: Live, backend: Backend) -> Client:
    """Client of a server that aggregates the backend."""
    service(live.client)
    register(live.client, backend.port, caBundle=backend.bundle)
    wait_for(lambda: condition(live.client).get("status") == "True")
    return live.client


def asked_with(client: Client, path: str, **headers: str) -> tuple[int, bytes]:
    connection = client.connect()
    connection.request("GET", path, headers=client.headers(**headers))
    response = connection.getresponse()
    answer = response.status, response.read()
    connection.close()
    return answer


def test_proxied_requests_carry_the_users_identity(registered: Client, backend: Backend) -> None:
    answer = registered.ask("GET", f"{FLAVOURS}/vanilla?pretty=true&x=%20y")
    assert (answer.status, answer.json["metadata"]["name"]) == (200, "vanilla")
    assert answer.headers["X-Flavour"] == "lemon"
    assert len(answer.headers.get_all("Date", [])) == 1
    method, path, headers, _ = backend.asked[-1]
    assert (method, path) == ("GET", f"{FLAVOURS}/vanilla?pretty=true&x=%20y")
    told = {name.lower(): value for name, value in headers}
    assert told["x-remote-user"] == "admin"
    assert told["x-remote-uid"] == "u-admin"
    groups = [value for name, value in headers if name.lower() == "x-remote-group"]
    assert groups == ["system:masters", "system:authenticated"]
    assert "authorization" not in told


def test_identity_headers_of_clients_are_dropped(registered: Client, backend: Backend) -> None:
    extra = {"Impersonate-User": "admin", "Impersonate-Group": "system:masters"}
    assert asked_with(registered, FLAVOURS, **{"X-Remote-User": "root", **extra})[0] == 200
    names = [(name.lower(), value) for name, value in backend.asked[-1][2]]
    assert [value for name, value in names if name == "x-remote-user"] == ["admin"]
    assert not [name for name, _ in names if name.startswith("impersonate-")]


def test_bodies_and_statuses_are_passed_through(registered: Client, backend: Backend) -> None:
    made = registered.post(FLAVOURS, {"kind": "Flavour", "metadata": {"name": "mint"}})
    assert made == {"kind": "Flavour", "metadata": {"name": "mint"}}
    assert backend.asked[-1][0] == "POST"
    assert registered.ask("GET", f"{FLAVOURS}/teapot").status == 418


def test_watch_events_are_relayed_at_once(registered: Client, backend: Backend) -> None:
    with registered.watch(FLAVOURS) as watch:
        for kind in ("ADDED", "MODIFIED", "DELETED"):
            backend.events.put({"type": kind, "object": {}})
            assert watch.next() == {"type": kind, "object": {}}
        backend.events.put(None)
        assert watch.next() is None


def test_client_disconnect_ends_the_watch_at_the_backend(registered: Client, backend: Backend) -> None:
    with registered.watch(FLAVOURS) as watch:
        backend.events.put({"type": "ADDED", "object": {}})
        watch.next()

    def noticed() -> bool:
        backend.events.put({"type": "ADDED", "object": {}})
        return backend.left.wait(0.05)

    wait_for(noticed)


@pytest.mark.parametrize("protocol", ["websocket", "SPDY/3.1"])
def test_upgraded_connections_are_tunnelled(registered: Client, backend: Backend, protocol: str) -> None:
    connection = registered.connect()
    asked = {"Connection": "Upgrade", "Upgrade": protocol, "Sec-WebSocket-Key": "x", "X-Remote-User": "root"}
    connection.request("POST", f"{FLAVOURS}/vanilla/taste", headers=registered.headers(**asked))
    sock = connection.sock
    reader = sock.makefile("rb")
    head = [reader.readline().strip().lower()]
    while line := reader.readline().strip().lower():
        head.append(line)
    assert head[0].startswith(b"http/1.1 101")
    assert {b"connection: upgrade", b"upgrade: " + protocol.lower().encode(), b"x-flavour: lemon"} <= set(
        head
    )
    for sent in (b"sweet", b"\x00\xff sour", *[b"x" * 100_000] * 30):
        sock.sendall(sent)
        assert reader.read(len(sent)) == sent.upper()
    method, path, headers, _ = backend.asked[-1]
    told = {name.lower(): value for name, value in headers}
    assert (method, path) == ("POST", f"{FLAVOURS}/vanilla/taste")
    assert told["upgrade"] == protocol and told["sec-websocket-key"] == "x"
    assert told["x-remote-user"] == "admin", "an upgrade is no way around identity"
    reader.close()
    connection.close()
    assert backend.left.wait(10), "the backend hears that the client left"


def test_declined_upgrade_returns_the_backends_response(registered: Client) -> None:
    connection = registered.connect()
    asked = {"Connection": "Upgrade", "Upgrade": ""}
    connection.request("GET", f"{FLAVOURS}/vanilla", headers=registered.headers(**asked))
    assert connection.getresponse().status == 200
    connection.close()


def test_connections_to_a_backend_are_reused(registered: Client, backend: Backend) -> None:
    for _ in range(20):
        assert registered.ask("GET", f"{FLAVOURS}/vanilla").status == 200
    assert len(backend.connections) == 1


def test_large_responses_are_complete(registered: Client) -> None:
    assert len(registered.get(f"{FLAVOURS}/large")["data"]) == 3_000_000


def test_server_presents_its_proxy_client_certificate(server_pki: Pki, backend: Backend) -> None:
    shown = {
        "proxy_client_cert_file": str(server_pki.path("admin.crt")),
        "proxy_client_key_file": str(server_pki.path("admin.key")),
    }
    with Live(server_pki, **shown) as live:
        service(live.client)
        register(live.client, backend.port, caBundle=backend.bundle)
        wait_for(lambda: condition(live.client).get("status") == "True")
    assert (("commonName", "admin"),) in backend.certificates[-1]["subject"]


def test_replaced_proxy_client_certificate_is_presented(
    server_pki: Pki, backend: Backend, tmp_path: Path
) -> None:
    certificate, key = tmp_path / "proxy.crt", tmp_path / "proxy.key"
    authority = load_authority(server_pki.path("ca.crt"), server_pki.path("ca.key"))
    save(authority.issue_client("old"), certificate, key)
    with Live(server_pki, proxy_client_cert_file=str(certificate), proxy_client_key_file=str(key)) as live:
        service(live.client)
        register(live.client, backend.port, caBundle=backend.bundle)
        wait_for(lambda: condition(live.client).get("status") == "True")

        def presented() -> str:
            assert live.client.ask("GET", FLAVOURS).status == 200
            subject = dict(part for (part,) in backend.certificates[-1]["subject"])
            return str(subject["commonName"])

        new = authority.issue_client("new")
        certificate.write_bytes(new.cert_pem)
        time.sleep(1.1)
        assert presented() == "old", "a certificate without its key is not used"
        key.write_bytes(new.key_pem)
        wait_for(lambda: presented() == "new")


def test_requests_are_authorized_before_proxying(registered: Client, live: Live, backend: Backend) -> None:
    developer = Client(live.server.port, live.pki, "dev-token")
    answer = developer.ask("GET", FLAVOURS)
    developer.close()
    assert (answer.status, answer.json["reason"]) == (403, "Forbidden")
    assert f'in API group "{GROUP}"' in answer.json["message"]
    assert backend.asked == []


def test_discovery_lists_resources_of_the_backend(registered: Client) -> None:
    groups = registered.get("/apis")["groups"]
    assert groups[-1]["name"] == GROUP
    assert registered.get(f"/apis/{GROUP}")["preferredVersion"]["version"] == VERSION
    assert registered.get(PATH)["resources"][0]["name"] == "flavours"
    status, raw = asked_with(registered, "/apis", Accept=ALL)
    item = json.loads(raw)["items"][-1]
    assert (status, item["metadata"]["name"]) == (200, GROUP)
    version = item["versions"][0]
    assert (version["version"], version["freshness"]) == (VERSION, "Current")
    assert version["resources"][0]["resource"] == "flavours"
    assert version["resources"][0]["subresources"][0]["subresource"] == "status"


def test_stopped_backend_becomes_unavailable(registered: Client, backend: Backend, live: Live) -> None:
    backend.stop()
    answer = registered.ask("GET", FLAVOURS)
    assert answer.status == 503
    assert b"error trying to reach service: dial tcp" in answer.body
    registered.delete("/api/v1/namespaces/backends/services/scoops")
    wait_for(lambda: condition(registered).get("reason") == "ServiceNotFound")
    assert condition(registered)["message"] == 'service/scoops in "backends" is not present'
    service(registered)
    wait_for(lambda: condition(registered).get("reason") == "FailedDiscoveryCheck")
    assert condition(registered)["status"] == "False"
    answer = registered.ask("GET", FLAVOURS)
    assert (answer.status, answer.body) == (503, b"service unavailable\n")
    assert b'"Stale"' in asked_with(registered, "/apis", Accept=ALL)[1]


def test_backend_of_an_unknown_ca_is_not_trusted(live: Live, backend: Backend) -> None:
    service(live.client)
    register(live.client, backend.port)
    wait_for(lambda: condition(live.client).get("reason") == "FailedDiscoveryCheck")
    assert "x509: certificate signed by unknown authority" in condition(live.client)["message"]
    assert live.client.ask("GET", FLAVOURS).status == 503
    live.client.patch(f"{APISERVICES}/{NAME}", {"spec": {"insecureSkipTLSVerify": True}})
    wait_for(lambda: condition(live.client).get("reason") == "Passed")
    assert live.client.ask("GET", FLAVOURS).status == 200


def test_backend_certificate_must_name_the_service(live: Live, server_pki: Pki, tmp_path: Path) -> None:
    backend = Backend(server_pki, tmp_path, "other.backends.svc")
    service(live.client)
    register(live.client, backend.port, caBundle=backend.bundle)
    wait_for(lambda: condition(live.client).get("reason") == "FailedDiscoveryCheck")
    backend.stop()
    assert live.client.ask("GET", FLAVOURS).status == 503


def test_service_needs_its_port_and_ready_endpoints(live: Live) -> None:
    client = live.client
    service(client, ports=[{"name": "https", "port": 8443}])
    register(client, 443)
    wait_for(lambda: condition(client).get("reason") == "ServicePortError")
    client.patch(f"{APISERVICES}/{NAME}", {"spec": {"service": {"port": 8443}}})
    wait_for(lambda: condition(client).get("reason") == "EndpointsNotFound")
    slices = "/apis/discovery.k8s.io/v1/namespaces/backends/endpointslices"
    piece = {
        "metadata": {"name": "scoops-1", "labels": {"kubernetes.io/service-name": "scoops"}},
        "addressType": "IPv4",
        "ports": [{"name": "https", "port": 8443}],
        "endpoints": [{"addresses": ["10.1.2.3"], "conditions": {"ready": False}}],
    }
    client.post(slices, piece)
    wait_for(lambda: condition(client).get("reason") == "MissingEndpoints")
    told = condition(client)["message"]
    assert told == 'endpointslices for service/scoops in "backends" have no addresses with port name "https"'


def test_ready_endpoint_is_preferred_to_the_cluster_ip(live: Live) -> None:
    client = live.client
    service(client, ports=[{"port": 443}], clusterIP="10.0.0.77")
    assert resolve(live.server.api.cluster, "backends", "scoops", 443) == ("10.0.0.77", 443)
    client.post(
        "/apis/discovery.k8s.io/v1/namespaces/backends/endpointslices",
        {
            "metadata": {"name": "scoops-1", "labels": {"kubernetes.io/service-name": "scoops"}},
            "addressType": "IPv4",
            "ports": [{"name": "", "port": 8443}],
            "endpoints": [{"addresses": ["10.1.2.3"]}],
        },
    )
    assert resolve(live.server.api.cluster, "backends", "scoops", 443) == ("10.1.2.3", 8443)


def test_deleted_api_service_is_no_longer_proxied(registered: Client) -> None:
    registered.delete(f"{APISERVICES}/{NAME}")
    wait_for(lambda: registered.ask("GET", PATH).status == 404)
    assert registered.ask("GET", f"/apis/{GROUP}").status == 404
    assert GROUP not in [group["name"] for group in registered.get("/apis")["groups"]]


def test_local_api_services_are_served_locally(registered: Client) -> None:
    found = registered.get(f"{APISERVICES}/v1.apps")["status"]["conditions"][0]
    assert (found["status"], found["reason"]) == ("True", "Local")
    registered.patch(f"{APISERVICES}/{NAME}", {"spec": {"service": None, "caBundle": None}})
    wait_for(lambda: condition(registered).get("reason") == "Local")
    assert registered.ask("GET", PATH).status == 404
