"""Methods that HTTP does not define, and the text of rejections."""

from __future__ import annotations

import time

import pytest

from tests.http.serving import Serving, Site, read_until

HOST = b"Host: localhost\r\n"
CLOSE = b"Connection: close\r\n"


@pytest.mark.parametrize(
    "method", ["FOO", "get", "GETS", "PROPFIND", "M-SEARCH", "DESCRIBE", "SOURCE", "X" * 64]
)
def test_application_gets_any_method(serving: Serving, site: Site, method: str) -> None:
    body = b"Content-Length: 3\r\n\r\nabc"
    data = serving.exchange(f"{method} /hello HTTP/1.1\r\n".encode() + HOST + CLOSE + body)
    assert data.startswith(b"HTTP/1.1 200 ")
    assert (site.requests[0].method, site.requests[0].body) == (method, b"abc")


def test_uncommon_method_arrives_in_pieces_between_common_ones(serving: Serving, site: Site) -> None:
    with serving.socket() as client:
        for pieces in ((b"GE", b"T"), (b"F", b"O", b"O"), (b"GET",)):
            count = len(site.requests)
            for piece in (*pieces, b" /hello HTTP/1.1\r\n", HOST + b"\r\n"):
                client.sendall(piece)
                time.sleep(0.01)
            assert read_until(client, b"}").startswith(b"HTTP/1.1 200 ")
            assert len(site.requests) == count + 1
    assert [request.method for request in site.requests] == ["GET", "FOO", "GET"]


REJECTED = {
    b"F(O / HTTP/1.1\r\n" + HOST: b"400 Bad Request",
    "GÉT / HTTP/1.1\r\n".encode() + HOST: b"400 Bad Request",
    b" / HTTP/1.1\r\n" + HOST: b"400 Bad Request",
    b"GET /\r\n" + HOST: b"400 Bad Request",
    b"GET /%zz HTTP/1.1\r\n" + HOST: b"400 Bad Request",
    b"GET / HTTP/1.1\r\n": b"400 Bad Request: missing required Host header",
    b"GET / HTTP/1.1\r\nHost: a b\r\n": b"400 Bad Request: malformed Host header",
    b"GET / HTTP/9.9\r\n" + HOST: b"505 HTTP Version Not Supported: unsupported protocol version",
    b"GET / HTTP/2.0\r\n" + HOST: b"505 HTTP Version Not Supported: unsupported protocol version",
    b"POST / HTTP/1.1\r\n" + HOST + b"Transfer-Encoding: foo\r\n": b"Unsupported transfer encoding",
    b"F" * 65: b"400 Bad Request",
}


@pytest.mark.parametrize("sent", REJECTED)
def test_rejection_has_a_text(serving: Serving, site: Site, sent: bytes) -> None:
    data = serving.exchange(sent + b"\r\n" if b" " in sent else sent)
    head, _, body = data.partition(b"\r\n\r\n")
    assert body == REJECTED[sent]
    assert b"Content-Type: text/plain; charset=utf-8" in head and b"Connection: close" in head
    assert not site.requests
