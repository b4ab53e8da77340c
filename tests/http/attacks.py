"""Attacks by one anonymous connection.

An attack is a function that gets a `Victim`. `Victim.suffer` runs it and measures. Attacks are bounded in size
and time, and end quietly when the server closes the connection.
"""

from __future__ import annotations

import contextlib
import socket
import ssl
import threading
import time
from collections.abc import Callable

import hpack

from kubist.base.http.http2.frames import Flag, Kind, Setting, frame, settings
from tests.http.victim import SECONDS, Victim

MEGABYTE = 1024 * 1024
HOST = b"Host: localhost\r\n"


def headers_out_of_a_table(victim: Victim) -> None:
    """HPACK: one table entry of 4 KB that each request references 240 times."""
    with victim.http2() as client:
        many = [("x-large", "v" * 3900)] * 240
        batch = client.headers(many[0])
        while len(batch) < 60_000 and client.stream < 480:
            batch += client.headers(*many)
        while not client.over:
            client.socket.sendall(batch)
            client.listen(0.05)
            batch = b"".join(client.headers(*many) for _ in range(100))


def headers_out_of_a_code(victim: Victim) -> None:
    """HPACK: 900 KB of Huffman code, which is slow to decode."""
    with victim.http2() as client:
        code = b"\x00\x01x" + _length(60_000) + b"\x07" * 60_000
        request = hpack.Encoder().encode([(":method", "GET"), (":path", "/"), (":scheme", "https")])
        while not client.over:
            client.socket.sendall(client.block(request + code * 15))
            client.listen(0.05)


def headers_without_bodies(victim: Victim) -> None:
    """250 requests with 1 MB of headers each. None of them ends."""
    with victim.http2() as client:
        large = [("x-large", "v" * 3900)] * 240
        client.socket.sendall(b"".join(client.headers(*large, method="POST", end=False) for _ in range(250)))
        client.listen(SECONDS)


def bodies_without_end(victim: Victim) -> None:
    """100 bodies of 2.9 MB, each without its last byte."""
    _upload(victim, b"x" * 16_384)


def bodies_in_tiny_frames(victim: Victim) -> None:
    """Bodies with two bytes per frame."""
    _upload(victim, b"xy")


def _upload(victim: Victim, content: bytes) -> None:
    size = 2_900_000
    length = ("content-length", str(size))
    with victim.http2() as client:
        heads = [client.headers(length, method="POST", path="/api/v1/pods", end=False) for _ in range(100)]
        client.socket.sendall(b"".join(heads))
        sent = dict.fromkeys(range(1, 201, 2), 0)
        while not client.over:
            moved = False
            for stream, done in sent.items():
                room = min(client.windows[stream], size - 1 - done, 64 * len(content))
                if room >= len(content):
                    count = room // len(content)
                    client.socket.sendall(frame(Kind.DATA, 0, stream, content) * count)
                    client.windows[stream] -= count * len(content)
                    sent[stream] += count * len(content)
                    moved = True
            client.listen(0.001 if moved else 0.2)


def bodies_in_tiny_chunks(victim: Victim) -> None:
    """HTTP/1.1: a body of 3 MB in chunks of two bytes."""
    with victim.connect() as client:
        client.sendall(b"POST /api/v1/pods HTTP/1.1\r\n" + HOST + b"Transfer-Encoding: chunked\r\n\r\n")
        ended = time.monotonic() + SECONDS
        for _ in range(1500):
            if time.monotonic() > ended:
                break
            client.sendall(b"2\r\nxy\r\n" * 1000)


def trailer_without_end(victim: Victim) -> None:
    with victim.connect() as client:
        client.sendall(b"POST /api HTTP/1.1\r\n" + HOST + b"Transfer-Encoding: chunked\r\n\r\n0\r\nX: ")
        for _ in range(200):
            client.sendall(b"a" * MEGABYTE)


def header_without_end(victim: Victim) -> None:
    with victim.connect() as client:
        client.sendall(b"GET /api HTTP/1.1\r\n" + HOST + b"X: ")
        for _ in range(200):
            client.sendall(b"a" * MEGABYTE)


def repeated_headers(victim: Victim) -> None:
    """HTTP/1.1: 4,000 headers with one name, repeatedly."""
    request = b"GET /api HTTP/1.1\r\n" + HOST + (b"X: " + b"a" * 200 + b"\r\n") * 4000 + b"\r\n"
    _again(victim, request)


def pipelined_requests(victim: Victim) -> None:
    _again(victim, (b"GET /api HTTP/1.1\r\n" + HOST + b"\r\n") * 200)


def _again(victim: Victim, request: bytes) -> None:
    ended = time.monotonic() + SECONDS
    with victim.connect() as client:
        reader = threading.Thread(target=_drain, args=(client,))
        reader.start()
        try:
            while time.monotonic() < ended:
                client.sendall(request)
        finally:
            with contextlib.suppress(OSError):
                client.shutdown(socket.SHUT_RDWR)
            reader.join()


def _drain(client: ssl.SSLSocket) -> None:
    with contextlib.suppress(OSError, ValueError):
        while client.recv(262_144):
            pass


def made_up_methods(victim: Victim) -> None:
    """Many invented methods on many connections, because each connection is closed after its first response."""
    ended = time.monotonic() + SECONDS
    number = 0
    while time.monotonic() < ended:
        with victim.http2() as client, contextlib.suppress(OSError):
            batch = b""
            for _ in range(200):
                number += 1
                batch += client.headers(method=f"M{number}")
            client.socket.sendall(batch)
            client.listen(0.05)


def long_methods(victim: Victim) -> None:
    """Methods of 400 KB."""
    with victim.http2() as client:
        for number in range(100):
            if client.over:
                break
            method = b"\x02" + _length(400_000, 0) + b"%06d" % number + b"M" * 399_994
            client.socket.sendall(
                client.block(method + hpack.Encoder().encode([(":path", "/"), (":scheme", "a")]))
            )
            client.listen(0.01)


def large_headers_that_are_parsed(victim: Victim) -> None:
    """HTTP/1.1: headers that the application parses."""
    ended = time.monotonic() + SECONDS
    names = (b"Accept", b"Accept-Encoding", b"Authorization", b"Sec-WebSocket-Protocol", b"Content-Type")
    for name in names:
        for piece in (b"a,", b"a/b;q=0.1,", b"a b ", b"base64url.bearer.authorization.k8s.io.a,"):
            if time.monotonic() > ended:
                return
            with victim.connect() as client, contextlib.suppress(OSError):
                value = piece * (900_000 // len(piece))
                client.sendall(b"GET /api/v1/pods HTTP/1.1\r\n" + HOST + name + b": " + value + b"\r\n\r\n")
                client.recv(65_536)


def long_queries(victim: Victim) -> None:
    """HTTP/1.1: queries of 1 MB, with very many parameters, very many escapes, or both."""
    ended = time.monotonic() + SECONDS
    queries = [piece * (1_000_000 // len(piece)) for piece in (b"%41&", b"+&", b"a=%41&", b"%41", b"a%ff")]
    queries.append(b"&".join(b"exclude=%%41%d" % number + b"%22" * 28 for number in range(9990)))
    for query in queries:
        if time.monotonic() > ended:
            return
        with victim.connect() as client, contextlib.suppress(OSError):
            client.sendall(b"GET /livez?" + query + b" HTTP/1.1\r\n" + HOST + b"\r\n")
            client.recv(65_536)


def texts_that_rejections_repeat(victim: Victim) -> None:
    """Long paths and names that become several times longer in the rejection, which is not read."""
    smile = "\U0001f600".encode()
    for length in (8_000, 60_000, 1_000_000):
        for path, group in (
            (b"/" + b"&" * length + smile, b""),
            (b"/api/v1/namespaces/" + b'"' * length + smile, b""),
            (b"/api/v1/watch?" + b"&" * length + smile, b""),
            (b"/api", b"\x01" * length + smile),
        ):
            fields = [(b":method", b"POST"), (b":path", path), (b":scheme", b"https")]
            fields += [(b"impersonate-group", group)] if group else []
            encoded = b"".join(b"\0" + _string(name) + _string(value) for name, value in fields)
            with victim.http2() as client, contextlib.suppress(OSError):
                client.socket.sendall(settings({Setting.INITIAL_WINDOW_SIZE: 0}))
                for _ in range(min(250, 4_000_000 // length)):
                    client.socket.sendall(client.block(encoded, end=False))
                for stream in range(1, client.stream + 1, 2):
                    client.socket.sendall(frame(Kind.DATA, Flag.END_STREAM, stream))
                client.listen(0.5)


def _string(text: bytes) -> bytes:
    """String in HPACK's encoding, without Huffman code."""
    return (bytes([len(text)]) if len(text) < 0x7F else _length(len(text), 0)) + text


def flood_of_windows(victim: Victim) -> None:
    """Window updates of one byte."""
    with victim.http2() as client:
        client.socket.sendall(client.headers(method="POST", end=False))
        update = frame(Kind.WINDOW_UPDATE, 0, 0, (1).to_bytes(4, "big"))
        update += frame(Kind.WINDOW_UPDATE, 0, 1, (1).to_bytes(4, "big"))
        while not client.over:
            client.socket.sendall(update * 5000)
            client.listen()


def settings_of_many_streams(victim: Victim) -> None:
    """SETTINGS frames that change the window of 250 streams 2,700 times each."""
    with victim.http2() as client:
        client.socket.sendall(b"".join(client.headers(method="POST", end=False) for _ in range(250)))
        change = b"\0\4\0\0\0\5" + b"\0\4\0\0\0\6"
        while not client.over:
            client.socket.sendall(frame(Kind.SETTINGS, 0, 0, change * 1350) * 5)
            client.listen()


def _length(number: int, huffman: int = 0x80) -> bytes:
    """Length of a string in HPACK's encoding."""
    out = bytearray([huffman | 0x7F])
    number -= 0x7F
    while number >= 0x80:
        out.append(number & 0x7F | 0x80)
        number >>= 7
    out.append(number)
    return bytes(out)


ATTACKS: tuple[Callable[[Victim], None], ...] = (
    headers_out_of_a_table,
    headers_out_of_a_code,
    headers_without_bodies,
    bodies_without_end,
    bodies_in_tiny_frames,
    bodies_in_tiny_chunks,
    trailer_without_end,
    header_without_end,
    repeated_headers,
    pipelined_requests,
    made_up_methods,
    long_methods,
    large_headers_that_are_parsed,
    flood_of_windows,
    settings_of_many_streams,
    long_queries,
    texts_that_rejections_repeat,
)
