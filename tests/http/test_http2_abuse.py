"""HTTP/2 clients that violate or abuse the protocol: they get the right error code, and others are not affected."""

from __future__ import annotations

import random
import socket
import time
from collections.abc import Iterator

import hpack
import pytest

from kubist.base.http import Limits
from kubist.base.http.http2.frames import PREFACE, Error, Flag, Kind, frame, reset, settings, window_update
from kubist.base.http.http2.hpack import Decoder
from kubist.base.http.messages import Answer, Request
from tests.http.h2client import H2Client, RawFrame, frames_in
from tests.http.serving import SHORT, Pki, Serving, Site
from tests.waiting import wait_for

REQUEST = [(":method", "GET"), (":path", "/hello"), (":scheme", "https"), (":authority", "a")]
OPEN = PREFACE + settings({})
END = Flag.END_HEADERS | Flag.END_STREAM


class SlowRefusal(Site):
    async def __call__(self, request: Request) -> Answer:
        return await self.do_slow(request)


def block(*headers: tuple[str, str]) -> bytes:
    return hpack.Encoder().encode([hpack.NeverIndexedHeaderTuple(*h) for h in headers])


HEAD = block(*REQUEST)
GET = frame(Kind.HEADERS, END, 1, HEAD)
POST = frame(Kind.HEADERS, Flag.END_HEADERS, 1, block((":method", "POST"), *REQUEST[1:]))


def talk(serving: Serving, data: bytes, *, until: RawFrame | None = None) -> list[RawFrame]:
    """Sends raw frames. Returns the frames received until the server closes or the awaited frame comes."""
    assert serving.pki is not None
    with serving.socket(serving.pki.client(alpn=("h2",))) as client:
        client.settimeout(10)
        received = b""
        try:
            client.sendall(data)
            while until not in frames_in(received) and (piece := client.recv(65536)):
                received += piece
        except (TimeoutError, OSError):
            pass
    return frames_in(received)


def goaway_code(frames: list[RawFrame]) -> int | None:
    return next((int.from_bytes(p[4:8], "big") for kind, _, p in frames if kind == Kind.GOAWAY), None)


@pytest.fixture(scope="module")
def shared(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Serving]:
    limits = Limits(
        header_bytes=16_384, header_count=50, linger_timeout=0.2, idle_timeout=5, header_timeout=5
    )
    with Serving(Site(), Pki.make(tmp_path_factory.mktemp("pki")), limits=limits) as running:
        yield running


FATAL = {
    "no preface": (b"GET / HTTP/1.1\r\nHost: a\r\n\r\n" + bytes(20), Error.PROTOCOL_ERROR),
    "no settings": (PREFACE + frame(Kind.PING, 0, 0, bytes(8)), Error.PROTOCOL_ERROR),
    "frame too large": (OPEN + frame(Kind.DATA, 0, 1, bytes(16_385)), Error.FRAME_SIZE_ERROR),
    "even stream": (OPEN + frame(Kind.HEADERS, END, 2, HEAD), Error.PROTOCOL_ERROR),
    "headers on stream 0": (OPEN + frame(Kind.HEADERS, END, 0, HEAD), Error.PROTOCOL_ERROR),
    "data on stream 0": (OPEN + frame(Kind.DATA, 0, 0, b"x"), Error.PROTOCOL_ERROR),
    "data on an idle stream": (OPEN + frame(Kind.DATA, 0, 1, b"x"), Error.PROTOCOL_ERROR),
    "window of an idle stream": (OPEN + window_update(3, 1), Error.PROTOCOL_ERROR),
    "reset of an idle stream": (OPEN + reset(5, 0), Error.PROTOCOL_ERROR),
    "reset of the wrong size": (OPEN + GET + frame(Kind.RST_STREAM, 0, 1, b"x"), Error.FRAME_SIZE_ERROR),
    "empty window update": (OPEN + window_update(0, 0), Error.PROTOCOL_ERROR),
    "window overflow": (OPEN + window_update(0, 2**31 - 1), Error.FLOW_CONTROL_ERROR),
    "window update of the wrong size": (OPEN + frame(Kind.WINDOW_UPDATE, 0, 0, b"x"), Error.FRAME_SIZE_ERROR),
    "settings on a stream": (OPEN + frame(Kind.SETTINGS, 0, 1), Error.PROTOCOL_ERROR),
    "settings of the wrong size": (OPEN + frame(Kind.SETTINGS, 0, 0, b"x"), Error.FRAME_SIZE_ERROR),
    "acknowledged settings": (OPEN + frame(Kind.SETTINGS, 1, 0, bytes(6)), Error.FRAME_SIZE_ERROR),
    "push neither on nor off": (OPEN + settings({2: 2}), Error.PROTOCOL_ERROR),
    "initial window too large": (OPEN + settings({4: 2**31}), Error.FLOW_CONTROL_ERROR),
    "frame size too small": (OPEN + settings({5: 100}), Error.PROTOCOL_ERROR),
    "ping on a stream": (OPEN + frame(Kind.PING, 0, 1, bytes(8)), Error.PROTOCOL_ERROR),
    "ping of the wrong size": (OPEN + frame(Kind.PING, 0, 0, b"x"), Error.FRAME_SIZE_ERROR),
    "goaway on a stream": (OPEN + frame(Kind.GOAWAY, 0, 1, bytes(8)), Error.PROTOCOL_ERROR),
    "priority of nothing": (OPEN + frame(Kind.PRIORITY, 0, 0, bytes(5)), Error.PROTOCOL_ERROR),
    "push from a client": (OPEN + frame(Kind.PUSH_PROMISE, 4, 1, bytes(4)), Error.PROTOCOL_ERROR),
    "continuation of nothing": (OPEN + frame(Kind.CONTINUATION, 4, 1, b""), Error.PROTOCOL_ERROR),
    "interrupted headers": (
        OPEN + frame(Kind.HEADERS, 0, 1, HEAD) + frame(Kind.PING, 0, 0, bytes(8)), Error.PROTOCOL_ERROR
    ),
    "continued on another stream": (
        OPEN + frame(Kind.HEADERS, 0, 1, HEAD) + frame(Kind.CONTINUATION, 4, 3, b""), Error.PROTOCOL_ERROR
    ),
    "headers on a closed stream": (
        OPEN + frame(Kind.HEADERS, END, 3, HEAD) + frame(Kind.HEADERS, END, 1, HEAD), Error.STREAM_CLOSED
    ),
    "stream that depends on itself": (
        OPEN + frame(Kind.HEADERS, END | Flag.PRIORITY, 1, b"\0\0\0\1\0" + HEAD), Error.PROTOCOL_ERROR
    ),
    "too much padding": (OPEN + frame(Kind.HEADERS, 0xD, 1, b"\xff" + HEAD), Error.PROTOCOL_ERROR),
    "index beyond the table": (OPEN + frame(Kind.HEADERS, END, 1, b"\xff\x80\x01"), Error.COMPRESSION_ERROR),
    "index 0": (OPEN + frame(Kind.HEADERS, END, 1, b"\x80"), Error.COMPRESSION_ERROR),
    "endless number": (OPEN + frame(Kind.HEADERS, END, 1, b"\xff" * 20), Error.COMPRESSION_ERROR),
    "string cut short": (OPEN + frame(Kind.HEADERS, END, 1, b"\x00\x05abc"), Error.COMPRESSION_ERROR),
    "bad Huffman code": (OPEN + frame(Kind.HEADERS, END, 1, b"\x00\x82\xff\xff"), Error.COMPRESSION_ERROR),
    "table too large": (OPEN + frame(Kind.HEADERS, END, 1, b"\x3f\xff\x7f" + HEAD), Error.COMPRESSION_ERROR),
    "header list too large": (
        OPEN + frame(Kind.HEADERS, END, 1, block(*REQUEST, *((f"x-{n}", "v" * 900) for n in range(19)))),
        Error.ENHANCE_YOUR_CALM,
    ),
    "too many headers": (
        OPEN + frame(Kind.HEADERS, END, 1, block(*REQUEST, *((f"x-{n}", "v") for n in range(60)))),
        Error.ENHANCE_YOUR_CALM,
    ),
    "endless continuation": (
        OPEN + frame(Kind.HEADERS, 0, 1, HEAD) + frame(Kind.CONTINUATION, 0, 1, b"") * 300,
        Error.ENHANCE_YOUR_CALM,
    ),
    "flood of pings": (OPEN + frame(Kind.PING, 0, 0, bytes(8)) * 1100, Error.ENHANCE_YOUR_CALM),
    "flood of settings": (OPEN + settings({}) * 1100, Error.ENHANCE_YOUR_CALM),
    "flood of empty data": (OPEN + POST + frame(Kind.DATA, 0, 1) * 1100, Error.ENHANCE_YOUR_CALM),
    "repeated setting": (OPEN + frame(Kind.SETTINGS, 0, 0, bytes((0, 4, 0, 0, 0, 5)) * 2), Error.PROTOCOL_ERROR),
    "too many settings": (OPEN + settings(dict.fromkeys(range(100, 201), 1)), Error.PROTOCOL_ERROR),
    "resets by the server": (
        OPEN
        + b"".join(
            frame(Kind.HEADERS, Flag.END_HEADERS, n, POST[9:]) + window_update(n, 0) for n in range(1, 2400, 2)
        ),
        Error.ENHANCE_YOUR_CALM,
    ),
    "flood of malformed requests": (
        OPEN + b"".join(frame(Kind.HEADERS, END, n, block(*REQUEST[1:])) for n in range(1, 2400, 2)),
        Error.ENHANCE_YOUR_CALM,
    ),
    "rapid reset": (
        OPEN + b"".join(frame(Kind.HEADERS, END, n, HEAD) + reset(n, 8) for n in range(1, 2400, 2)),
        Error.ENHANCE_YOUR_CALM,
    ),
}  # fmt: skip


@pytest.mark.parametrize("case", FATAL)
def test_protocol_error_ends_the_connection_with_its_code(shared: Serving, case: str) -> None:
    data, code = FATAL[case]
    assert goaway_code(talk(shared, data)) == code


MALFORMED = {
    "long method": [(":method", "M" * 65), *REQUEST[1:]],
    "length in other digits": [*REQUEST, ("content-length", "\u0663")],
    "endless length": [*REQUEST, ("content-length", "1" * 5000)],
    "second te": [*REQUEST, ("te", "trailers"), ("te", "gzip")],
    "no method": REQUEST[1:],
    "no path": [REQUEST[0], *REQUEST[2:]],
    "no scheme": [*REQUEST[:2], REQUEST[3]],
    "empty path": [REQUEST[0], (":path", ""), *REQUEST[2:]],
    "relative path": [REQUEST[0], (":path", "hello"), *REQUEST[2:]],
    "two methods": [REQUEST[0], *REQUEST],
    "unknown pseudo-header": [*REQUEST, (":status", "200")],
    "pseudo-header after others": [*REQUEST[:3], ("x", "y"), REQUEST[3]],
    "capitals": [*REQUEST, ("X-Capital", "y")],
    "connection header": [*REQUEST, ("connection", "close")],
    "transfer encoding": [*REQUEST, ("transfer-encoding", "chunked")],
    "te": [*REQUEST, ("te", "gzip")],
    "space in name": [*REQUEST, ("x y", "z")],
    "empty name": [*REQUEST, ("", "z")],
    "newline in value": [*REQUEST, ("x", "a\r\nb")],
    "NUL in value": [*REQUEST, ("x", "a\0b")],
    "newline in path": [REQUEST[0], (":path", "/a\nb"), *REQUEST[2:]],
    "bad length": [*REQUEST, ("content-length", "-1")],
    "two lengths": [*REQUEST, ("content-length", "0"), ("content-length", "0")],
    "length without body": [*REQUEST, ("content-length", "5")],
}


@pytest.mark.parametrize("case", MALFORMED)
def test_malformed_request_resets_its_stream_only(shared: Serving, case: str) -> None:
    data = OPEN + frame(Kind.HEADERS, END, 1, block(*MALFORMED[case])) + frame(Kind.HEADERS, END, 3, HEAD)
    frames = talk(shared, data, until=(Kind.DATA, 3, b'{"hello":"world"}'))
    assert (Kind.RST_STREAM, 1, Error.PROTOCOL_ERROR.to_bytes(4, "big")) in frames
    assert (Kind.DATA, 3, b'{"hello":"world"}') in frames


@pytest.mark.parametrize(
    ("data", "code"),
    [
        (POST + frame(Kind.DATA, 1, 1, b"a") + frame(Kind.DATA, 1, 1, b"b"), Error.STREAM_CLOSED),
        (
            frame(Kind.HEADERS, 4, 1, block((":method", "POST"), *REQUEST[1:], ("content-length", "3")))
            + frame(Kind.DATA, 1, 1, b"ab"),
            Error.PROTOCOL_ERROR,
        ),
        (POST + frame(Kind.HEADERS, 4, 1, block(("x", "y"))), Error.PROTOCOL_ERROR),
        (POST + frame(Kind.HEADERS, 5, 1, block((":path", "/"))), Error.PROTOCOL_ERROR),
        (POST + window_update(1, 0), Error.PROTOCOL_ERROR),
        (POST + window_update(1, 2**31 - 1), Error.FLOW_CONTROL_ERROR),
        (POST + frame(Kind.PRIORITY, 0, 1, b"x"), Error.FRAME_SIZE_ERROR),
    ],
    ids=[
        "data after the end", "short body", "trailers without end", "pseudo-header in trailers",
        "empty window update", "window overflow", "bad priority",
    ],
)  # fmt: skip
def test_stream_error_resets_the_stream(shared: Serving, data: bytes, code: int) -> None:
    expected = (Kind.RST_STREAM, 1, code.to_bytes(4, "big"))
    assert expected in talk(shared, OPEN + data, until=expected)


@pytest.mark.parametrize("flags", [END, Flag.END_HEADERS], ids=["without body", "with body"])
def test_too_long_path_gets_414(shared: Serving, flags: int) -> None:
    head = block(REQUEST[0], (":path", "/" + "p" * 8192), *REQUEST[2:])
    data = OPEN + frame(Kind.HEADERS, flags, 1, head) + frame(Kind.HEADERS, END, 3, HEAD)
    frames = talk(shared, data, until=(Kind.DATA, 3, b'{"hello":"world"}'))
    first = next(payload for kind, stream, payload in frames if (kind, stream) == (Kind.HEADERS, 1))
    assert Decoder(4096, 10).decode(first)[0][0] == (b":status", b"414")
    assert (Kind.DATA, 3, b'{"hello":"world"}') in frames
    assert ((Kind.RST_STREAM, 1, bytes(4)) in frames) == (flags == Flag.END_HEADERS)


def test_unknown_and_harmless_frames_are_ignored(shared: Serving) -> None:
    data = OPEN + frame(0x77, 0xFF, 9, b"unknown") + frame(Kind.PRIORITY, 0, 7, bytes(5))
    data += frame(Kind.HEADERS, END | Flag.PADDED | Flag.PRIORITY, 1, b"\x03" + bytes(5) + HEAD + bytes(3))
    data += frame(Kind.HEADERS, 1, 3, HEAD[:7]) + frame(Kind.CONTINUATION, 4, 3, HEAD[7:])
    frames = talk(shared, data, until=(Kind.DATA, 3, b'{"hello":"world"}'))
    assert {stream for kind, stream, _ in frames if kind == Kind.DATA} == {1, 3}


def test_data_beyond_the_window_is_an_error(site: Site, pki: Pki) -> None:
    head = block((":method", "POST"), (":path", "/slow"), *REQUEST[2:], ("content-length", "9999999"))
    data = OPEN + frame(Kind.HEADERS, Flag.END_HEADERS, 1, head) + frame(Kind.DATA, 0, 1, bytes(16_384)) * 17
    expected = (Kind.RST_STREAM, 1, Error.FLOW_CONTROL_ERROR.to_bytes(4, "big"))
    with Serving(SlowRefusal(), pki) as serving:
        assert expected in talk(serving, data, until=expected)


def test_slow_http2_clients_are_disconnected(site: Site, pki: Pki) -> None:
    starts = {
        "preface": PREFACE[:10],
        "headers": OPEN + frame(Kind.HEADERS, 0, 1, HEAD),
        "idle": OPEN + GET,
        "half a frame": OPEN + GET[:12],
    }
    with Serving(site, pki, limits=SHORT) as serving:
        for name, data in starts.items():
            with serving.socket(pki.client(alpn=("h2",))) as client:
                client.sendall(data)
                began = time.monotonic()
                try:
                    while client.recv(65536):
                        pass
                except ConnectionError:
                    pass
                assert time.monotonic() - began < 9, name


def test_slow_body_resets_its_stream(site: Site, pki: Pki) -> None:
    with Serving(site, pki, limits=SHORT) as serving, H2Client(serving) as client:
        watch = client.send("GET", "/watch")
        stream = client.h2.get_next_available_stream_id()
        client.h2.send_headers(stream, [(":method", "POST"), *REQUEST[1:]])
        client.flush()
        assert client.finish(stream).reset == Error.CANCEL
        assert client.replies[watch].status == 200 and client.replies[watch].reset is None


def test_unread_response_is_reset(site: Site, pki: Pki) -> None:
    with (
        Serving(site, pki, limits=SHORT) as serving,
        H2Client(serving, window=10, acknowledge=False) as client,
    ):
        watch = client.send("GET", "/watch")
        assert client.finish(client.send("GET", "/solid?100000")).reset == Error.CANCEL
        assert client.replies[watch].reset is None


def test_client_that_never_reads_is_cut(site: Site, pki: Pki) -> None:
    with Serving(site, pki, limits=SHORT) as serving, serving.socket(pki.client(alpn=("h2",))) as client:
        large = frame(Kind.HEADERS, END, 1, block(REQUEST[0], (":path", "/solid?90000000"), *REQUEST[2:]))
        client.sendall(PREFACE + settings({4: 2**31 - 1}) + window_update(0, 2**30) + large)
        wait_for(lambda: site.requests and not serving.server.connections)


def test_random_frames_do_not_break_the_server(shared: Serving, caplog: pytest.LogCaptureFixture) -> None:
    chance = random.Random(7)
    assert shared.pki is not None
    for _ in range(150):
        data = bytearray(OPEN)
        for _ in range(chance.randrange(1, 12)):
            kind, flags = chance.randrange(0, 11), chance.choice([0, 1, 4, 5, 8, 0x20, chance.randrange(256)])
            payload = chance.choice([HEAD, chance.randbytes(chance.randrange(40)), bytes(8), b""])
            data += frame(kind, flags, chance.choice([0, 1, 3, 5, 2, 7]), payload)
        if chance.random() < 0.3:
            data[chance.randrange(len(PREFACE), len(data))] ^= 1 << chance.randrange(8)
        with shared.socket(shared.pki.client(alpn=("h2",))) as client:
            try:
                client.sendall(data)
                client.shutdown(socket.SHUT_WR)
            except OSError:
                pass
    with H2Client(shared) as client2:
        assert client2.ask("GET", "/hello").status == 200
    assert not [record for record in caplog.records if record.levelname == "ERROR"]
