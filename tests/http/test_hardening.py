"""Malicious and broken clients: each gets a plain rejection and does not affect others."""

from __future__ import annotations

import contextlib
import time

import pytest

from kubist.base.http import Limits
from tests.http.serving import Serving, Site, read_all, read_until
from tests.waiting import wait_for

HOST = b"Host: localhost\r\n"
PATH_BYTES = Limits().path_bytes
POST = b"POST /echo HTTP/1.1\r\nHost: localhost\r\n"
CHUNKED = POST + b"Transfer-Encoding: chunked\r\n\r\n"

UPGRADE = b"Connection: Upgrade\r\nUpgrade: %b\r\n"
HIDDEN = b"GET /hidden HTTP/1.1\r\nHost: localhost\r\n\r\n"
"""A request that is the body of another."""
SMUGGLING = {
    "upgrade with a body": POST + UPGRADE % b"any" + b"Content-Length: %d\r\n\r\n" % len(HIDDEN) + HIDDEN,
    "websocket with a body": POST.replace(b"POST", b"GET")
    + UPGRADE % b"websocket"
    + b"Content-Length: %d\r\n\r\n" % len(HIDDEN)
    + HIDDEN,
    "upgrade with chunks": POST
    + UPGRADE % b"h2c"
    + b"Transfer-Encoding: chunked\r\n\r\n%x\r\n%b\r\n0\r\n\r\n" % (len(HIDDEN), HIDDEN),
    "upgrade by proxy": POST
    + (UPGRADE % b"any").replace(b"Connection", b"Proxy-Connection")
    + b"Content-Length: %d\r\n\r\n" % len(HIDDEN)
    + HIDDEN,
    "upgrade with a body of 00": POST + UPGRADE % b"any" + b"Content-Length: 00\r\n\r\n",
    "folded length": POST + b"Content-Length:\r\n 3\r\n\r\nabc",
    "extension with bare newline": CHUNKED + b"3;a\nabc\r\n0\r\n\r\n",
    "chunk without end": CHUNKED + b"3\r\nabc0\r\n\r\n",
    "space in chunk size": CHUNKED + b"3 \r\nabc\r\n0\r\n\r\n",
    "vertical tab before encoding": POST + b"Transfer-Encoding: \x0bchunked\r\n\r\n0\r\n\r\n",
    "two encodings": POST + b"Transfer-Encoding: chunked\r\nTransfer-Encoding: identity\r\n\r\n0\r\n\r\n",
    "newline for carriage return": b"GET /hello HTTP/1.1\r\nHost: localhost\nX: a\r\n\r\n",
    "length and encoding": POST + b"Content-Length: 3\r\nTransfer-Encoding: chunked\r\n\r\n0\r\n\r\n",
    "encoding and length": POST + b"Transfer-Encoding: chunked\r\nContent-Length: 3\r\n\r\n0\r\n\r\n",
    "two lengths": POST + b"Content-Length: 3\r\nContent-Length: 4\r\n\r\nabcd",
    "list of lengths": POST + b"Content-Length: 3, 3\r\n\r\nabc",
    "signed length": POST + b"Content-Length: +3\r\n\r\nabc",
    "empty length": POST + b"Content-Length:\r\n\r\nabc",
    "huge length": POST + b"Content-Length: 99999999999999999999999\r\n\r\nabc",
    "negative length": POST + b"Content-Length: -3\r\n\r\nabc",
    "space before colon": POST + b"Content-Length : 3\r\n\r\nabc",
    "chunked twice": POST + b"Transfer-Encoding: chunked, chunked\r\n\r\n0\r\n\r\n",
    "hexadecimal prefix": CHUNKED + b"0x3\r\nabc\r\n0\r\n\r\n",
    "chunk size overflow": CHUNKED + b"fffffffffffffffff\r\nabc\r\n0\r\n\r\n",
    "chunk size with bare newline": CHUNKED + b"3\nabc\r\n0\r\n\r\n",
    "chunk longer than said": CHUNKED + b"3\r\nabcd\r\n0\r\n\r\n",
    "negative chunk": CHUNKED + b"-3\r\nabc\r\n0\r\n\r\n",
    "encoding with HTTP/1.0": b"POST /echo HTTP/1.0\r\nTransfer-Encoding: chunked\r\n\r\n0\r\n\r\n",
    "folded header": b"GET /hello HTTP/1.1\r\n" + HOST + b"X: a\r\n b\r\n\r\n",
    "bare newlines": b"GET /hello HTTP/1.1\nHost: localhost\n\n",
    "bare carriage return": b"GET /hello HTTP/1.1\r\nHost: a\rX: b\r\n\r\n",
    "NUL in value": b"GET /hello HTTP/1.1\r\n" + HOST + b"X: a\0b\r\n\r\n",
    "NUL in name": b"GET /hello HTTP/1.1\r\n" + HOST + b"X\0: b\r\n\r\n",
    "NUL in path": b"GET /hel\0lo HTTP/1.1\r\n" + HOST + b"\r\n",
    "empty name": b"GET /hello HTTP/1.1\r\n" + HOST + b": b\r\n\r\n",
    "space in path": b"GET /hello b HTTP/1.1\r\n" + HOST + b"\r\n",
    "no host": b"GET /hello HTTP/1.1\r\n\r\n",
    "two hosts": b"GET /hello HTTP/1.1\r\n" + HOST + HOST + b"\r\n",
    "tunnel": b"CONNECT example:443 HTTP/1.1\r\n" + HOST + b"\r\n",
    "no HTTP at all": b"\x16\x03\x01\x02\x00\x01\x00\x01\xfc\x03\x03",
}


@pytest.mark.parametrize("shape", SMUGGLING)
def test_ambiguous_request_is_rejected_and_the_connection_closed(
    strict: Serving, site: Site, shape: str
) -> None:
    data = strict.exchange(SMUGGLING[shape] + b"GET /hello HTTP/1.1\r\n" + HOST + b"\r\n")
    assert data.startswith(b"HTTP/1.1 400 ") and b"Connection: close\r\n" in data
    assert data.count(b"HTTP/1.1 ") == 1
    assert not site.requests


def test_unsupported_versions_and_codings_have_their_own_status(strict: Serving) -> None:
    assert strict.exchange(b"GET / HTTP/2.0\r\n" + HOST + b"\r\n").startswith(b"HTTP/1.1 505 ")
    for coding in (b"gzip, chunked", b"identity", b"xchunked"):
        coded = POST + b"Transfer-Encoding: %b\r\n\r\n0\r\n\r\n" % coding
        assert strict.exchange(coded).startswith(b"HTTP/1.1 501 ")


def test_rejection_waits_for_earlier_responses(strict: Serving) -> None:
    data = strict.exchange(b"GET /slow HTTP/1.1\r\n" + HOST + b"\r\n" + b"\0garbage")
    assert data.startswith(b"HTTP/1.1 200 ") and data.index(b"/slow") < data.index(b"HTTP/1.1 400 ")


def test_request_is_parsed_with_any_split(strict: Serving, site: Site) -> None:
    request = CHUNKED + b"3;a=b\r\nabc\r\n2\r\nde\r\n0\r\nTrailer: x\r\n\r\n"
    with strict.socket() as client:
        for cut in range(1, len(request), 7):
            client.sendall(request[:cut])
            client.sendall(request[cut:])
            assert read_until(client, b"abcde").startswith(b"HTTP/1.1 201 ")
    assert "trailer" not in site.requests[0].headers


@pytest.mark.parametrize(
    "head",
    [
        b"X: " + b"a" * 100_000 + b"\r\n",
        b"".join(b"X-%d: a\r\n" % n for n in range(60)),
        b"".join(b"X-%d: %b\r\n" % (n, b"a" * 1000) for n in range(40)),
    ],
    ids=["one long header", "many headers", "many long headers"],
)
def test_too_large_head_is_rejected(strict: Serving, site: Site, head: bytes) -> None:
    data = strict.exchange(b"GET /hello HTTP/1.1\r\n" + HOST + head + b"\r\n")
    assert data.startswith(b"HTTP/1.1 431 ")
    assert not site.requests


def test_too_long_path_is_rejected(strict: Serving, site: Site) -> None:
    """A long query is allowed: commands and selectors may be long."""
    fitting = b"/hello?" + b"q" * (PATH_BYTES + 1)
    get = b"GET %b HTTP/1.1\r\n" + HOST + b"\r\n"
    for path in (b"/" + b"p" * PATH_BYTES, b"https://a/" + b"p" * PATH_BYTES + b"?q"):
        data = strict.exchange(get % fitting + get % path)
        assert data.startswith(b"HTTP/1.1 200 ") and data.count(b"HTTP/1.1 414 ") == 1
    assert {request.path for request in site.requests} == {"/hello"}


def test_endless_head_is_rejected(strict: Serving) -> None:
    with strict.socket() as client:
        client.sendall(b"GET /hello HTTP/1.1\r\n" + HOST + b"X: ")
        try:
            for _ in range(200):
                client.sendall(b"a" * 10_000)
        except OSError:
            return
        assert read_all(client).startswith(b"HTTP/1.1 431 ")


def test_ignored_upgrade_is_served_as_plain_request(strict: Serving, site: Site) -> None:
    upgrade = b"GET /hello HTTP/1.1\r\n" + HOST + UPGRADE % b"h2c"
    close = b"GET /hello HTTP/1.1\r\nConnection: close\r\n" + HOST + b"\r\n"
    for length in (b"", b"Content-Length: 0\r\n"):
        data = strict.exchange((upgrade + length + b"\r\n") * 2 + close)
        assert data.count(b"HTTP/1.1 200 ") == 3
    assert [request.body for request in site.requests] == [b""] * 6


def test_flood_of_upgrades_is_bounded(strict: Serving) -> None:
    upgrade = b"GET /hello HTTP/1.1\r\n" + HOST + UPGRADE % b"any" + b"\r\n"
    with strict.socket() as client, contextlib.suppress(OSError):
        client.sendall(upgrade * 3000)
        assert read_all(client).count(b"HTTP/1.1 200 ") <= 1000


@pytest.mark.parametrize("start", [b"0\r\nTrailer: ", b"3;extension="], ids=["trailer", "chunk extension"])
def test_endless_chunk_extension_or_trailer_is_rejected(strict: Serving, site: Site, start: bytes) -> None:
    with strict.socket() as client:
        client.sendall(CHUNKED + start)
        with contextlib.suppress(OSError):
            for _ in range(200):
                client.sendall(b"a" * 10_000)
            assert read_all(client).startswith(b"HTTP/1.1 431 ")
    assert not site.requests


def test_body_in_tiny_chunks_is_accepted(strict: Serving) -> None:
    body = b"".join(b"2\r\n%02d\r\n" % (number % 100) for number in range(10_000))
    with strict.socket() as client:
        client.sendall(CHUNKED + body + b"0\r\n\r\n")
        head, _, answer = read_until(client, b"9899").partition(b"\r\n\r\n")
        assert head.startswith(b"HTTP/1.1 201 ")
        while len(answer) < 20_000:
            answer += client.recv(65536)
    assert answer == b"".join(b"%02d" % (number % 100) for number in range(10_000))


def test_trailers_count_as_headers(strict: Serving) -> None:
    trailers = b"".join(b"X-%d: a\r\n" % n for n in range(60))
    assert strict.exchange(CHUNKED + b"0\r\n" + trailers + b"\r\n").startswith(b"HTTP/1.1 431 ")


@pytest.mark.parametrize("size", [100_001, 1_000_000])
@pytest.mark.parametrize("framing", ["length", "chunked"])
def test_application_responds_to_a_too_large_body(
    strict: Serving, site: Site, size: int, framing: str
) -> None:
    if framing == "length":
        request = POST + b"Content-Length: %d\r\n\r\n%b" % (size, b"a" * size)
    else:
        request = CHUNKED + b"%x\r\n%b\r\n0\r\n\r\n" % (size, b"a" * size)
    data = strict.exchange(request)
    assert data.startswith(b"HTTP/1.1 413 ") and data.endswith(b'{"code":413}')
    assert b"Connection: close\r\n" in data
    assert [(r.body_too_large, r.body) for r in site.requests] == [(True, b"")]


def test_body_of_exactly_the_limit_is_accepted(strict: Serving, site: Site) -> None:
    client = strict.http()
    client.request("POST", "/echo", body=b"a" * 100_000)
    assert len(client.getresponse().read()) == 100_000
    client.close()


def test_too_large_body_is_rejected_before_it_is_sent(strict: Serving) -> None:
    data = strict.exchange(POST + b"Expect: 100-continue\r\nContent-Length: 999999999\r\n\r\n")
    assert data.startswith(b"HTTP/1.1 413 ")


@pytest.mark.parametrize(
    ("start", "answer"),
    [
        (b"", b""),
        (b"GET /hello HTTP/1.1\r\nHost:", b"HTTP/1.1 408 "),
        (POST + b"Content-Length: 100\r\n\r\nabc", b"HTTP/1.1 408 "),
        (b"GET /hello HTTP/1.1\r\n" + HOST + b"\r\n", b"HTTP/1.1 200 "),
    ],
    ids=["silent", "slow headers", "slow body", "idle"],
)
def test_slow_client_is_disconnected(hasty: Serving, start: bytes, answer: bytes) -> None:
    began = time.monotonic()
    with hasty.socket() as client:
        client.sendall(start)
        assert read_all(client)[:13] == answer[:13]
    assert 0.1 < time.monotonic() - began < 9


def test_client_that_sends_byte_by_byte_is_disconnected(hasty: Serving) -> None:
    began = time.monotonic()
    with hasty.socket() as client:
        try:
            client.sendall(b"GET /hello HTTP/1.1\r\n")
            while time.monotonic() - began < 10:
                client.sendall(b"X: y\r\n")
                time.sleep(0.05)
        except OSError:
            pass
    assert time.monotonic() - began < 9


def test_client_that_never_reads_is_cut(hasty: Serving, site: Site) -> None:
    with hasty.socket() as client:
        client.sendall(b"GET /large?40000000 HTTP/1.1\r\n" + HOST + b"\r\n")
        wait_for(lambda: site.requests and not hasty.server.connections)


def test_pipelining_client_that_never_reads_stops_being_served(strict: Serving, site: Site) -> None:
    with strict.socket() as client:
        client.sendall((b"GET /large?9000000 HTTP/1.1\r\n" + HOST + b"\r\n") * 50)
        time.sleep(0.3)
        assert len(site.requests) <= 3


def test_flood_of_pipelined_requests_is_bounded(strict: Serving, site: Site) -> None:
    with strict.socket() as client:
        client.sendall(b"GET /slow HTTP/1.1\r\n" + HOST + b"\r\n")
        client.sendall((b"GET /hello HTTP/1.1\r\n" + HOST + b"\r\n") * 5000)
        data = b""
        with contextlib.suppress(OSError):
            data = read_all(client)
        assert data.count(b"HTTP/1.1 200 ") <= 1000
