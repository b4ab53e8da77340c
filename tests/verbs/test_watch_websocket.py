"""Watches over WebSocket: the handshake, and protobuf. Expected values are those of a kube-apiserver."""

from __future__ import annotations

import socket
import ssl

import pytest
import websocket

from tests.live import Client, Live

MAPS = "/api/v1/namespaces/default/configmaps?watch=1&resourceVersion=0"
KEY = "dGhlIHNhbXBsZSBub25jZQ=="
ORIGIN = {"Origin": "http://x.example"}
TOKEN = "base64url.bearer.authorization.k8s.io."


def handshake(live: Live, **headers: str | None) -> tuple[int, str | None, bytes]:
    """Status, chosen protocol, and body of the response."""
    client = live.client
    sent = {
        "Connection": "Upgrade",
        "Upgrade": "websocket",
        "Sec-WebSocket-Version": "13",
        "Sec-WebSocket-Key": KEY,
        **client.headers(Host="localhost"),
        **{name.replace("_", "-"): value for name, value in headers.items()},
    }
    lines = "".join(f"{name}: {value}\r\n" for name, value in sent.items() if value is not None)
    context = ssl.create_default_context(cafile=str(live.pki.path("ca.crt")))
    with (
        socket.create_connection(("127.0.0.1", client.port), timeout=20) as raw,
        context.wrap_socket(raw, server_hostname="localhost") as connection,
    ):
        connection.sendall(f"GET {MAPS} HTTP/1.1\r\n{lines}\r\n".encode())
        received = b""
        while b"\r\n\r\n" not in received:
            received += connection.recv(65536)
        head, _, body = received.partition(b"\r\n\r\n")
    _, found, rest = head.partition(b"\r\nSec-WebSocket-Protocol: ")
    chosen = rest.partition(b"\r\n")[0].decode() if found else None
    return int(head.split(b" ")[1]), chosen, body


@pytest.mark.parametrize("origin", [None, "null", "::x"])
def test_watch_needs_an_origin(shared_live: Live, origin: str | None) -> None:
    assert handshake(shared_live, Origin=origin)[:2] == (403, None)


@pytest.mark.parametrize("protocol", ["binary.k8s.io", "base64.binary.k8s.io", "foo"])
def test_any_single_protocol_is_accepted(shared_live: Live, protocol: str) -> None:
    assert handshake(shared_live, **ORIGIN, Sec_WebSocket_Protocol=protocol)[:2] == (101, protocol)


def test_response_without_a_protocol_names_none(shared_live: Live) -> None:
    assert handshake(shared_live, **ORIGIN)[:2] == (101, None)


def test_several_protocols_are_refused(shared_live: Live) -> None:
    offered = "foo, binary.k8s.io"
    assert handshake(shared_live, **ORIGIN, Sec_WebSocket_Protocol=offered)[:2] == (400, None)


def test_protocol_with_a_token_does_not_count(shared_live: Live) -> None:
    offered = f"{TOKEN}YWRtaW4tdG9rZW4, foo"
    assert handshake(shared_live, **ORIGIN, Sec_WebSocket_Protocol=offered)[:2] == (101, "foo")


def test_invalid_handshakes_have_a_text(shared_live: Live) -> None:
    no_key = handshake(shared_live, **ORIGIN, Sec_WebSocket_Key=None)
    assert no_key == (400, None, b"mismatch challenge/response")
    version = handshake(shared_live, **ORIGIN, Sec_WebSocket_Version="8")
    assert version == (400, None, b"missing or bad WebSocket Version")


def test_protobuf_messages_have_no_length(shared_live: Live, namespace: str) -> None:
    client: Client = shared_live.client
    maps = f"/api/v1/namespaces/{namespace}/configmaps"
    client.post(maps, {"metadata": {"name": "a"}})
    headers = client.headers(Accept="application/vnd.kubernetes.protobuf;stream=watch")
    stream = websocket.create_connection(
        f"wss://127.0.0.1:{client.port}{maps}?watch=1&resourceVersion=0",
        header=headers,
        sslopt={"ca_certs": str(shared_live.pki.path("ca.crt"))},
        timeout=10,
        http_no_proxy=["127.0.0.1"],
    )
    opcode, event = stream.recv_data()
    stream.close()
    assert opcode == websocket.ABNF.OPCODE_BINARY and event.startswith(b"\n\x05ADDED")
