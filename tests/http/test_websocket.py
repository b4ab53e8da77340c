from __future__ import annotations

import os
import socket
import struct

import pytest

from tests.http.serving import Serving, Site, read_all, read_until
from tests.waiting import wait_for

KEY = b"dGhlIHNhbXBsZSBub25jZQ=="
ACCEPT = b"Sec-WebSocket-Accept: s3pPLMBiTxaQ9kYGzzhZRbK+xOo=\r\n"


def upgrade(client: socket.socket, path: bytes = b"/watch", extra: bytes = b"", key: bytes = KEY) -> bytes:
    client.sendall(
        b"GET %b HTTP/1.1\r\nHost: localhost\r\nConnection: keep-alive, Upgrade\r\nUpgrade: WebSocket\r\n"
        b"Sec-WebSocket-Version: 13\r\nSec-WebSocket-Key: %b\r\nOrigin: http://localhost\r\n%b\r\n"
        % (path, key, extra)
    )
    return read_until(client, b"\r\n\r\n")


def masked(first: int, payload: bytes) -> bytes:
    mask = os.urandom(4)
    body = bytes(byte ^ mask[n % 4] for n, byte in enumerate(payload))
    if len(payload) < 126:
        return bytes([first, 0x80 | len(payload)]) + mask + body
    return bytes([first, 0xFE]) + struct.pack(">H", len(payload)) + mask + body


def frame(client: socket.socket) -> tuple[int, bytes]:
    def exactly(count: int) -> bytes:
        data = b""
        while len(data) < count:
            piece = client.recv(count - len(data))
            assert piece
            data += piece
        return data

    first, length = exactly(2)
    if length == 126:
        length = struct.unpack(">H", exactly(2))[0]
    elif length == 127:
        length = struct.unpack(">Q", exactly(8))[0]
    return first, exactly(length)


def test_each_write_is_a_message(either: Serving, site: Site) -> None:
    with either.socket() as client:
        head = upgrade(client)
        assert head.startswith(b"HTTP/1.1 101 ") and ACCEPT in head
        events = [b'{"n":1}', b"x" * 126, b"y" * 70_000, b'{"n":2}']
        wait_for(lambda: site.writers)

        def write() -> None:
            for event in events:
                site.writers[0].write(event)

        either.call(write)
        assert [frame(client) for _ in events] == [(0x81, event) for event in events]
        either.call(site.writers[0].close)
        assert frame(client) == (0x88, b"\x03\xe8")
        client.sendall(masked(0x88, b"\x03\xe8"))
        assert read_all(client) == b""
    assert site.stopped == 1


def test_websocket_message_of_other_content_is_binary(serving: Serving, site: Site) -> None:
    with serving.socket() as client:
        upgrade(client, b"/binary")
        serving.call(site.writers[0].write, b"\0\1")
        assert frame(client) == (0x82, b"\0\1")


def test_websocket_has_the_subprotocol_of_the_application(serving: Serving) -> None:
    with serving.socket() as client:
        assert b"\r\nSec-WebSocket-Protocol: v2.test\r\n" in upgrade(client)
    with serving.socket() as client:
        assert b"Sec-WebSocket-Protocol" not in upgrade(client, b"/binary")


def test_websocket_ping_gets_pong_and_messages_are_ignored(serving: Serving, site: Site) -> None:
    with serving.socket() as client:
        upgrade(client)
        for byte in masked(0x01, b"frag") + masked(0x80, b"ment") + masked(0x82, b"z" * 300):
            client.sendall(bytes([byte]))
        client.sendall(masked(0x8A, b"unasked pong") + masked(0x89, b"are you there"))
        assert frame(client) == (0x8A, b"are you there")
    assert site.stream_stopped.wait(20) and site.stopped == 1


def test_websocket_client_may_close(serving: Serving, site: Site) -> None:
    with serving.socket() as client:
        upgrade(client)
        client.sendall(masked(0x88, b"\x03\xe9bye"))
        assert frame(client) == (0x88, b"\x03\xe9")
        assert read_all(client) == b""
    assert site.stream_stopped.wait(20) and site.stopped == 1


@pytest.mark.parametrize(
    ("data", "code"),
    [
        (b"\x81\x03abc", 1002),
        (masked(0xC1, b"a"), 1002),
        (masked(0x83, b"a"), 1002),
        (masked(0x80, b"a"), 1002),
        (masked(0x09, b"a"), 1002),
        (masked(0x89, b"a" * 126), 1002),
        (masked(0x01, b"a") + masked(0x01, b"b"), 1002),
        (b"\x82\xff" + struct.pack(">Q", 1 << 40) + b"mask", 1009),
        (masked(0x88, b"x"), 1002),
        (masked(0x88, b"\x00\x01"), 1002),
    ],
    ids=[
        "unmasked", "reserved bit", "unknown opcode", "lone continuation", "split ping", "long ping",
        "interleaved messages", "huge", "short close", "bad close code",
    ],
)  # fmt: skip
def test_protocol_errors_close_with_their_code(serving: Serving, site: Site, data: bytes, code: int) -> None:
    with serving.socket() as client:
        upgrade(client)
        client.sendall(data)
        assert frame(client) == (0x88, struct.pack(">H", code))
        assert read_all(client) == b""
    assert site.stream_stopped.wait(20) and site.stopped == 1


def test_websocket_handshake_without_a_key_is_rejected(serving: Serving, site: Site) -> None:
    with serving.socket() as client:
        assert upgrade(client, key=b"").startswith(b"HTTP/1.1 400 ")
    wait_for(lambda: site.stopped == 1)


def test_websocket_key_may_be_any_text(serving: Serving) -> None:
    """As in kube-apiserver."""
    with serving.socket() as client:
        assert upgrade(client, key=b"!!!!").startswith(b"HTTP/1.1 101 ")


def test_byte_stream_is_sent_in_pieces(serving: Serving, site: Site) -> None:
    with serving.socket() as client:
        assert upgrade(client, b"/bytes").endswith(b"\r\n\r\n\x82\x00")
        serving.call(site.writers[0].write, b"a" * 5000)
        expected = [b"a" * 2048, b"a" * 2048, b"a" * 904]
        assert [frame(client) for _ in expected] == [(0x82, piece) for piece in expected]


def test_byte_stream_in_base64_is_text(serving: Serving, site: Site) -> None:
    with serving.socket() as client:
        assert upgrade(client, b"/base64").endswith(b"\r\n\r\n\x81\x00")
        serving.call(site.writers[0].write, b"\xff\n")
        assert frame(client) == (0x81, b"/wo=")


def test_plain_response_to_an_upgrade_stays_plain(serving: Serving) -> None:
    with serving.socket() as client:
        assert upgrade(client, b"/hello").startswith(b"HTTP/1.1 200 ")


def test_stop_closes_websockets_cleanly(serving: Serving, site: Site) -> None:
    with serving.socket() as client:
        upgrade(client)
        wait_for(lambda: site.writers)
        serving.call(site.writers[0].write, b"{}")
        serving.call(serving.server._host.connections.copy().pop().shutdown)  # type: ignore[union-attr]
        assert frame(client) == (0x81, b"{}")
        assert frame(client)[0] == 0x88


def test_messages_reach_the_application_with_their_fragments_joined(serving: Serving, site: Site) -> None:
    with serving.socket() as client:
        assert upgrade(client, b"/messages").startswith(b"HTTP/1.1 101 ")
        client.sendall(
            masked(0x82, b"whole") + masked(0x02, b"in ") + masked(0x00, b"three ") + masked(0x89, b"p")
        )
        client.sendall(masked(0x80, b"parts") + masked(0x82, b""))
        assert frame(client) == (0x8A, b"p")
        wait_for(lambda: len(site.messages) == 3)
        assert site.messages == [b"whole", b"in three parts", b""]


def test_large_message_reaches_the_application(serving: Serving, site: Site) -> None:
    large = os.urandom(1_000_000)
    with serving.socket() as client:
        upgrade(client, b"/messages")
        mask = b"\0\0\0\0"
        client.sendall(bytes([0x82, 0xFF]) + struct.pack(">Q", len(large)) + mask + large)
        wait_for(lambda: site.messages == [large])


def test_message_above_the_limit_ends_the_connection(serving: Serving, site: Site) -> None:
    with serving.socket() as client:
        upgrade(client, b"/messages")
        client.sendall(bytes([0x82, 0xFF]) + struct.pack(">Q", 9_000_000) + b"\0\0\0\0")
        assert frame(client) == (0x88, struct.pack(">H", 1009))
    assert site.messages == []


def test_text_messages_are_sent_on_request(serving: Serving, site: Site) -> None:
    with serving.socket() as client:
        upgrade(client, b"/messages?text")
        serving.call(site.writers[0].write, b"0YQ==")
        assert frame(client) == (0x81, b"0YQ==")
