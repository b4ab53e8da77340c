from __future__ import annotations

import time

from tests.http.serving import Serving, Site, read_all, read_until

WATCH = b"GET /watch HTTP/1.1\r\nHost: localhost\r\n\r\n"


def test_events_arrive_as_they_are_written(either: Serving, site: Site) -> None:
    client = either.http()
    client.request("GET", "/watch")
    answer = client.getresponse()
    assert answer.status == 200 and answer.getheader("Transfer-Encoding") == "chunked"
    writer = site.writers[0]
    for n in range(3):
        either.call(writer.write, b'{"n":%d}\n' % n)
        assert answer.readline() == b'{"n":%d}\n' % n
    either.call(writer.close)
    assert answer.read() == b""
    assert site.stream_stopped.wait(20) and site.stopped == 1 and writer.closed
    client.request("GET", "/hello")
    assert client.getresponse().read()
    client.close()


def test_writes_of_one_turn_are_sent_together(serving: Serving, site: Site) -> None:
    with serving.socket() as client:
        client.sendall(WATCH)
        read_until(client, b"\r\n\r\n")

        def write() -> None:
            for _ in range(5):
                site.writers[0].write(b"event\n")

        serving.call(write)
        assert client.recv(4096) == b"1e\r\n" + b"event\n" * 5 + b"\r\n"


def test_disconnect_stops_the_stream_once(either: Serving, site: Site) -> None:
    client = either.socket()
    client.sendall(WATCH)
    read_until(client, b"\r\n\r\n")
    client.close()
    assert site.stream_stopped.wait(20)
    writer = site.writers[0]
    either.call(writer.write, b"late")
    either.call(writer.close)
    either.call(writer.abort)
    time.sleep(0.02)
    assert site.stopped == 1 and writer.closed and writer.buffered == 0


def test_abort_cuts_the_connection(serving: Serving, site: Site) -> None:
    with serving.socket() as client:
        client.sendall(WATCH)
        read_until(client, b"\r\n\r\n")
        serving.call(site.writers[0].abort)
        assert not read_all(client).endswith(b"0\r\n\r\n")
    assert site.stream_stopped.wait(20) and site.stopped == 1


def test_slow_watcher_increases_buffered(either: Serving, site: Site) -> None:
    with either.socket() as client:
        client.sendall(WATCH)
        read_until(client, b"\r\n\r\n")
        writer = site.writers[0]
        total = 0
        while either.call(lambda: writer.buffered) <= 5_000_000:  # the kernel buffers some megabytes first
            either.call(writer.write, b"x" * 50_000)
            total += 50_000
            assert total < 100_000_000
        either.call(writer.close)
        received = len(read_until(client, b"0\r\n\r\n"))
        assert received > total


def test_http_1_0_stream_ends_with_the_connection(serving: Serving, site: Site) -> None:
    with serving.socket() as client:
        client.sendall(b"GET /watch HTTP/1.0\r\n\r\n")
        read_until(client, b"\r\n\r\n")
        serving.call(site.writers[0].write, b"event\n")
        serving.call(site.writers[0].close)
        assert read_all(client) == b"event\n"


def test_head_request_does_not_start_the_stream(serving: Serving, site: Site) -> None:
    with serving.socket() as client:
        client.sendall(b"HEAD /watch HTTP/1.1\r\nHost: a\r\nConnection: close\r\n\r\n")
        assert b"200 OK" in read_all(client)
    assert not site.writers and site.stopped == 1


def test_disconnect_is_detected_behind_a_pipelined_request(serving: Serving, site: Site) -> None:
    with serving.socket() as client:
        client.sendall(WATCH + WATCH)
        read_until(client, b"\r\n\r\n")
    assert site.stream_stopped.wait(20) and site.stopped == 1


def test_request_after_a_stream_waits_for_its_end(serving: Serving, site: Site) -> None:
    with serving.socket() as client:
        client.sendall(WATCH + b"GET /hello HTTP/1.1\r\nHost: a\r\nConnection: close\r\n\r\n")
        read_until(client, b"\r\n\r\n")
        serving.call(site.writers[0].write, b"event\n")
        serving.call(site.writers[0].close)
        data = read_all(client)
        assert data.index(b"event") < data.index(b"0\r\n\r\n") < data.index(b"world")
