"""port-forward of simulated pods, pods/proxy and services/proxy."""

from __future__ import annotations

import http.server
import json
import socket
import struct
import threading
from collections.abc import Iterator

import pytest
import websocket

from kubist.base.http.messages import Request
from kubist.cluster.simulation.kubelet_api import portforward
from kubist.cluster.simulation.kubelet_api.portforward import Target, TargetError, target_of
from kubist.model.meta.object import Object
from kubist.testing import Cluster
from kubist.testing.errors import Refused
from tests.simulation.streams.conftest import MakePod
from tests.simulation.streams.upgraded import ask, hang_up, open_spdy, open_websocket, path, refusal
from tests.spdyclient import SpdyClient
from tests.waiting import wait_for

REQUEST = b"GET /x HTTP/1.1\r\nHost: pod\r\n\r\n"
PROTOCOL = "portforward.k8s.io"

CREDENTIALS = ("authorization", "cookie", "proxy-authorization", "sec-websocket-protocol", "x-remote-user")


class Messages:
    """WebSocket as the wire of a SPDY client."""

    def __init__(self, client: websocket.WebSocket) -> None:
        self.client = client

    def sendall(self, data: bytes) -> None:
        self.client.send_binary(data)

    def recv(self, _: int) -> bytes:
        try:
            opcode, data = self.client.recv_data()
        except websocket.WebSocketConnectionClosedException:
            return b""
        return b"" if opcode == websocket.ABNF.OPCODE_CLOSE else bytes(data)


def forward(
    client: SpdyClient, port: int, sent: bytes, fin: bool = False, request_id: str = ""
) -> tuple[bytes, bytes]:
    """Sends data to a port. Returns the data and the error of the response."""
    more = {"requestID": request_id} if request_id else {}
    error = client.open(streamType="error", port=str(port), **more)
    client.send(error, b"", fin=True)
    data = client.open(streamType="data", port=str(port), **more)
    client.send(data, sent, fin)
    while data not in client.finished and data not in client.reset and client.read_frame():
        pass
    while error not in client.finished and error not in client.reset and client.read_frame():
        pass
    return client.data.get(data, b""), client.data.get(error, b"")


@pytest.fixture(scope="module")
def service() -> Iterator[int]:
    """Local HTTP server. Returns its port."""

    class Handler(http.server.BaseHTTPRequestHandler):
        def do_POST(self) -> None:
            length = int(self.headers["Content-Length"])
            body = self.rfile.read(length).decode()
            credentials = sorted(name for name in self.headers if name.lower() in CREDENTIALS)
            found = {"path": self.path, "body": body, "x": self.headers["X-Mine"], "credentials": credentials}
            self._answer(found)

        def do_GET(self) -> None:
            self._answer({"path": self.path, "authorization": self.headers["Authorization"]})

        def _answer(self, document: Object) -> None:
            body = json.dumps(document).encode()
            self.send_response(201)
            self.send_header("Content-Length", str(len(body)))
            self.send_header("X-Service", "real")
            self.end_headers()
            self.wfile.write(body)

        def log_message(self, *_: object) -> None:
            pass

    with http.server.ThreadingHTTPServer(("127.0.0.1", 0), Handler) as server:
        threading.Thread(target=server.serve_forever, args=(0.01,), daemon=True).start()
        yield server.server_port
        server.shutdown()


def test_built_in_response_says_that_the_pod_is_simulated(cluster: Cluster, make_pod: MakePod) -> None:
    name = make_pod()
    socket_, client = open_spdy(cluster, path(name, "portforward"), PROTOCOL)
    with socket_:
        data, error = forward(client, 8080, REQUEST, request_id="0")
        assert data.startswith(b"HTTP/1.1 200 OK\r\n") and error == b""
        assert f"pod default/{name} is simulated: nothing runs behind port 8080".encode() in data
        data, error = forward(client, 8080, b"HEAD / HTTP/1.0\r\n\r\n", request_id="1")
        assert data.endswith(b"\r\n\r\n") and error == b""
        data, error = forward(client, 5432, b"\0\0\0\x08\x04\xd2\x16\x2f\n", request_id="2")
        assert data == b"" and error.startswith(b"error forwarding port 5432 to pod ")


def test_streams_without_request_ids_are_paired(cluster: Cluster, make_pod: MakePod) -> None:
    socket_, client = open_spdy(cluster, path(make_pod(), "portforward"), PROTOCOL)
    with socket_:
        assert forward(client, 80, REQUEST)[0].startswith(b"HTTP/1.1 200 OK\r\n")


def test_spdy_through_a_websocket(cluster: Cluster, make_pod: MakePod) -> None:
    client = open_websocket(cluster, path(make_pod(), "portforward"), "SPDY/3.1+portforward.k8s.io")
    assert client.subprotocol.lower() == "spdy/3.1+portforward.k8s.io"
    data, error = forward(SpdyClient(Messages(client)), 80, REQUEST, request_id="0")
    hang_up(client)
    assert data.startswith(b"HTTP/1.1 200 OK\r\n") and error == b""


@pytest.mark.parametrize("protocol", ["v4.channel.k8s.io", ""])
def test_websocket_channels(cluster: Cluster, make_pod: MakePod, protocol: str) -> None:
    where = path(make_pod(), "portforward", ports="80,81")
    client = open_websocket(cluster, where, *([protocol] if protocol else []))
    ports = [client.recv_data()[1] for _ in range(4)]
    expected = [bytes([2 * n + half]) + struct.pack("<H", 80 + n) for n in range(2) for half in range(2)]
    assert ports == expected
    client.send_binary(b"\2" + REQUEST)
    received = client.recv_data()[1]
    hang_up(client)
    assert received.startswith(b"\2HTTP/1.1 200 OK\r\n") and b"behind port 81" in received


@pytest.mark.parametrize(
    ("query", "message"),
    [({}, 'query parameter "port" is required'), ({"ports": "0"}, 'port "0" must be > 0')],
)
def test_websocket_channels_need_ports(
    cluster: Cluster, make_pod: MakePod, query: dict[str, str], message: str
) -> None:
    where = path(make_pod(), "portforward", **query)
    assert refusal(cluster, where, "v4.channel.k8s.io") == (400, message)


def test_annotation_leads_to_a_local_service(cluster: Cluster, make_pod: MakePod, service: int) -> None:
    name = make_pod({"kubist.io/port-forward": f"9=127.0.0.1:1, 8080=localhost:{service}"})
    socket_, client = open_spdy(cluster, path(name, "portforward"), PROTOCOL)
    with socket_:
        data, error = forward(client, 8080, b"GET /there HTTP/1.0\r\n\r\n", request_id="0")
        assert b"X-Service: real\r\n" in data and b'"path": "/there"' in data and error == b""
        data, error = forward(client, 9, REQUEST, request_id="1")
        assert data == b"" and b"cannot connect to 127.0.0.1:1" in error


def test_changed_annotation_counts_for_the_next_connection(
    cluster: Cluster, make_pod: MakePod, service: int
) -> None:
    name = make_pod()
    socket_, client = open_spdy(cluster, path(name, "portforward"), PROTOCOL)
    with socket_:
        assert b"is simulated" in forward(client, 8080, REQUEST, request_id="0")[0]
        change = {"metadata": {"annotations": {"kubist.io/port-forward": f"8080=127.0.0.1:{service}"}}}
        where = f"/api/v1/namespaces/default/pods/{name}"
        cluster.request("PATCH", where, change, "application/merge-patch+json")
        data, error = forward(client, 8080, b"GET /there HTTP/1.0\r\n\r\n", request_id="1")
        assert b"X-Service: real\r\n" in data and error == b""


def test_large_transfer_is_whole_in_both_directions(cluster: Cluster, make_pod: MakePod) -> None:
    sent = bytes(range(256)) * 8192

    def echo(listener: socket.socket) -> None:
        connection, _ = listener.accept()
        with connection:
            received = b""
            while piece := connection.recv(65536):
                received += piece
            connection.sendall(received)

    with socket.create_server(("127.0.0.1", 0)) as listener:
        threading.Thread(target=echo, args=(listener,), daemon=True).start()
        port = listener.getsockname()[1]
        name = make_pod({"kubist.io/port-forward": f"80=127.0.0.1:{port}"})
        socket_, client = open_spdy(cluster, path(name, "portforward"), PROTOCOL)
        with socket_:
            data, error = forward(client, 80, sent, fin=True, request_id="0")
    assert data == sent and error == b""


@pytest.mark.parametrize(
    ("headers", "reset"),
    [
        ({"streamType": "data", "port": "0"}, True),
        ({"streamType": "data", "port": "x"}, True),
        ({"streamType": "data"}, True),
        ({"streamType": "stdin", "port": "80"}, True),
        ({"streamType": "data", "port": "80"}, False),
    ],
)
def test_streams_need_a_port_and_a_type(
    cluster: Cluster, make_pod: MakePod, headers: dict[str, str], reset: bool
) -> None:
    socket_, client = open_spdy(cluster, path(make_pod(), "portforward"), PROTOCOL)
    with socket_:
        number = client.open(**headers)
        while not client.reset and not client.replied:
            assert client.read_frame()
    assert (number in client.reset) == reset


def test_half_a_pair_times_out(cluster: Cluster, make_pod: MakePod, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(portforward, "CREATION_SECONDS", 0.05)
    socket_, client = open_spdy(cluster, path(make_pod(), "portforward"), PROTOCOL)
    with socket_:
        error = client.open(streamType="error", port="80", requestID="0")
        while error not in client.finished:
            assert client.read_frame()
    assert client.data[error] == b"timed out waiting for streams"


def test_forwarding_ends_with_the_pod(cluster: Cluster, make_pod: MakePod) -> None:
    name = make_pod()
    socket_, client = open_spdy(cluster, path(name, "portforward"), PROTOCOL)
    with socket_:
        cluster.delete(f"pod/{name}", gracePeriodSeconds=0)
        client.read_until_closed()
        assert client.gone_away
    pods = cluster.inner.api.kubelet._pods  # type: ignore[union-attr]
    wait_for(lambda: ("default", name) not in pods._followed)


def pod(annotation: str) -> Object:
    return {
        "metadata": {"name": "p", "namespace": "n", "annotations": {"kubist.io/port-forward": annotation}}
    }


def request(peer: str = "127.0.0.1") -> Request:
    return Request("POST", "/", "", {}, peer=(peer, 1))


@pytest.mark.parametrize(
    ("annotation", "target"),
    [
        ("80=127.0.0.1:9000", Target("127.0.0.1", 9000)),
        ("80=[::1]:9000", Target("::1", 9000)),
        ("81=127.0.0.1:1, 80=localhost:9000", Target("127.0.0.1", 9000)),
        ("81=127.0.0.1:1", None),
        ("", None),
    ],
)
def test_target_of_a_port(annotation: str, target: Target | None) -> None:
    assert target_of(pod(annotation), 80, request()) == target


@pytest.mark.parametrize(
    "annotation",
    [
        "80",
        "80=9000",
        "80=:9000",
        "80=10.0.0.1:80",
        "80=169.254.169.254:80",
        "80=example.com:80",
        "80=0.0.0.0:80",
        "x=127.0.0.1:1",
        "80=127.0.0.1:0",
    ],
)
def test_target_must_be_a_loopback_address(annotation: str) -> None:
    with pytest.raises(TargetError, match=r"annotation kubist\.io/port-forward: "):
        target_of(pod(annotation), 80, request())


@pytest.mark.parametrize("peer", ["10.0.0.1", "::ffff:10.0.0.1", "", "2001:db8::1"])
def test_local_targets_are_only_for_local_clients(peer: str) -> None:
    with pytest.raises(TargetError, match="only for clients on the machine of the server"):
        target_of(pod("80=127.0.0.1:9000"), 80, request(peer))


def test_local_clients_may_use_ipv6() -> None:
    assert target_of(pod("80=127.0.0.1:1"), 80, request("::ffff:127.0.0.1")) is not None


def test_proxy_without_a_target_says_that_the_pod_is_simulated(cluster: Cluster, make_pod: MakePod) -> None:
    name = make_pod(ports=[{"containerPort": 8080}])
    answer = cluster.request("GET", f"/api/v1/namespaces/default/pods/{name}/proxy/x")
    assert answer.startswith(f"kubist: pod default/{name} is simulated: nothing runs behind port 8080.")


def test_proxy_passes_requests_on_without_credentials(
    cluster: Cluster, make_pod: MakePod, service: int
) -> None:
    name = make_pod({"kubist.io/port-forward": f"8080=127.0.0.1:{service}"}, ports=[{"containerPort": 8080}])
    where = f"/api/v1/namespaces/default/pods/{name}:8080/proxy/a/b?c=d"
    assert cluster.request("GET", where) == {"path": "/a/b?c=d", "authorization": None}
    hidden = ("Proxy-Authorization: t", "X-Remote-User: u", "Sec-WebSocket-Protocol: chat", "Cookie: c=d")
    socket_, head = ask(cluster, where, "X-Mine: 1", *hidden, "Content-Length: 2\r\n\r\nhi")
    with socket_:
        assert head.startswith(b"HTTP/1.1 201 ") and b"X-Service: real" in head
        assert json.loads(socket_.recv(65536)) == {
            "path": "/a/b?c=d",
            "body": "hi",
            "x": "1",
            "credentials": [],
        }


def test_proxy_to_a_closed_port_is_unavailable(cluster: Cluster, make_pod: MakePod) -> None:
    name = make_pod({"kubist.io/port-forward": "80=127.0.0.1:1"})
    socket_, head = ask(cluster, f"/api/v1/namespaces/default/pods/{name}:80/proxy/", method="GET")
    with socket_:
        assert head.startswith(b"HTTP/1.1 503 ")
        assert (
            b"error trying to reach service: dial tcp 127.0.0.1:1: connect: connection refused"
            in socket_.recv(65536)
        )


def test_proxy_of_a_service_reaches_a_ready_pod(cluster: Cluster, service: int) -> None:
    space = "proxy"
    cluster.load({"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": space}})
    pod = f"""
        apiVersion: v1
        kind: Pod
        metadata:
          name: proxy
          labels: {{app: proxy}}
          annotations: {{kubist.io/port-forward: 8080=127.0.0.1:{service}}}
        spec: {{containers: [{{name: main, image: app, ports: [{{containerPort: 8080, name: http}}]}}]}}
    """
    exposed = """
        apiVersion: v1
        kind: Service
        metadata: {name: proxy}
        spec: {selector: {app: proxy}, ports: [{name: web, port: 80, targetPort: http}]}
    """
    cluster.load(pod, exposed, namespace=space)
    where = f"/api/v1/namespaces/{space}/services"
    cluster.wait("endpoints/proxy", lambda held: bool(held.get("subsets")), namespace=space)
    for name in ("proxy:80", "proxy:web", "http:proxy:web"):
        answer = cluster.request("GET", f"{where}/{name}/proxy/a/proxy/b")
        assert answer == {"path": "/a/proxy/b", "authorization": None}
    with pytest.raises(Refused, match='no endpoints available for service "proxy"'):
        cluster.request("GET", f"{where}/proxy/proxy/")
