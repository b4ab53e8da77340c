"""Logs over WebSocket: negotiation and frames as in kube-apiserver."""

from __future__ import annotations

import base64
from typing import Any

import pytest
import websocket

from kubist.testing import Cluster
from tests.simulation.streams.conftest import MakePod
from tests.simulation.streams.test_logs import annotate
from tests.simulation.streams.upgraded import open_websocket, path, refusal

BINARY, TEXT, CLOSE = websocket.ABNF.OPCODE_BINARY, websocket.ABNF.OPCODE_TEXT, websocket.ABNF.OPCODE_CLOSE
PROTOCOLS = [("", BINARY), ("binary.k8s.io", BINARY), ("base64.binary.k8s.io", TEXT)]


def decoded(opcode: int, data: bytes) -> bytes:
    return base64.b64decode(data, validate=True) if opcode == TEXT else data


def end(stream: Any) -> None:
    """Closes the socket, also after a close frame."""
    stream.shutdown()


@pytest.mark.parametrize(("protocol", "opcode"), PROTOCOLS)
def test_log_is_sent_in_frames(cluster: Cluster, make_pod: MakePod, protocol: str, opcode: int) -> None:
    name = make_pod({"kubist.io/logs": "x" * 3000})
    stream = open_websocket(cluster, path(name, "log"), *filter(None, [protocol]))
    assert (stream.getsubprotocol() or "") == protocol
    frames = [stream.recv_data() for _ in range(4)]
    end(stream)
    assert [code for code, _ in frames] == [opcode, opcode, opcode, CLOSE]
    assert frames[0][1] == b"" and frames[3][1] == b"\x03\xe8"
    assert [decoded(*frame) for frame in frames[1:3]] == [b"x" * 2048, b"x" * 952 + b"\n"]


@pytest.mark.parametrize(("protocol", "opcode"), PROTOCOLS)
def test_followed_log_continues(cluster: Cluster, make_pod: MakePod, protocol: str, opcode: int) -> None:
    name = make_pod({"kubist.io/logs": "one"})
    stream = open_websocket(cluster, path(name, "log", follow="true"), *filter(None, [protocol]))
    assert stream.recv_data() == (opcode, b"")
    assert decoded(*stream.recv_data()) == b"one\n"
    annotate(cluster, name, "one\ntwo")
    assert decoded(*stream.recv_data()) == b"two\n"
    stream.ping("still there?")
    assert stream.recv_data(control_frame=True) == (websocket.ABNF.OPCODE_PONG, b"still there?")
    cluster.delete(f"pod/{name}", gracePeriodSeconds=0)
    assert stream.recv_data()[0] == CLOSE
    end(stream)


@pytest.mark.parametrize(
    ("offered", "chosen"),
    [
        ("foo, binary.k8s.io", "binary.k8s.io"),
        ("base64.binary.k8s.io, binary.k8s.io", "base64.binary.k8s.io"),
    ],
)
def test_first_known_protocol_is_chosen(
    cluster: Cluster, make_pod: MakePod, offered: str, chosen: str
) -> None:
    stream = open_websocket(cluster, path(make_pod(), "log"), *offered.split(", "))
    assert stream.getsubprotocol() == chosen
    end(stream)


@pytest.mark.parametrize("follow", ["true", "false"])
def test_unknown_protocol_is_refused(cluster: Cluster, make_pod: MakePod, follow: str) -> None:
    assert refusal(cluster, path(make_pod(), "log", follow=follow), "foo") == (403, "")


def test_error_is_a_status(cluster: Cluster) -> None:
    code, body = refusal(cluster, path("missing", "log"), "binary.k8s.io")
    assert code == 404 and '"reason":"NotFound"' in body
