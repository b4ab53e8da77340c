"""SPDY sessions, without a network."""

from __future__ import annotations

import hashlib
import struct
import zlib

import pytest

from kubist.base.http import spdy
from kubist.base.http.spdy import CONTROL_LIMIT, DICTIONARY, Session, SpdyError, SpdyStream
from tests.spdyclient import GOAWAY, HEADERS, PING, RST_STREAM, SYN_STREAM, SpdyClient


class Pipe:
    """Joins a client and a session. The session's bytes wait until the client reads."""

    def __init__(self) -> None:
        self.opened: list[SpdyStream] = []
        self.accepts = True
        self.session = Session(self._sent, self._opened)
        self.received: dict[int, bytes] = {}
        self.ended: list[int] = []
        self._waiting = b""

    def _sent(self, data: bytes) -> None:
        self._waiting += data

    def _opened(self, stream: SpdyStream) -> bool:
        self.opened.append(stream)

        def took(data: bytes) -> None:
            self.received[stream.number] = self.received.get(stream.number, b"") + data

        stream.on_data, stream.on_end = took, lambda: self.ended.append(stream.number)
        return self.accepts

    def sendall(self, data: bytes) -> None:
        self.session.feed(data)

    def recv(self, _: int) -> bytes:
        data, self._waiting = self._waiting, b""
        return data


@pytest.fixture
def pipe() -> Pipe:
    return Pipe()


@pytest.fixture
def client(pipe: Pipe) -> SpdyClient:
    return SpdyClient(pipe)


def read(client: SpdyClient) -> None:
    while client.read_frame():
        pass


def test_dictionary_is_that_of_the_protocol() -> None:
    digest = "51d27341373f923f3cd88e1eb7162aeaa3723d7585ff2399201dc06498407f02"
    assert (len(DICTIONARY), hashlib.sha256(DICTIONARY).hexdigest()) == (1423, digest)


def test_stream_is_opened_with_headers_and_carries_data_both_ways(pipe: Pipe, client: SpdyClient) -> None:
    number = client.open(streamType="stdin", Port="80")
    assert pipe.opened[0].headers == {"streamtype": "stdin", "port": "80"}
    client.send(number, b"up")
    client.send(number, b"load", fin=True)
    assert (pipe.received[number], pipe.ended) == (b"upload", [number])
    pipe.opened[0].write(b"x" * 100_000)
    pipe.opened[0].close()
    read(client)
    assert client.replied == {number} and client.finished == {number}
    assert client.data[number] == b"x" * 100_000
    assert not pipe.session._streams


def test_frames_may_arrive_byte_by_byte(pipe: Pipe) -> None:
    sent = bytearray()

    class Recorder(Pipe):
        def sendall(self, data: bytes) -> None:
            sent.extend(data)

    recorder = SpdyClient(Recorder())
    number = recorder.open(streamType="data")
    recorder.send(number, b"abc", fin=True)
    for byte in sent:
        pipe.session.feed(bytes([byte]))
    assert (pipe.received[number], pipe.ended) == (b"abc", [number])


def test_refused_stream_is_reset(pipe: Pipe, client: SpdyClient) -> None:
    pipe.accepts = False
    number = client.open()
    read(client)
    assert client.reset == {number: spdy.Reset.CANCEL} and not pipe.session._streams


@pytest.mark.parametrize("number", [2, 1])
def test_stream_numbers_are_odd_and_increase(pipe: Pipe, client: SpdyClient, number: int) -> None:
    client.open()
    client.open_as({}, number=number)
    read(client)
    assert client.reset == {number: spdy.Reset.PROTOCOL_ERROR} and len(pipe.opened) == 1


def test_number_of_open_streams_is_limited(
    pipe: Pipe, client: SpdyClient, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(spdy, "STREAM_LIMIT", 2)
    first, _, third = client.open(), client.open(), client.open()
    read(client)
    assert client.reset == {third: spdy.Reset.REFUSED_STREAM}
    client.control(RST_STREAM, struct.pack(">II", first, 5))
    client.open()
    assert len(pipe.opened) == 3 and pipe.ended == [first]


def test_ping_of_the_client_is_echoed(pipe: Pipe, client: SpdyClient) -> None:
    client.control(PING, struct.pack(">I", 7))
    client.control(PING, struct.pack(">I", 8))
    read(client)
    assert client.pings == [7]


def test_headers_frame_keeps_the_compression_in_step(pipe: Pipe, client: SpdyClient) -> None:
    number = client.open(a="1")
    client.control(HEADERS, struct.pack(">I", number) + client.block({"b": "2"}))
    client.open(c="3")
    assert pipe.opened[1].headers == {"c": "3"}


def test_goaway_ends_new_streams(pipe: Pipe, client: SpdyClient) -> None:
    seen: list[bool] = []
    pipe.session.on_goaway = lambda: seen.append(True)
    client.control(GOAWAY, struct.pack(">II", 0, 0))
    client.open()
    assert seen == [True] and not pipe.opened


def test_close_resets_streams_and_sends_goaway(pipe: Pipe, client: SpdyClient) -> None:
    number = client.open()
    pipe.session.close()
    read(client)
    assert client.gone_away and client.reset == {number: spdy.Reset.CANCEL} and pipe.ended == [number]


def test_data_after_the_end_is_ignored(pipe: Pipe, client: SpdyClient) -> None:
    number = client.open_as({}, fin=True)
    client.send(number, b"late")
    client.send(99, b"unknown")
    assert pipe.received == {}


@pytest.mark.parametrize(
    "frame",
    [
        struct.pack(">HHI", 0x8002, SYN_STREAM, 0),
        struct.pack(">HHI", 0x8003, SYN_STREAM, CONTROL_LIMIT + 1),
        struct.pack(">HHI", 0x8003, SYN_STREAM, 0),
        struct.pack(">HHI", 0x8003, SYN_STREAM, 14) + b"\0\0\0\1\0\0\0\0\0\0" + b"junk",
        struct.pack(">HHI", 0x8003, PING, 0),
    ],
)
def test_violation_of_the_protocol_is_an_error(pipe: Pipe, frame: bytes) -> None:
    with pytest.raises(SpdyError):
        pipe.session.feed(frame)


@pytest.mark.parametrize("text", [b"\0\0\0\5", b"\0\0\0\1\0\0\0\xff", b"\0\0\0\1\0\0\0\1\xff\0\0\0\0", b""])
def test_malformed_header_block_is_an_error(pipe: Pipe, client: SpdyClient, text: bytes) -> None:
    deflate = zlib.compressobj(zdict=DICTIONARY)
    block = deflate.compress(text) + deflate.flush(zlib.Z_SYNC_FLUSH)
    with pytest.raises(SpdyError):
        client.control(SYN_STREAM, struct.pack(">IIH", 1, 0, 0) + block)


def test_decompressed_headers_are_limited(pipe: Pipe, client: SpdyClient) -> None:
    with pytest.raises(SpdyError, match="more than 8192 bytes"):
        client.open(bomb="0" * 10_000_000)


def test_number_of_headers_is_limited(pipe: Pipe, client: SpdyClient) -> None:
    with pytest.raises(SpdyError, match="more than 64 headers"):
        client.open(**{f"h{number}": "" for number in range(65)})
