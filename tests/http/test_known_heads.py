"""Known heads: a reader gives the same requests with and without this optimisation."""

from __future__ import annotations

from itertools import pairwise, product
from types import SimpleNamespace
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from kubist.base.http import Limits
from kubist.base.http.http1.known_heads import KnownHeads
from kubist.base.http.http1.reader import Reader, Refusal
from kubist.base.http.messages import Request


class _Connection:
    """Connection for a reader: it only collects the requests."""

    peer, peer_certificates = ("127.0.0.1", 1), ()

    def __init__(self) -> None:
        self.host = SimpleNamespace(limits=Limits(body_bytes=60), now=0.0)
        self.scratch: dict[str, object] = {}
        self.deadline = 0.0
        self.heard = False
        self.taken: list[Request] = []

    def take(self, request: Request) -> None:
        self.taken.append(request)

    def expect_body(self) -> None:
        self.heard = True


class _NoKnownHeads(KnownHeads):
    """Switches the optimisation off: llhttp parses every request."""

    def add(self, data: bytes, headers: dict[str, str]) -> None:
        return


def outcome(pieces: list[bytes], *, simple: bool = False) -> list[Any]:
    """Requests that a reader gets from the data, up to the rejection that ends the connection."""
    connection = _Connection()
    reader = Reader(connection)  # type: ignore[arg-type]
    if simple:
        reader._known_heads = _NoKnownHeads(0)
    ended = 0
    for piece in pieces:
        try:
            reader.feed(piece)
        except Refusal as refusal:
            ended = refusal.status
            break
    return [ended, connection.deadline, connection.heard, *connection.taken]


def message(line: bytes, headers: tuple[bytes, ...], body: bytes) -> bytes:
    return b"".join((line, b"\r\n", *(b"%b\r\n" % header for header in headers), b"\r\n", body))


LINES = [
    b"GET /api/v1/pods HTTP/1.1",
    b"GET /api/v1/pods?limit=5 HTTP/1.1",
    b"POST /api/v1/pods HTTP/1.1",
    b"PATCH /a%20b HTTP/1.1",
    b"GET /a|b HTTP/1.1",
    b"GET /" + b"a" * 9000 + b" HTTP/1.1",
    b"GET /a b HTTP/1.1",
    b"GET  /a HTTP/1.1",
    b"GET http://host/a HTTP/1.1",
    b"get /a HTTP/1.1",
    b"HEAD /a HTTP/1.1",
    b"BREW /a HTTP/1.1",
    b"GET /a HTTP/1.0",
    b"GET / HTTP/1.1\r",
    b"\r\nGET /a HTTP/1.1",
    b"GET /a HTTP/1.1\r\n",
    b"CONNECT /a HTTP/1.1",
    b"GET /\xe4 HTTP/1.1",
    b"GET /a#b HTTP/1.1",
    b"",
]
HEADS = [
    (b"Host: a",),
    (b"Host: a", b"Content-Length: 0"),
    (b"Host: a", b"Content-Length: 3"),
    (b"Host: a", b"Content-Length: 70"),
    (b"Host: a", b"Content-Length: x"),
    (b"Host: a", b"X-Two: 1", b"X-Two: 2"),
    (b"Host: a", b"Connection: close"),
    (b"Host: a", b"Expect: 100-continue", b"Content-Length: 3"),
    (b"Host: a", b"Transfer-Encoding: chunked"),
    (b"Host: a", b"Connection: Upgrade", b"Upgrade: any"),
    (b"Host: a", b"Connection: Upgrade", b"Upgrade: any", b"Content-Length: 3"),
    (b"Host: a", b"Proxy-Connection: close"),
    (b"Host: a", b"Content-Length: 3", b"Transfer-Encoding: chunked"),
    (b"Host: a", b"Content-Length: 3", b"Content-Length: 3"),
    (b"Host: a", b"Content-Length: 03"),
    (b"Host: a", b"Content-Length: 3 "),
    (b"Host: a", b"X: a\n", b"Content-Length: 3"),
    (b"Host: a", b"X: a", b" b"),
    (b"Host: a", b"X:"),
    (b"Host: a", b"X : b"),
    (b"Host: a\r", b"X: b"),
    (b"X-Without: host",),
    (),
]
BODIES = [b"", b"abc", b"ab", b"x" * 70, b"3\r\nabc\r\n0\r\n\r\n", b"GET / HTTP/1.1\r\nHost: a\r\n\r\n"]


@pytest.mark.parametrize("head", HEADS)
def test_request_after_the_same_head_is_parsed_like_a_new_one(head: tuple[bytes, ...]) -> None:
    for first, second, line in product(BODIES, BODIES, LINES):
        sent = [message(LINES[0], head, first), message(line, head, second)]
        assert outcome(sent) == outcome(sent, simple=True)


MESSAGES = st.tuples(st.sampled_from(LINES), st.sampled_from(HEADS), st.sampled_from(BODIES))


@given(st.lists(MESSAGES, max_size=6), st.lists(st.integers(0, 400), max_size=4))
def test_cached_head_is_parsed_like_a_new_one(sent: list[Any], cuts: list[int]) -> None:
    messages = [message(*one) for one in sent]
    whole = b"".join(messages)
    edges = sorted({0, len(whole), *(cut for cut in cuts if cut < len(whole))})
    pieces = [whole[start:end] for start, end in pairwise(edges)]
    for fed in (messages, pieces):
        assert outcome(fed) == outcome(fed, simple=True)


@pytest.mark.parametrize("first", [b"abc", b""])
def test_cached_headers_serve_another_request(first: bytes) -> None:
    head = (b"Host: a", b"Content-Length: %d" % len(first))
    one = message(b"POST /api/v1/pods HTTP/1.1", head, first)
    two = message(b"PUT /api/v1/pods/x?dryRun=All HTTP/1.1", head, first[::-1])
    _, _, _, before, after = outcome([one, two])
    assert after.headers is before.headers
    assert (after.method, after.path, after.query, after.body) == (
        *("PUT", "/api/v1/pods/x", "dryRun=All"),
        first[::-1],
    )
