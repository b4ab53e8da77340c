"""Limits of one connection on memory and on turns of the event loop."""

from __future__ import annotations

import asyncio
from collections import Counter

import hpack
import pytest

from kubist.base.http import Limits
from kubist.base.http.bodies import Pieces, add, joined
from kubist.base.http.http2.fields import request_fields
from kubist.base.http.http2.frames import Error, Flag, Kind, frame
from kubist.base.http.http2.hpack import Decoder
from kubist.base.http.messages import Answer, Request, Response
from tests.http.h2client import H2Client, frames_in
from tests.http.serving import JSON, Pki, Serving, Site
from tests.http.test_http2_abuse import END, OPEN, REQUEST, block, goaway_code, talk

POST = [(":method", "POST"), *REQUEST[1:]]


def test_small_pieces_of_a_body_are_joined() -> None:
    body: Pieces = []
    for number in range(10_000):
        add(body, b"%04d" % number)
    add(body, b"x" * 5000)
    add(body, b"y")
    assert len(body) == 3
    assert joined(body) == b"".join(b"%04d" % number for number in range(10_000)) + b"x" * 5000 + b"y"
    assert joined([]) == b"" and type(joined([bytearray(b"a")])) is bytes


def test_header_list_size_is_counted_by_the_rfc() -> None:
    headers = [(b"x-name", b"value"), (b"x-name", b"value"), (b":method", b"GET")]
    found, size = Decoder(1000, 10).decode(hpack.Encoder().encode(headers))
    assert found == headers and size == sum(len(name) + len(value) + 32 for name, value in headers)


def test_repeated_headers_are_joined_in_linear_time() -> None:
    value = b"v" * 4000
    received = [(name.encode(), text.encode()) for name, text in REQUEST] + [(b"x-many", value)] * 250
    fields = request_fields(received)
    assert fields.headers["x-many"] == ", ".join([value.decode()] * 250)
    assert fields.repeated is not None and len(fields.repeated["x-many"]) == 250
    cookies = request_fields(
        [(n.encode(), v.encode()) for n, v in (*REQUEST, ("cookie", "a"), ("cookie", "b"))]
    )
    assert cookies.headers["cookie"] == "a; b"


class Turns(Site):
    """Records the turn of the event loop in which each request came."""

    def __init__(self) -> None:
        super().__init__()
        self.turn = 0
        self.begun: Counter[int] = Counter()
        self._counting = False

    def _next(self) -> None:
        self.turn += 1
        asyncio.get_running_loop().call_soon(self._next)

    async def __call__(self, request: Request) -> Answer:
        if not self._counting:
            self._counting = True
            self._next()
        self.begun[self.turn] += 1
        return Response(200, JSON, b"{}")


def test_batch_of_requests_is_spread_over_turns(pki: Pki) -> None:
    site = Turns()
    head = block(*REQUEST)
    batch = b"".join(frame(Kind.HEADERS, END, number, head) for number in range(1, 400, 2))
    with Serving(site, pki) as serving:
        frames = talk(serving, OPEN + batch, until=(Kind.DATA, 399, b"{}"))
        assert len({stream for kind, stream, _ in frames if kind == Kind.HEADERS}) == 200
    assert sum(site.begun.values()) == 200
    assert max(site.begun.values()) <= 9


def test_large_headers_are_spread_over_turns(pki: Pki) -> None:
    """One table entry of 4 KB that each request references 100 times: 400 KB of headers from a few bytes."""
    site = Turns()
    encoder = hpack.Encoder()
    first = encoder.encode([*REQUEST, ("x-large", "v" * 3900)])
    again = encoder.encode([*REQUEST, *[("x-large", "v" * 3900)] * 100])
    assert len(again) < 200
    batch = frame(Kind.HEADERS, END, 1, first)
    batch += b"".join(frame(Kind.HEADERS, END, number, again) for number in range(3, 60, 2))
    with Serving(site, pki) as serving:
        talk(serving, OPEN + batch, until=(Kind.DATA, 59, b"{}"))
    assert sum(site.begun.values()) == 30
    assert max(count for turn, count in site.begun.items() if turn > 1) <= 2


def test_long_header_blocks_are_decoded_in_a_thread_in_order(pki: Pki) -> None:
    encoder = hpack.Encoder()
    blocks = [
        encoder.encode([*REQUEST[:1], (":path", f"/{number}"), *REQUEST[2:], ("x-long", "long" * size)])
        for number, size in enumerate((1, 9_000, 2, 8_000, 3))
    ]
    data = OPEN
    for number, encoded in enumerate(blocks):
        pieces = [encoded[at : at + 16_000] for at in range(0, len(encoded), 16_000)]
        data += frame(Kind.HEADERS, Flag.END_STREAM | (0 if pieces[1:] else 4), 2 * number + 1, pieces[0])
        for at, piece in enumerate(pieces[1:], 2):
            data += frame(Kind.CONTINUATION, 4 if at == len(pieces) else 0, 2 * number + 1, piece)
    site = Site()
    with Serving(site, pki) as serving:
        talk(serving, data, until=(Kind.DATA, 9, b"{}"))
    assert [request.path for request in site.requests] == [f"/{number}" for number in range(5)]
    assert [len(request.headers["x-long"]) for request in site.requests] == [4, 36_000, 8, 32_000, 12]


def test_invalid_long_header_block_ends_the_connection(pki: Pki) -> None:
    broken = block(*REQUEST) + b"\x00\x01x" + b"\x7f\xe1\xbb\x01" + b"v" * 30_000
    data = OPEN + frame(Kind.HEADERS, Flag.END_STREAM, 1, broken[:16_000])
    data += frame(Kind.CONTINUATION, 4, 1, broken[16_000:])
    with Serving(Site(), pki, limits=Limits(linger_timeout=0.2)) as serving:
        assert goaway_code(talk(serving, data)) in (Error.COMPRESSION_ERROR, Error.ENHANCE_YOUR_CALM)


def test_headers_of_unanswered_requests_are_bounded(pki: Pki) -> None:
    limits = Limits(connection_header_bytes=10_000)
    large = [("x-large", "v" * 2_000)]
    with Serving(Site(), pki, limits=limits) as serving, H2Client(serving) as client:
        streams = []
        for _ in range(6):
            stream = client.h2.get_next_available_stream_id()
            client.h2.send_headers(stream, [*POST[:1], (":path", "/echo"), *POST[2:], *large])
            client.flush()
            streams.append(stream)
        client.wait(lambda: client.replies[streams[5]].reset is not None)
        assert [client.replies[stream].reset for stream in streams] == [
            *(None, None, None, None),
            *(Error.REFUSED_STREAM, Error.REFUSED_STREAM),
        ]
        for stream in streams[:2]:
            client.upload(stream, b"done")
            assert client.finish(stream).status == 201
        for _ in range(10):
            assert client.ask("GET", "/hello", extra=large).status == 200


class Open:
    """Uploads on one connection that a test sends step by step."""

    def __init__(self, client: H2Client, count: int, size: int, stop: int, *, declared: bool) -> None:
        self.client = client
        self.size, self.stop = size, stop
        self.sent: dict[int, int] = {}
        length = [("content-length", str(size))] if declared else []
        for _ in range(count):
            stream = client.h2.get_next_available_stream_id()
            client.h2.send_headers(stream, [*POST[:1], (":path", "/echo"), *POST[2:], *length])
            self.sent[stream] = 0
        client.flush()

    def push(self) -> bool:
        """Sends what the windows allow, one frame per stream in turns. False: no window is open."""
        client, moved = self.client, False
        for stream, sent in self.sent.items():
            room = min(client.h2.local_flow_control_window(stream), 16_384, self.stop - sent)
            if room > 0:
                client.h2.send_data(stream, b"x" * room, end_stream=sent + room == self.size)
                client.flush()
                self.sent[stream] += room
                moved = True
        return moved


@pytest.mark.parametrize("declared", [True, False], ids=["declared", "undeclared"])
def test_large_bodies_share_a_budget_and_all_arrive(pki: Pki, declared: bool) -> None:
    """No order of sending can make uploads wait for each other forever."""
    site, size = Site(), 300_000
    limits = Limits(body_bytes=300_000, connection_body_bytes=700_000)
    with Serving(site, pki, limits=limits) as serving, H2Client(serving) as client:
        uploads = Open(client, 20, size, size, declared=declared)
        most = 0
        while not all(client.replies[stream].ended for stream in uploads.sent):
            if not uploads.push():
                client.receive()
            unanswered = [s for s in uploads.sent if not client.replies[s].status]
            most = max(most, sum(uploads.sent[stream] for stream in unanswered))
        assert [client.replies[stream].status for stream in uploads.sent] == [201] * 20
        assert most <= 700_000 + 20 * 65_535
    assert [len(request.body) for request in site.requests] == [size] * 20


def test_endless_bodies_stay_within_the_budget(pki: Pki) -> None:
    site = Site()
    with Serving(site, pki) as serving, H2Client(serving) as client:
        uploads = Open(client, 100, 2_900_000, 2_899_999, declared=True)
        quiet = False
        while not quiet:
            while uploads.push():
                pass
            client.socket.settimeout(1)
            try:
                client.receive()
            except TimeoutError:
                quiet = True
            client.socket.settimeout(10)
        assert sum(uploads.sent.values()) <= 12 * 1024 * 1024 + 100 * 65_535
    assert not site.requests


def test_abandoned_upload_releases_its_budget(pki: Pki) -> None:
    limits = Limits(body_bytes=500_000, connection_body_bytes=500_000)
    with Serving(Site(), pki, limits=limits) as serving, H2Client(serving) as client:
        for _ in range(5):
            uploads = Open(client, 2, 400_000, 399_999, declared=True)
            while uploads.push():
                pass
            for stream in uploads.sent:
                client.h2.reset_stream(stream, Error.CANCEL)
            client.flush()
        body = b"x" * 450_000
        assert client.ask("POST", "/echo", body).body == body


def test_padding_is_returned_to_the_window(pki: Pki) -> None:
    site = Site()
    with Serving(site, pki) as serving, H2Client(serving) as client:
        stream = client.h2.get_next_available_stream_id()
        client.h2.send_headers(
            stream, [*POST[:1], (":path", "/echo"), *POST[2:], ("content-length", "100000")]
        )
        for _ in range(1000):
            while client.h2.local_flow_control_window(stream) < 356:
                client.receive()
            client.h2.send_data(stream, b"x" * 100, pad_length=255)
            client.flush()
        client.h2.end_stream(stream)
        client.flush()
        assert len(client.finish(stream).body) == 100_000


def test_uploads_after_goaway_do_not_break_other_streams(pki: Pki) -> None:
    class Last(Site):
        async def __call__(self, request: Request) -> Answer:
            request.retires = request.path == "/hello"
            return await super().__call__(request)

    with Serving(Last(), pki) as serving, H2Client(serving) as client:
        slow = client.send("GET", "/slow")
        last = client.send("GET", "/hello")
        raw = b""
        while goaway_code(frames_in(raw)) is None:
            raw += client.socket.recv(65536)
        late = frame(Kind.HEADERS, Flag.END_HEADERS, 5, block((":method", "POST"), *REQUEST[1:]))
        client.socket.sendall(late + frame(Kind.DATA, 0, 5, b"late"))
        while data := client.socket.recv(65536):
            raw += data
    frames = frames_in(raw)
    assert (Kind.DATA, last, b'{"hello":"world"}') in frames and (Kind.DATA, slow, b"/slow") in frames
    assert goaway_code(frames) == Error.NO_ERROR
    assert next(payload for kind, _, payload in frames if kind == Kind.GOAWAY)[:4] == (3).to_bytes(4, "big")
