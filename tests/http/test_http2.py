from __future__ import annotations

import contextlib
import ssl
import time

import pytest

from kubist.base.http import Limits
from kubist.base.http.http2.frames import Error, Kind
from tests.http.h2client import H2Client, frames_in
from tests.http.serving import Pki, Serving, Site, read_all
from tests.waiting import wait_for


def test_get_and_post(either: Serving, site: Site) -> None:
    with H2Client(either) as client:
        reply = client.ask("GET", "/hello?a=b", extra=[("x-one", "1"), ("x-one", "2")])
        assert (reply.status, bytes(reply.body)) == (200, b'{"hello":"world"}')
        assert reply.headers["content-length"] == "17" and reply.headers["date"].endswith("GMT")
        assert reply.headers["content-type"] == "application/json"
        assert bytes(client.ask("POST", "/echo", b"some body").body) == b"some body"
        assert client.ask("POST", "/echo", b"").status == 201
    request = site.requests[0]
    assert (request.method, request.path, request.query, request.http_version) == (
        "GET",
        "/hello",
        "a=b",
        "2",
    )
    assert request.headers["host"] == "localhost" and request.headers["x-one"] == "1, 2"
    assert request.connection is site.requests[1].connection


def test_http2_request_has_the_client_certificate(serving: Serving, site: Site, pki: Pki) -> None:
    pair = pki.authority.issue_client("jane", ["devs"])
    with H2Client(serving, certificate=pair) as client:
        client.ask("GET", "/hello")
    assert site.requests[0].peer_certificates[0] == ssl.PEM_cert_to_DER_cert(pair.cert_pem.decode())


def test_head_and_no_content_have_no_body(serving: Serving) -> None:
    with H2Client(serving) as client:
        reply = client.ask("HEAD", "/hello")
        assert reply.headers["content-length"] == "17" and not reply.body
        reply = client.ask("GET", "/empty")
        assert reply.status == 204 and "content-length" not in reply.headers


def test_http2_requests_run_concurrently(serving: Serving, site: Site) -> None:
    async def open_gate() -> None:
        assert site.gate
        site.gate.set()

    with H2Client(serving) as client:
        streams = [client.send("GET", f"/gate/{n}") for n in range(100)]
        assert client.ask("GET", "/hello").status == 200
        assert not any(client.replies[stream].ended for stream in streams)
        serving.run(open_gate())
        assert [bytes(client.finish(s).body) for s in streams] == [b"/gate/%d" % n for n in range(100)]


@pytest.mark.parametrize("path", ["/large", "/solid"])
@pytest.mark.parametrize("window", [None, 1000, 1_000_000])
def test_large_response_respects_the_windows(either: Serving, path: str, window: int | None) -> None:
    size = 300_000 if window == 1000 else 3_000_000
    with H2Client(either, window=window) as client:
        assert len(client.ask("GET", f"{path}?{size}").body) == size


def test_large_responses_take_turns(serving: Serving) -> None:
    with H2Client(serving, window=10_000_000) as client:
        first, second = client.send("GET", "/solid?5000000"), client.send("GET", "/solid?100000")
        client.finish(second)
        assert not client.replies[first].ended
        assert len(client.finish(first).body) == 5_000_000


def test_response_continues_when_the_window_opens(serving: Serving) -> None:
    with H2Client(serving, window=0) as client:
        stream = client.send("GET", "/hello")
        client.wait(lambda: client.replies[stream].status == 200)
        client.h2.update_settings({4: 5})
        client.flush()
        client.wait(lambda: bytes(client.replies[stream].body) == b'{"hel')
        client.h2.increment_flow_control_window(100, stream)
        client.flush()
        assert bytes(client.finish(stream).body) == b'{"hello":"world"}'


def test_large_body_is_accepted(either: Serving, site: Site) -> None:
    with H2Client(either) as client:
        for _ in range(3):
            body = b"0123456789" * 300_000
            assert client.ask("POST", "/echo", body).body == body


def test_application_rejects_a_too_large_http2_body(either: Serving, site: Site) -> None:
    with H2Client(either) as client:
        assert client.ask("POST", "/echo", b"x").status == 201
        stream = client.send("POST", "/echo", b"x" * 4_000_000)
        reply = client.finish(stream)
        assert (reply.status, bytes(reply.body)) == (413, b'{"code":413}')
        stream = client.h2.get_next_available_stream_id()
        declared = [(":method", "POST"), (":path", "/echo"), (":scheme", "https"), (":authority", "a")]
        client.h2.send_headers(stream, [*declared, ("content-length", "9999999")])
        client.flush()
        client.wait(lambda: client.replies[stream].reset is not None)
        assert (client.replies[stream].status, client.replies[stream].reset) == (413, 0)
        assert client.ask("GET", "/hello").status == 200
    assert [r.body_too_large for r in site.requests] == [False, True, True, False]


def test_any_status_of_three_digits_is_sent(serving: Serving) -> None:
    with H2Client(serving) as client, contextlib.closing(serving.http()) as plain:
        for status in (200, 299, 418, 599, 600, 999):
            assert client.ask("GET", f"/status?{status}").status == status
            plain.request("GET", f"/status?{status}")
            answer = plain.getresponse()
            assert (answer.status, answer.read()) == (status, b"{}")


@pytest.mark.parametrize("path", ["/unsendable", "/status?1000", "/status?-1", "/status_stream?1000"])
def test_invalid_response_resets_its_stream(serving: Serving, site: Site, path: str) -> None:
    with H2Client(serving) as client:
        assert client.ask("GET", path).reset == Error.INTERNAL_ERROR
        assert client.ask("GET", "/hello").status == 200
    if "stream" in path:
        assert site.stream_stopped.wait(5)


def test_invalid_response_ends_an_http1_connection(serving: Serving) -> None:
    assert serving.exchange(b"GET /unsendable HTTP/1.1\r\nHost: a\r\n\r\n") == b""


def test_expect_continue(serving: Serving) -> None:
    with H2Client(serving) as client:
        stream = client.h2.get_next_available_stream_id()
        head = [(":method", "POST"), (":path", "/echo"), (":scheme", "https"), (":authority", "a")]
        client.h2.send_headers(stream, [*head, ("expect", "100-continue")])
        client.flush()
        client.wait(lambda: client.replies[stream].informational == [100])
        client.upload(stream, b"go")
        assert bytes(client.finish(stream).body) == b"go"


def test_trailers_end_a_body(serving: Serving, site: Site) -> None:
    with H2Client(serving) as client:
        stream = client.h2.get_next_available_stream_id()
        head = [(":method", "POST"), (":path", "/echo"), (":scheme", "https"), (":authority", "a")]
        client.h2.send_headers(stream, head)
        client.h2.send_data(stream, b"abc")
        client.h2.send_headers(stream, [("x-checksum", "1")], end_stream=True)
        client.flush()
        assert bytes(client.finish(stream).body) == b"abc"
    assert "x-checksum" not in site.requests[0].headers


def test_failing_application_answers_500(serving: Serving) -> None:
    with H2Client(serving) as client:
        assert client.ask("GET", "/fail").status == 500


def test_stream_of_events(either: Serving, site: Site) -> None:
    with H2Client(either) as client:
        stream = client.send("GET", "/watch")
        reply = client.replies[stream]
        client.wait(lambda: reply.status == 200)
        writer = site.writers[0]
        for n in range(3):
            either.call(writer.write, b"event %d\n" % n)
            client.wait(lambda n=n: reply.body.endswith(b"event %d\n" % n))

        def end() -> None:
            writer.write(b"last\n")
            writer.close()
            writer.write(b"late\n")

        either.call(end)
        assert client.finish(stream).body.endswith(b"last\n")
        assert site.stream_stopped.wait(20) and site.stopped == 1 and writer.closed
        assert client.ask("GET", "/hello").status == 200


def test_reset_by_the_client_stops_the_stream_once(serving: Serving, site: Site) -> None:
    with H2Client(serving) as client:
        stream = client.send("GET", "/watch")
        client.wait(lambda: client.replies[stream].status == 200)
        client.h2.reset_stream(stream)
        client.flush()
        assert site.stream_stopped.wait(20)
        serving.call(site.writers[0].write, b"late")
        serving.call(site.writers[0].close)
        assert client.ask("GET", "/hello").status == 200
    assert site.stopped == 1


def test_disconnect_stops_every_stream(either: Serving, site: Site) -> None:
    client = H2Client(either)
    streams = [client.send("GET", "/watch") for _ in range(20)]
    client.wait(lambda: all(client.replies[s].status for s in streams))
    client.socket.close()
    wait_for(lambda: site.stopped == 20)
    assert all(writer.closed for writer in site.writers)


def test_abort_resets_only_its_stream(serving: Serving, site: Site) -> None:
    with H2Client(serving) as client:
        stream = client.send("GET", "/watch")
        client.wait(lambda: client.replies[stream].status == 200)
        serving.call(site.writers[0].abort)
        assert client.finish(stream).reset == 8
        assert client.ask("GET", "/hello").status == 200
    assert site.stopped == 1


def test_watcher_without_window_is_buffered_and_delays_no_other_stream(serving: Serving, site: Site) -> None:
    with H2Client(serving, window=1000, acknowledge=False) as client:
        stream = client.send("GET", "/watch")
        client.wait(lambda: client.replies[stream].status == 200)
        writer = site.writers[0]
        for _ in range(50):
            serving.call(writer.write, b"x" * 1000)
        client.wait(lambda: len(client.replies[stream].body) == 1000)
        assert serving.call(lambda: writer.buffered) == 49_000
        assert client.ask("GET", "/hello").status == 200


def test_reset_request_is_finished_without_response(serving: Serving, site: Site) -> None:
    with H2Client(serving) as client:
        stream = client.send("GET", "/slow")
        wait_for(lambda: site.requests)
        client.h2.reset_stream(stream)
        client.flush()
        wait_for(lambda: site.finished == 1)
        assert client.ask("GET", "/hello").status == 200


def test_streams_above_the_limit_are_refused(site: Site, pki: Pki) -> None:
    with Serving(site, pki, limits=Limits(streams=5)) as serving, H2Client(serving) as client:
        client.ask("GET", "/hello")
        client.h2.remote_settings[3] = 100
        client.h2.remote_settings.acknowledge()
        streams = [client.send("GET", f"/slow/{n}") for n in range(8)]
        replies = [client.finish(s) for s in streams]
        assert [r.reset for r in replies] == [None] * 5 + [7] * 3


def test_reset_requests_count_against_the_stream_limit(site: Site, pki: Pki) -> None:
    with Serving(site, pki, limits=Limits(streams=5)) as serving, H2Client(serving) as client:
        for _ in range(5):
            client.h2.reset_stream(client.send("GET", "/slow"))
        client.flush()
        assert client.ask("GET", "/hello").reset == 7
        wait_for(lambda: site.finished == 5)
        assert client.ask("GET", "/hello").status == 200


def test_stop_sends_goaway_and_finishes_requests(either: Serving, site: Site) -> None:
    with H2Client(either) as client:
        slow, watch = client.send("GET", "/slow"), client.send("GET", "/watch")
        client.wait(lambda: client.replies[watch].status == 200)
        began = time.monotonic()
        either.run(either.server.stop(5))
        assert time.monotonic() - began < 9
        frames = frames_in(read_all(client.socket))
    assert frames[0] == (Kind.GOAWAY, 0, watch.to_bytes(4, "big") + bytes(4))
    assert (Kind.DATA, slow, b"/slow") in frames and (Kind.DATA, watch, b"") in frames
    assert site.stopped == 1


def test_http2_stop_cuts_requests_after_the_grace_period(serving: Serving, site: Site) -> None:
    with H2Client(serving) as client:
        stream = client.send("GET", "/gate")
        wait_for(lambda: site.gate)
        serving.run(serving.server.stop(0.1))
        client.hear_out()
        assert not client.replies[stream].ended
    assert site.finished == 0


def test_path_with_a_broken_escape_resets_its_stream(serving: Serving, site: Site) -> None:
    with H2Client(serving) as client:
        assert client.ask("GET", "/hello/%zz").reset == Error.PROTOCOL_ERROR
        assert client.ask("GET", "/hello?a=%zz").status == 200
    assert len(site.requests) == 1
