from __future__ import annotations

import http.client
import json
import threading
import time
from datetime import UTC, datetime
from email.utils import parsedate_to_datetime

import pytest

from tests.http.serving import Pki, Serving, Site, read_all, read_until
from tests.waiting import wait_for

HOST = b"Host: localhost\r\n"


def test_get_has_date_length_and_body(either: Serving) -> None:
    client = either.http()
    client.request("GET", "/hello?a=b&c=%20d")
    answer = client.getresponse()
    assert (answer.status, answer.read()) == (200, b'{"hello":"world"}')
    assert answer.getheader("Content-Length") == "17"
    date = parsedate_to_datetime(answer.getheader("Date", ""))
    assert abs((datetime.now(UTC) - date).total_seconds()) < 5
    client.close()


def test_application_gets_the_raw_request(serving: Serving, site: Site) -> None:
    client = serving.http()
    client.putrequest("GET", "/hello/a%2Fb?x=%20y&z")
    client.putheader("X-Two", "one")
    client.putheader("x-two", "two")
    client.putheader("X-Unicode", "jörg".encode())
    client.endheaders()
    client.getresponse().read()
    request = site.requests[0]
    assert (request.method, request.path, request.query) == ("GET", "/hello/a%2Fb", "x=%20y&z")
    assert request.headers["x-two"] == "one, two"
    assert request.headers["x-unicode"] == "jörg"
    assert request.peer[0] == "127.0.0.1" and request.peer[1] > 0
    assert request.peer_certificates == ()
    client.close()


def test_connection_is_kept_and_shares_its_scratch_space(either: Serving, site: Site) -> None:
    client = either.http()
    for _ in range(3):
        client.request("POST", "/echo", body=b"x" * 5000)
        answer = client.getresponse()
        assert (answer.status, answer.read()) == (201, b"x" * 5000)
    assert site.requests[0].connection is site.requests[2].connection
    assert site.requests[0].peer == site.requests[2].peer
    client.close()


def test_chunked_body_is_joined(either: Serving) -> None:
    client = either.http()
    client.request("POST", "/echo", body=iter([b"one", b"two" * 1000, b"three"]), encode_chunked=True)
    assert client.getresponse().read() == b"one" + b"two" * 1000 + b"three"
    client.close()


def test_head_has_length_but_no_body(serving: Serving) -> None:
    data = serving.exchange(b"HEAD /hello HTTP/1.1\r\n" + HOST + b"Connection: close\r\n\r\n")
    assert b"Content-Length: 17\r\n" in data and data.endswith(b"\r\n\r\n")


def test_no_content_has_no_length(serving: Serving) -> None:
    data = serving.exchange(b"GET /empty HTTP/1.1\r\n" + HOST + b"Connection: close\r\n\r\n")
    assert data.startswith(b"HTTP/1.1 204 ") and b"content-length" not in data.lower()


@pytest.mark.parametrize("path", ["/large", "/solid"])
def test_large_response_arrives_whole(either: Serving, path: str) -> None:
    client = either.http()
    for _ in range(2):
        client.request("GET", f"{path}?7000000")
        assert len(client.getresponse().read()) == 7_000_000
    client.close()


def test_large_response_does_not_delay_others(serving: Serving) -> None:
    lazy = serving.socket()
    lazy.sendall(b"GET /large?30000000 HTTP/1.1\r\n" + HOST + b"\r\n")
    read_until(lazy, b"\r\n\r\n")
    client = serving.http()
    started = time.monotonic()
    client.request("GET", "/hello")
    client.getresponse().read()
    assert time.monotonic() - started < 9
    client.close()
    lazy.close()


def test_pipelined_requests_are_answered_in_order(either: Serving, site: Site) -> None:
    requests = [b"GET /slow/%d HTTP/1.1\r\n%b\r\n" % (n, HOST) for n in range(3)]
    requests.insert(1, b"POST /echo HTTP/1.1\r\nContent-Length: 4\r\n%b\r\nbody" % HOST)
    requests.append(b"GET /hello HTTP/1.1\r\nConnection: close\r\n%b\r\n" % HOST)
    data = either.exchange(b"".join(requests))
    found = [data.index(part) for part in (b"/slow/0", b"body", b"/slow/1", b"/slow/2", b"world")]
    assert found == sorted(found)
    assert [r.path for r in site.requests] == ["/slow/0", "/echo", "/slow/1", "/slow/2", "/hello"]


def test_expect_continue_gets_100_before_the_body(serving: Serving) -> None:
    with serving.socket() as client:
        head = b"POST /echo HTTP/1.1\r\nExpect: 100-continue\r\nContent-Length: 2\r\nConnection: close\r\n"
        client.sendall(head + HOST + b"\r\n")
        assert read_until(client, b"\r\n\r\n") == b"HTTP/1.1 100 Continue\r\n\r\n"
        client.sendall(b"ok")
        assert read_all(client).endswith(b"\r\n\r\nok")


def test_unknown_expectation_is_rejected(serving: Serving) -> None:
    data = serving.exchange(
        b"POST /echo HTTP/1.1\r\nExpect: gold\r\nContent-Length: 2\r\n" + HOST + b"\r\nok"
    )
    assert data.startswith(b"HTTP/1.1 417 ")


def test_http_1_0_closes_without_keep_alive(serving: Serving) -> None:
    assert b"Connection: close\r\n" in serving.exchange(b"GET /hello HTTP/1.0\r\n\r\n")
    with serving.socket() as client:
        client.sendall(b"GET /hello HTTP/1.0\r\nConnection: keep-alive\r\n\r\n")
        assert b"Connection: keep-alive\r\n" in read_until(client, b"world")
        client.sendall(b"GET /hello HTTP/1.0\r\n\r\n")
        assert b"200 OK" in read_all(client)


def test_absolute_form_target_gives_the_path(serving: Serving, site: Site) -> None:
    for target in (b"http://h/hello?q=1", b"http://h?q=1"):
        serving.exchange(b"GET " + target + b" HTTP/1.1\r\nConnection: close\r\n" + HOST + b"\r\n")
    assert [(r.path, r.query) for r in site.requests] == [("/hello", "q=1"), ("/", "q=1")]


def test_failing_application_answers_500(serving: Serving) -> None:
    client = serving.http()
    client.request("GET", "/fail")
    answer = client.getresponse()
    assert (answer.status, answer.read()) == (500, b"")
    client.request("GET", "/hello")
    assert client.getresponse().read()
    client.close()


def test_newlines_in_header_values_are_replaced(serving: Serving) -> None:
    client = serving.http()
    client.request("GET", "/inject")
    answer = client.getresponse()
    answer.read()
    assert answer.getheader("X-Evil") is None
    assert "X-Evil" in answer.getheader("X-Text", "")
    client.close()


def test_unsupported_upgrade_is_ignored(serving: Serving) -> None:
    upgrade = b"GET /hello HTTP/1.1\r\nConnection: Upgrade\r\nUpgrade: h2c\r\n" + HOST + b"\r\n"
    data = serving.exchange(upgrade + b"GET /hello HTTP/1.1\r\nConnection: close\r\n" + HOST + b"\r\n")
    assert data.count(b"HTTP/1.1 200 OK") == 2


def test_request_of_a_disconnected_client_is_finished(serving: Serving, site: Site) -> None:
    client = serving.socket()
    client.sendall(b"GET /slow HTTP/1.1\r\n" + HOST + b"\r\n")
    wait_for(lambda: site.requests)
    client.close()
    wait_for(lambda: site.finished == 1)


def test_half_closed_plain_client_gets_its_response(site: Site) -> None:
    with Serving(site, None) as plain, plain.socket() as client:
        client.sendall(b"GET /slow HTTP/1.1\r\n" + HOST + b"\r\n")
        client.shutdown(1)
        assert b"200 OK" in read_all(client)


def test_many_clients_at_once(serving: Serving, site: Site) -> None:
    failures: list[object] = []

    def work() -> None:
        try:
            client = serving.http()
            for n in range(20):
                body = json.dumps({"n": n}).encode()
                client.request("POST", "/echo", body=body)
                if client.getresponse().read() != body:
                    failures.append(n)
            client.close()
        except (OSError, http.client.HTTPException) as error:
            failures.append(error)

    threads = [threading.Thread(target=work) for _ in range(16)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert not failures and len(site.requests) == 320


def test_two_servers_in_one_process_are_independent(site: Site, pki: Pki) -> None:
    other = Site()
    with Serving(site, pki) as one, Serving(other, pki) as two:
        for serving in (one, two):
            client = serving.http()
            client.request("GET", "/hello")
            client.getresponse().read()
            client.close()
    assert len(site.requests) == len(other.requests) == 1
