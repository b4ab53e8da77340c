from __future__ import annotations

import contextlib
import socket
import threading
import time

import pytest

from kubist.base.http import HttpServer, connection
from tests.http.serving import Pki, Serving, Site, read_all, read_until
from tests.waiting import wait_for

HOST = b"Host: localhost\r\n"


def stop(serving: Serving, grace: float) -> float:
    began = time.monotonic()
    serving.run(serving.server.stop(grace))
    return time.monotonic() - began


def test_idle_connections_are_closed_at_once(either: Serving) -> None:
    client = either.http()
    client.request("GET", "/hello")
    client.getresponse().read()
    assert stop(either, 20) < 10
    assert client.sock.recv(1) == b""
    client.close()


@pytest.mark.parametrize("alpn", ["http/1.1", "h2"])
def test_idle_clients_do_not_delay_stop(either: Serving, alpn: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """Idle clients do not read, so they never answer TLS's close_notify."""
    monkeypatch.setattr(connection, "_FAREWELL_SECONDS", 30)
    assert either.pki is not None
    with contextlib.ExitStack() as clients:
        idle = [clients.enter_context(either.socket(either.pki.client(alpn=(alpn,)))) for _ in range(5)]
        wait_for(lambda: either.server.connections == 5)
        assert stop(either, 20) < 10
        for client in idle:
            read_all(client)


def test_last_response_arrives_whole_when_the_server_stops(either: Serving, site: Site) -> None:
    size = 3_000_000
    with either.socket() as client:
        client.sendall(b"GET /solid?%d HTTP/1.1\r\n" % size + HOST + b"\r\n")
        wait_for(lambda: site.finished)
        stopping = threading.Thread(target=stop, args=(either, 20))
        stopping.start()
        wait_for(lambda: either.server._host is None or either.server._host.stopping)
        data = read_all(client)
        stopping.join()
    assert len(data.partition(b"\r\n\r\n")[2]) == size


def test_request_in_flight_is_answered(either: Serving, site: Site) -> None:
    with either.socket() as client:
        client.sendall(b"GET /slow HTTP/1.1\r\n" + HOST + b"\r\n")
        wait_for(lambda: site.requests)
        assert stop(either, 20) < 10
        data = read_all(client)
        assert data.startswith(b"HTTP/1.1 200 ") and b"Connection: close\r\n" in data


def test_streams_end_cleanly(either: Serving, site: Site) -> None:
    with either.socket() as client:
        client.sendall(b"GET /watch HTTP/1.1\r\n" + HOST + b"\r\n")
        read_until(client, b"\r\n\r\n")
        either.call(site.writers[0].write, b"last\n")
        assert stop(either, 20) < 10
        assert read_all(client).endswith(b"last\n\r\n0\r\n\r\n")
    assert site.stopped == 1


def test_stop_cuts_requests_after_the_grace_period(either: Serving, site: Site) -> None:
    with either.socket() as client:
        client.sendall(b"GET /gate HTTP/1.1\r\n" + HOST + b"\r\n")
        wait_for(lambda: site.gate)
        assert 0.2 < stop(either, 0.2) < 10
        assert read_all(client) == b""
    assert site.finished == 0


def test_stop_waits_for_requests_of_disconnected_clients(either: Serving, site: Site) -> None:
    with either.socket() as client:
        client.sendall(b"GET /slow HTTP/1.1\r\n" + HOST + b"\r\n")
        wait_for(lambda: site.requests)
    stop(either, 5)
    assert site.finished == 1


def test_no_new_connections_after_stop(either: Serving) -> None:
    stop(either, 1)
    with pytest.raises(ConnectionError):
        socket.create_connection(("127.0.0.1", either.port), timeout=2)


def test_bound_socket_is_served(site: Site, pki: Pki) -> None:
    bound = socket.create_server(("127.0.0.1", 0))
    with Serving(site, None) as serving:
        port = serving.run(serving.server.start(sock=bound))
        assert port == bound.getsockname()[1] != serving.port
        with socket.create_connection(("127.0.0.1", port), timeout=5) as client:
            client.sendall(b"GET /hello HTTP/1.1\r\nConnection: close\r\n" + HOST + b"\r\n")
            assert b"world" in read_all(client)


def test_taken_port_is_an_error(serving: Serving, site: Site) -> None:
    with pytest.raises(OSError, match="in use"):
        serving.run(HttpServer(site).start("127.0.0.1", serving.port))


def test_stop_under_load_responds_to_every_accepted_request(serving: Serving, site: Site) -> None:
    answered: list[int] = []

    def work() -> None:
        try:
            client = serving.http()
            while True:
                client.request("GET", "/slow")
                answer = client.getresponse()
                answer.read()
                answered.append(answer.status)
        except OSError:
            pass

    threads = [threading.Thread(target=work) for _ in range(8)]
    for thread in threads:
        thread.start()
    wait_for(lambda: len(answered) > 16)
    stop(serving, 5)
    for thread in threads:
        thread.join()
    assert set(answered) == {200} and len(answered) == site.finished == len(site.requests)
