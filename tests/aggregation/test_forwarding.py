"""Requests to backends: headers that backends receive, and responses that are passed back."""

from __future__ import annotations

import base64
import contextlib
import http.client
import threading
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from kubist.api.aggregation.identity import identity_headers
from kubist.api.resources.context import User
from kubist.server.server import Server
from tests.aggregation.backends import PATH, Backend, condition, register, service
from tests.live import TOKEN, Client, Live, Pki
from tests.waiting import wait_for

FLAVOURS = f"{PATH}/namespaces/default/flavours"
SECRET = base64.urlsafe_b64encode(TOKEN.encode()).decode().rstrip("=")
TOKEN_PROTOCOL = f"base64url.bearer.authorization.k8s.io.{SECRET}"
FRONT_PROXY = {
    "requestheader_username_headers": ("X-Remote-User", "X-Forwarded-User"),
    "requestheader_uid_headers": ("X-Remote-Uid", "X-Subject-Id"),
    "requestheader_group_headers": ("X-Team",),
    "requestheader_extra_headers_prefix": ("X-Claim-",),
}
CLIENT_CREDENTIALS = {
    "Authorization": f"Bearer {TOKEN}",
    "Proxy-Authorization": "Basic cm9vdDpyb290",
    "Impersonate-User": "admin",
    "Impersonate-Uid": "0",
    "Impersonate-Group": "system:masters",
    "Impersonate-Extra-Scope": "all",
    "X-Remote-User": "root",
    "X-Remote-Uid": "0",
    "X-Remote-Group": "system:masters",
    "X-Remote-Extra-Scope": "all",
    "X_Remote_User": "root",
    "X-Forwarded-User": "root",
    "X-Forwarded_User": "root",
    "X-Subject-Id": "0",
    "X-Team": "system:masters",
    "X-Claim-Scope": "all",
}
HOP_BY_HOP = {
    "Connection": "Keep-Alive, X-Hop",
    "Keep-Alive": "timeout=5",
    "Proxy-Connection": "keep-alive",
    "TE": "trailers",
    "Trailer": "Expires",
    "X-Hop": "for this connection only",
}
ALLOWED = {
    "host",
    "x-remote-user",
    "x-remote-uid",
    "x-remote-group",
    "x-forwarded-for",
    "x-forwarded-host",
    "x-forwarded-proto",
    "x-forwarded-uri",
    "accept",
    "accept-encoding",
    "user-agent",
    "content-type",
    "content-length",
    "x-harmless",
}
"""Headers that a backend may receive for the requests of these tests."""
ALLOWED_UPGRADE = ALLOWED | {
    "connection",
    "upgrade",
    "sec-websocket-key",
    "sec-websocket-version",
    "sec-websocket-protocol",
}


@pytest.fixture
def live(server_pki: Pki) -> Iterator[Live]:
    with Live(server_pki, **FRONT_PROXY) as server:
        yield server


def aggregate(client: Client, backend: Backend) -> None:
    service(client)
    register(client, backend.port, caBundle=backend.bundle)
    wait_for(lambda: condition(client).get("status") == "True")


@pytest.fixture
def registered(live: Live, backend: Backend) -> Client:
    aggregate(live.client, backend)
    return live.client


def ask(client: Client, method: str, headers: dict[str, str], body: bytes | None = None) -> int:
    connection = client.connect()
    connection.request(method, FLAVOURS, body=body, headers=headers)
    response = connection.getresponse()
    if response.status != 101:
        response.read()
    connection.close()
    return response.status


def received(backend: Backend) -> list[tuple[str, str]]:
    return [(name.lower(), value) for name, value in backend.asked[-1][2]]


def check_identity(headers: list[tuple[str, str]], allowed: set[str]) -> None:
    """Fails unless the backend receives the user in this server's headers only."""
    assert {name for name, _ in headers} <= allowed
    assert [value for name, value in headers if name == "x-remote-user"] == ["admin"]
    assert [value for name, value in headers if name == "x-remote-uid"] == ["u-admin"]
    groups = [value for name, value in headers if name == "x-remote-group"]
    assert groups == ["system:masters", "system:authenticated"]
    assert not any(TOKEN in value or SECRET in value for _, value in headers)


@pytest.mark.parametrize("method", ["GET", "POST", "PUT", "PATCH", "DELETE"])
def test_backend_receives_only_allowed_headers(registered: Client, backend: Backend, method: str) -> None:
    impersonation = {name for name in CLIENT_CREDENTIALS if name.startswith("Impersonate-")}
    headers = {name: value for name, value in CLIENT_CREDENTIALS.items() if name not in impersonation}
    harmless = {"X-Harmless": "yes", "Content-Type": "application/json", "Accept": "application/json"}
    body = None if method == "GET" else b"{}"
    assert ask(registered, method, {**headers, **HOP_BY_HOP, **harmless}, body) < 300
    check_identity(received(backend), ALLOWED)
    assert ("x-harmless", "yes") in received(backend)


def test_impersonated_request_sends_only_allowed_headers(registered: Client, backend: Backend) -> None:
    claimed = {"Impersonate-User": "jane", "Impersonate-Uid": "7", "Impersonate-Group": "system:masters"}
    assert ask(registered, "GET", {**CLIENT_CREDENTIALS, **claimed}) == 200
    names = {name for name, _ in received(backend)}
    assert names <= ALLOWED | {"x-remote-extra-scope"}
    assert [value for name, value in received(backend) if name == "x-remote-user"] == ["jane"]


def test_client_does_not_choose_the_address_that_a_backend_sees(registered: Client, backend: Backend) -> None:
    chosen = {"X-Forwarded-Host": "elsewhere", "X-Forwarded-Proto": "http", "X-Forwarded-Uri": "/admin"}
    assert ask(registered, "GET", registered.headers(**chosen)) == 200
    forwarded = [
        pair for pair in received(backend) if pair[0] in ALLOWED and pair[0].startswith("x-forwarded-")
    ]
    assert sorted(forwarded) == [
        ("x-forwarded-for", "127.0.0.1"),
        ("x-forwarded-host", f"localhost:{backend.port}"),
        ("x-forwarded-proto", "https"),
        ("x-forwarded-uri", FLAVOURS),
    ]


@pytest.mark.parametrize("name", ["a\nb", "a\r\nX-Remote-Group: system:masters", "a\x00b", "a\x7fb"])
def test_user_that_no_header_can_name_is_not_sent(name: str) -> None:
    """A space in place of the control character would name another user."""
    for user in (User(name), User("a", name), User("a", groups=(name,)), User("a", extra=(("k", (name,)),))):
        with pytest.raises(ValueError, match='net/http: invalid header field value for "X-Remote-'):
            identity_headers(user)
    assert identity_headers(User("jürgen\tb")) == [("X-Remote-User", "jürgen\tb")]


def test_user_that_no_header_can_name_gets_503(server_pki: Pki, backend: Backend, tmp_path: Path) -> None:
    tokens = tmp_path / "tokens.csv"
    tokens.write_text(f'{TOKEN},admin,u-admin,system:masters\nodd,"a\nb",1,system:masters\n')
    with Live(server_pki, token_auth_file=str(tokens)) as live:
        aggregate(live.client, backend)
        connection = live.client.connect()
        connection.request("GET", FLAVOURS, headers={"Authorization": "Bearer odd"})
        response = connection.getresponse()
        message = b'error trying to reach service: net/http: invalid header field value for "X-Remote-User"\n'
        assert (response.status, response.read()) == (503, message)
        connection.close()
    assert not backend.asked


@pytest.mark.parametrize(
    "offered", ["v4.channel.k8s.io, {}", "{},v4.channel.k8s.io", "v4.channel.k8s.io , {}"]
)
def test_websocket_token_is_not_sent_to_the_backend(
    registered: Client, backend: Backend, offered: str
) -> None:
    """The token of a WebSocket is one of its subprotocols, because browsers cannot set another header."""
    upgrade = {
        "Connection": "Upgrade",
        "Upgrade": "websocket",
        "Sec-WebSocket-Version": "13",
        "Sec-WebSocket-Key": "dGhlIHNhbXBsZSBub25jZQ==",
        "Sec-WebSocket-Protocol": offered.replace("{}", TOKEN_PROTOCOL),
        "X-Forwarded-User": "root",
        "X_Team": "system:masters",
    }
    assert ask(registered, "GET", upgrade) == 101
    check_identity(received(backend), ALLOWED_UPGRADE)
    protocols = [value for name, value in received(backend) if name == "sec-websocket-protocol"]
    assert protocols == ["v4.channel.k8s.io"]


@pytest.mark.parametrize("status", ["999", "299", "600"])
def test_unknown_statuses_of_a_backend_are_passed_on(
    registered: Client, backend: Backend, monkeypatch: pytest.MonkeyPatch, status: str
) -> None:
    answer_with(backend, monkeypatch, f"HTTP/1.1 {status} Odd\r\nContent-Length: 2\r\n\r\n{{}}")
    answer = registered.ask("GET", FLAVOURS)
    assert (answer.status, answer.body) == (int(status), b"{}")


REDIRECT = "HTTP/1.1 302 Found\r\nLocation: https://elsewhere/\r\nContent-Length: 2\r\n\r\n{}"


def test_redirects_of_a_backend_are_rejected(
    registered: Client, backend: Backend, monkeypatch: pytest.MonkeyPatch
) -> None:
    answer_with(backend, monkeypatch, REDIRECT)
    answer = registered.ask("GET", FLAVOURS)
    assert answer.status == 502 and b"attempted to redirect this request" in answer.body
    assert answer.headers["Location"] is None
    answer_with(backend, monkeypatch, "HTTP/1.1 304 Not Modified\r\nContent-Length: 0\r\n\r\n")
    assert registered.ask("GET", FLAVOURS).status == 304


def test_redirects_of_a_backend_are_passed_on_with_the_flag(
    server_pki: Pki, backend: Backend, monkeypatch: pytest.MonkeyPatch
) -> None:
    with Live(server_pki, aggregator_reject_forwarding_redirect=False) as live:
        aggregate(live.client, backend)
        answer_with(backend, monkeypatch, REDIRECT)
        answer = live.client.ask("GET", FLAVOURS)
        assert (answer.status, answer.headers["Location"]) == (302, "https://elsewhere/")


@pytest.mark.parametrize("status", ["099", "1000", "2", "-10", "+20", "two", "2 0", "٢٠٠"])
def test_malformed_status_of_a_backend_gets_503(
    registered: Client, backend: Backend, monkeypatch: pytest.MonkeyPatch, status: str
) -> None:
    answer_with(backend, monkeypatch, f"HTTP/1.1 {status} Odd\r\nContent-Length: 2\r\n\r\n{{}}")
    answer = registered.ask("GET", FLAVOURS)
    assert answer.status == 503
    assert b"error trying to reach service: malformed HTTP status code" in answer.body
    assert registered.ask("GET", "/livez").status == 200


def test_control_characters_in_a_header_of_a_backend_do_not_reach_the_client(
    registered: Client, backend: Backend, monkeypatch: pytest.MonkeyPatch
) -> None:
    answer_with(backend, monkeypatch, "HTTP/1.1 200 OK\r\nX-A: a\rX-B: b\x00c\r\nContent-Length: 2\r\n\r\n{}")
    answer = registered.ask("GET", FLAVOURS)
    assert answer.headers["X-A"] == "a X-B: b c"
    assert "X-B" not in answer.headers


def test_headers_of_a_backend_for_its_connection_or_for_browsers_are_dropped(
    registered: Client, backend: Backend, monkeypatch: pytest.MonkeyPatch
) -> None:
    headers = (
        "Connection: close, X-Hop\r\nX-Hop: 1\r\nX-Kept: 1\r\n"
        "Access-Control-Allow-Origin: *\r\nAccess-Control-Allow-Credentials: true\r\n"
    )
    answer_with(backend, monkeypatch, f"HTTP/1.1 200 OK\r\n{headers}Content-Length: 2\r\n\r\n{{}}")
    answer = registered.ask("GET", FLAVOURS)
    assert (answer.status, answer.headers["X-Kept"]) == (200, "1")
    assert "X-Hop" not in answer.headers
    assert not [name for name in answer.headers if name.lower().startswith("access-control-")]


def test_endless_response_head_of_a_backend_is_aborted(
    registered: Client, backend: Backend, monkeypatch: pytest.MonkeyPatch
) -> None:
    answer_with(backend, monkeypatch, "HTTP/1.1 200 OK\r\n" + f"X-A: {'a' * 10_000}\r\n" * 1100)
    answer = registered.ask("GET", FLAVOURS)
    assert answer.status == 503
    assert b"headers exceeded" in answer.body


def test_endless_body_that_claims_to_be_short_is_not_collected(
    registered: Client, backend: Backend, monkeypatch: pytest.MonkeyPatch
) -> None:
    chunk = f"10000\r\n{'x' * 0x10000}\r\n"
    fields = "Content-Length: 2\r\nTransfer-Encoding: chunked\r\n\r\n"
    answer_with(backend, monkeypatch, f"HTTP/1.1 200 OK\r\n{fields}" + chunk * 10)
    answer = registered.ask("GET", FLAVOURS)
    assert answer.status == 503 and b"the response has more than 262144 bytes" in answer.body


@pytest.mark.parametrize(("path", "ends"), [("", True), ("/vanilla/log", False)])
def test_body_of_a_backend_ends_at_the_request_timeout_unless_the_request_is_long_running(
    server_pki: Pki, backend: Backend, monkeypatch: pytest.MonkeyPatch, path: str, ends: bool
) -> None:
    ended = threading.Event()

    def begin(self: Any) -> None:
        self.wfile.write(b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n1\r\nx\r\n")
        ended.wait(20)

    with Live(server_pki, request_timeout=1) as live:
        aggregate(live.client, backend)
        monkeypatch.setattr(backend.server.RequestHandlerClass, "do_GET", begin)
        connection = live.client.connect(timeout=4)
        try:
            connection.request("GET", FLAVOURS + path, headers=live.client.headers())
            with pytest.raises(http.client.IncompleteRead if ends else TimeoutError):
                connection.getresponse().read()
        finally:
            ended.set()
            connection.close()


@contextlib.contextmanager
def ask_for_upgrade(client: Client) -> Iterator[Any]:
    """Response to a request for a WebSocket."""
    connection = client.connect()
    connection.request("GET", FLAVOURS, headers=client.headers(Connection="Upgrade", Upgrade="websocket"))
    yield connection.getresponse()
    connection.close()


def test_successful_response_without_the_upgrade_gets_503(
    registered: Client, backend: Backend, monkeypatch: pytest.MonkeyPatch
) -> None:
    answer_with(backend, monkeypatch, "HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\n{}")
    with ask_for_upgrade(registered) as response:
        assert (response.status, response.read()) == (503, b"invalid upgrade response: status code 200\n")


def test_refused_upgrade_is_passed_on_while_its_body_arrives(
    registered: Client, backend: Backend, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A body without an end must not collect in memory."""
    ended = threading.Event()

    def answer(self: Any) -> None:
        with contextlib.suppress(OSError):
            self.wfile.write(b"HTTP/1.1 400 Bad Request\r\n\r\nno such protocol")
            ended.wait(20)
        self.close_connection = True

    monkeypatch.setattr(backend.server.RequestHandlerClass, "do_GET", answer)
    with ask_for_upgrade(registered) as response:
        assert (response.status, response.read(16)) == (400, b"no such protocol")
    ended.set()


def answer_with(backend: Backend, monkeypatch: pytest.MonkeyPatch, text: str) -> None:
    """Makes the backend respond with these bytes."""
    handler: Any = backend.server.RequestHandlerClass

    def answer(self: Any) -> None:
        self.close_connection = True
        with contextlib.suppress(OSError):
            self.wfile.write(text.encode())

    monkeypatch.setattr(handler, "do_GET", answer)


def test_stopping_server_does_not_close_connections_of_another(
    registered: Client, backend: Backend, live: Live, server_pki: Pki
) -> None:
    """Both servers run in one event loop."""
    neighbour = Server(server_pki.config())
    live.run(neighbour.start())
    client = Client(neighbour.port, server_pki)
    aggregate(client, backend)
    assert registered.ask("GET", FLAVOURS).status == 200
    backend.connections.clear()
    assert registered.ask("GET", FLAVOURS).status == 200
    before = set(backend.connections)
    client.close()
    live.run(neighbour.stop(0.1))
    assert registered.ask("GET", FLAVOURS).status == 200
    assert backend.connections == before
