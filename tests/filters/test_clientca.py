"""Client certificates are verified for every request, on a real server."""

from __future__ import annotations

import http.client
import json
import socket
import ssl
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import h2.config
import h2.connection
import h2.events
import pytest
from cryptography import x509
from cryptography.x509.oid import NameOID

from kubist.api.filters.authentication.client_ca import UID
from kubist.base.http.tls import openssl
from kubist.base.http.tls.certificates import save
from tests.filters.certs import Made, authority, make
from tests.http.h2client import headers_of
from tests.live import TOKEN, Live, Pki

SELF = "/apis/authentication.k8s.io/v1/selfsubjectreviews"
MASTERS = [(NameOID.COMMON_NAME, "jane"), (NameOID.ORGANIZATION_NAME, "system:masters")]
REACHED = pytest.mark.skipif(openssl.library() is None, reason="this Python's OpenSSL cannot be reached")


class Site:
    """Server with a client CA file that a test can replace."""

    def __init__(self, pki: Pki, directory: Path, *, proxies: bool = True) -> None:
        self.pki, self.directory = pki, directory
        self.users, self.proxies = authority("users"), authority("proxies")
        (directory / "users.crt").write_bytes(self.users.pem)
        (directory / "proxies.crt").write_bytes(self.proxies.pem)
        self.live = Live(
            pki,
            client_ca_file=str(directory / "users.crt"),
            requestheader_client_ca_file=str(directory / "proxies.crt") if proxies else "",
            requestheader_username_headers=("X-Remote-User",),
            requestheader_group_headers=("X-Remote-Group",),
        )

    def replace(self, name: str, *authorities: Made) -> None:
        (self.directory / f"{name}.crt").write_bytes(b"".join(made.pem for made in authorities))
        time.sleep(1.05)

    def context(self, made: Made | None, alpn: str = "http/1.1") -> ssl.SSLContext:
        context = ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT)
        context.load_verify_locations(self.pki.path("ca.crt"))
        context.set_alpn_protocols([alpn])
        if made is not None:
            cert, key = self.directory / "client.crt", self.directory / "client.key"
            save(made.pair, cert, key)
            context.load_cert_chain(cert, key)
        return context


@pytest.fixture
def site(uses_openssl: bool, server_pki: Pki, tmp_path: Path) -> Iterator[Site]:
    made = Site(server_pki, tmp_path)
    with made.live:
        yield made


class Http1:
    """Kept-alive HTTP/1.1 connection."""

    def __init__(self, site: Site, made: Made | None) -> None:
        port, context = site.live.server.port, site.context(made)
        self._connection = http.client.HTTPSConnection("127.0.0.1", port, context=context, timeout=20)

    def whoami(self, **headers: str) -> tuple[int, Any]:
        self._connection.request("POST", SELF, b"{}", {"Content-Type": "application/json", **headers})
        answer = self._connection.getresponse()
        shown = json.loads(answer.read())
        return answer.status, shown["status"]["userInfo"]["username"] if answer.status == 201 else None

    def close(self) -> None:
        self._connection.close()


class Http2:
    """Kept-alive HTTP/2 connection. The server ends it after a 401; the next request then connects again."""

    def __init__(self, site: Site, made: Made | None) -> None:
        self._site, self._made = site, made
        self._connect()

    def _connect(self) -> None:
        raw = socket.create_connection(("127.0.0.1", self._site.live.server.port), timeout=20)
        self._socket = self._site.context(self._made, "h2").wrap_socket(raw, server_hostname="127.0.0.1")
        self._h2 = h2.connection.H2Connection(h2.config.H2Configuration(header_encoding="utf-8"))
        self._h2.initiate_connection()
        self._rejected = False

    def whoami(self, **headers: str) -> tuple[int, Any]:
        if self._rejected:
            self.close()
            self._connect()
        stream = self._h2.get_next_available_stream_id()
        request = [(":method", "POST"), (":path", SELF), (":scheme", "https"), (":authority", "localhost")]
        more = [(name.lower(), value) for name, value in headers.items()]
        self._h2.send_headers(stream, [*request, ("content-type", "application/json"), *more])
        self._h2.send_data(stream, b"{}", end_stream=True)
        self._socket.sendall(self._h2.data_to_send())
        status, body = 0, b""
        while True:
            data = self._socket.recv(65536)
            assert data, "closed"
            for event in self._h2.receive_data(data):
                if isinstance(event, h2.events.ResponseReceived):
                    status = int(headers_of(event)[":status"])
                elif isinstance(event, h2.events.DataReceived):
                    body += event.data
                elif isinstance(event, h2.events.StreamEnded):
                    shown = json.loads(body)
                    name = shown["status"]["userInfo"]["username"] if status == 201 else None
                    self._rejected = status == 401
                    return status, name

    def close(self) -> None:
        self._socket.close()


@pytest.fixture(params=[Http1, Http2])
def connect(request: pytest.FixtureRequest, site: Site) -> Iterator[Callable[[Made | None], Http1 | Http2]]:
    opened: list[Http1 | Http2] = []

    def connect(made: Made | None) -> Http1 | Http2:
        opened.append(request.param(site, made))
        return opened[-1]

    yield connect
    for connection in opened:
        connection.close()


Connect = Callable[[Made | None], Http1 | Http2]


def test_removed_ca_ends_an_open_connection(site: Site, connect: Connect) -> None:
    client = connect(make(MASTERS, site.users))
    assert client.whoami() == (201, "jane")
    assert client.whoami() == (201, "jane")
    other = authority("other")
    site.replace("users", other)
    assert client.whoami()[0] == 401
    site.replace("users", site.users, other)
    assert client.whoami() == (201, "jane")


def test_expired_certificate_ends_an_open_connection(site: Site, connect: Connect) -> None:
    client = connect(make(MASTERS, site.users, ends=2.5))
    assert client.whoami() == (201, "jane")
    time.sleep(3)
    assert client.whoami()[0] == 401


def test_removed_proxy_ca_ends_an_open_connection(site: Site, connect: Connect) -> None:
    proxy = connect(make("proxy", site.proxies))
    jo = {"X-Remote-User": "jo", "X-Remote-Group": "system:masters"}
    assert proxy.whoami(**jo) == (201, "jo")
    other = authority("other proxies")
    site.replace("proxies", other)
    assert proxy.whoami(**jo)[0] == 401
    assert connect(make("proxy", other)).whoami(**jo) == (201, "jo")


def test_unreadable_ca_file_keeps_the_old_cas(site: Site, connect: Connect) -> None:
    client = connect(make(MASTERS, site.users))
    assert client.whoami() == (201, "jane")
    (site.directory / "users.crt").write_bytes(b"half written")
    time.sleep(1.05)
    assert client.whoami() == (201, "jane")


def test_intermediate_ca_is_accepted(site: Site, connect: Connect) -> None:
    middle = authority("middle", site.users)
    assert connect(make(MASTERS, middle)).whoami() == (201, "jane")


def test_certificate_in_the_ca_file_is_trusted(site: Site, connect: Connect) -> None:
    leaf = make(MASTERS, authority("elsewhere"))
    site.replace("users", leaf)
    assert connect(leaf).whoami() == (201, "jane")


def test_user_and_proxy_cas_are_separate(site: Site, connect: Connect) -> None:
    assert connect(make(MASTERS, site.proxies)).whoami()[0] == 401
    user = connect(make(MASTERS, site.users))
    assert user.whoami(**{"X-Remote-User": "jo"}) == (201, "jane")


@pytest.mark.parametrize(("proxies", "status"), [(False, 403), (True, 401)])
def test_certificate_without_common_name_is_anonymous(
    server_pki: Pki, tmp_path: Path, proxies: bool, status: int
) -> None:
    """The certificate names no user, so the client is anonymous. For a proxy the certificate is an error."""
    site = Site(server_pki, tmp_path, proxies=proxies)
    with site.live:
        client = Http1(site, make([(NameOID.ORGANIZATION_NAME, "system:masters")], site.users))
        assert client.whoami()[0] == status
        client.close()


@pytest.mark.parametrize(
    ("uids", "status"), [(["a"], 201), ([""], 401), (["a", "b"], 401)], ids=["one", "empty", "two"]
)
def test_subject_has_at_most_one_uid(site: Site, connect: Connect, uids: list[str], status: int) -> None:
    subject = [*MASTERS, *((x509.ObjectIdentifier(UID), uid) for uid in uids)]
    assert connect(make(subject, site.users)).whoami()[0] == status


@REACHED
@pytest.mark.parametrize("uses_openssl", ["openssl"], indirect=True)
def test_certificate_of_an_unknown_ca_gets_401(site: Site, connect: Connect) -> None:
    stranger = connect(make(MASTERS, authority("users")))
    assert stranger.whoami()[0] == 401
    assert stranger.whoami(**{"X-Remote-User": "jo"})[0] == 401
    # A token beside such a certificate is still accepted, as by kube-apiserver.
    assert stranger.whoami(Authorization=f"Bearer {TOKEN}") == (201, "admin")


@REACHED
@pytest.mark.parametrize("uses_openssl", ["openssl"], indirect=True)
def test_expired_certificate_gets_401(site: Site, connect: Connect) -> None:
    assert connect(make(MASTERS, site.users, ends=-1)).whoami()[0] == 401


def test_resumed_tls_session_does_not_outlive_its_ca(site: Site) -> None:
    context = site.context(make(MASTERS, site.users))
    context.maximum_version = ssl.TLSVersion.TLSv1_2
    body = b"POST %s HTTP/1.1\r\nHost: a\r\nContent-Length: 2\r\nConnection: close\r\n\r\n{}" % SELF.encode()

    def ask(session: ssl.SSLSession | None) -> tuple[bytes, ssl.SSLSession | None]:
        raw = socket.create_connection(("127.0.0.1", site.live.server.port), timeout=20)
        with context.wrap_socket(raw, server_hostname="127.0.0.1", session=session) as client:
            client.sendall(body)
            with client.makefile("rb") as answer:
                return answer.read(12), client.session

    answer, session = ask(None)
    assert answer == b"HTTP/1.1 201"
    site.replace("users", authority("other"))
    try:
        answer, _ = ask(session)
    except (ssl.SSLError, ConnectionError):
        return  # the handshake has failed, in the fallback
    assert answer in (b"HTTP/1.1 401", b"")
