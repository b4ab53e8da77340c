"""Upgraded connections for tests: WebSocket and SPDY to a subresource of a pod."""

from __future__ import annotations

import json
import socket
import ssl
from typing import Any
from urllib.parse import urlencode

import websocket

from kubist.testing import Cluster
from tests.spdyclient import SpdyClient

SECONDS = 30
WANTED = {"stdout": "true", "stderr": "true"}
CODE_3 = {
    "metadata": {},
    "status": "Failure",
    "message": "command terminated with non-zero exit code: command terminated with exit code 3",
    "reason": "NonZeroExitCode",
    "details": {"causes": [{"reason": "ExitCode", "message": "3"}]},
}
"""Status of a command that ended with exit code 3."""


def path(name: str, subresource: str, **query: Any) -> str:
    return f"/api/v1/namespaces/default/pods/{name}/{subresource}?{urlencode(query, doseq=True)}"


def tls(cluster: Cluster) -> ssl.SSLSocket:
    context = ssl.create_default_context(cafile=str(cluster.ca))
    raw = socket.create_connection(("127.0.0.1", cluster.port), timeout=SECONDS)
    return context.wrap_socket(raw, server_hostname="127.0.0.1")


def open_websocket(cluster: Cluster, where: str, *protocols: str) -> websocket.WebSocket:
    made: websocket.WebSocket = websocket.create_connection(
        f"wss://127.0.0.1:{cluster.port}{where}",
        header=[f"Authorization: Bearer {cluster.token}"],
        sslopt={"ca_certs": str(cluster.ca)},
        subprotocols=list(protocols) or None,
        timeout=SECONDS,
        http_no_proxy=["127.0.0.1"],
    )
    return made


def refusal(cluster: Cluster, where: str, protocol: str) -> tuple[int, str]:
    """Status and body of the response to a WebSocket upgrade that is refused."""
    key = "Sec-WebSocket-Key: dGhlIHNhbXBsZSBub25jZQ=="
    upgrade = ("Connection: Upgrade", "Upgrade: websocket", "Sec-WebSocket-Version: 13", key)
    client, head = ask(cluster, where, *upgrade, f"Sec-WebSocket-Protocol: {protocol}", method="GET")
    with client:
        length = int(head.lower().partition(b"content-length: ")[2].split(b"\r\n")[0])
        body = b""
        while len(body) < length and (piece := client.recv(65536)):
            body += piece
    return int(head.split(b" ")[1]), body.decode()


def ask(cluster: Cluster, where: str, *headers: str, method: str = "POST") -> tuple[ssl.SSLSocket, bytes]:
    """Sends a request with its own headers. Returns the socket and the head of the response."""
    client = tls(cluster)
    lines = [f"{method} {where} HTTP/1.1", "Host: x", f"Authorization: Bearer {cluster.token}", *headers]
    client.sendall("\r\n".join(lines).encode() + b"\r\n\r\n")
    head = b""
    while b"\r\n\r\n" not in head:
        piece = client.recv(1)
        assert piece, head
        head += piece
    return client, head


def open_spdy(cluster: Cluster, where: str, protocol: str) -> tuple[ssl.SSLSocket, SpdyClient]:
    upgrade = ("Connection: Upgrade", "Upgrade: SPDY/3.1", f"X-Stream-Protocol-Version: {protocol}")
    client, head = ask(cluster, where, *upgrade, "Content-Length: 0")
    assert head.startswith(b"HTTP/1.1 101 "), head
    assert b"Upgrade: SPDY/3.1\r\n" in head and f"X-Stream-Protocol-Version: {protocol}\r\n".encode() in head
    return client, SpdyClient(client)


class Ended:
    """Result of a command: output of each channel, and the Status."""

    def __init__(self, channels: dict[int, bytes]) -> None:
        self.out = channels.get(1, b"").decode()
        self.err = channels.get(2, b"").decode()
        self.raw = channels.get(3, b"").decode()

    @property
    def status(self) -> Any:
        return json.loads(self.raw)

    @property
    def code(self) -> int:
        if self.status["status"] == "Success":
            return 0
        return int(self.status["details"]["causes"][0]["message"])


def hang_up(client: websocket.WebSocket) -> None:
    """Closes the connection at once."""
    client.shutdown()  # type: ignore[no-untyped-call]


def drain(client: websocket.WebSocket) -> Ended:
    """Reads all channels until the server closes the WebSocket."""
    channels: dict[int, bytes] = {}
    while True:
        try:
            opcode, data = client.recv_data()
        except websocket.WebSocketConnectionClosedException:
            break
        if opcode == websocket.ABNF.OPCODE_CLOSE:
            break
        channels[data[0]] = channels.get(data[0], b"") + data[1:]
    hang_up(client)
    return Ended(channels)


def run(cluster: Cluster, name: str, *command: str, subresource: str = "exec", **query: Any) -> Ended:
    """Runs a command with version 5 of the protocol."""
    wanted = {"stdout": "1", "stderr": "1", "command": command} | query
    return drain(open_websocket(cluster, path(name, subresource, **wanted), "v5.channel.k8s.io"))
