"""One anonymous connection can neither fill the memory of a server nor block other clients."""

from __future__ import annotations

import contextlib
from collections.abc import Callable, Iterator

import pytest

from kubist.base.http.http2.frames import Kind
from tests.http.attacks import ATTACKS
from tests.http.victim import Victim, victim
from tests.live import TOKEN, Client, Pki

MEMORY = 64 * 1024 * 1024
DELAY = 0.2


@pytest.fixture(scope="module")
def attacked(tmp_path_factory: pytest.TempPathFactory, server_pki: Pki) -> Iterator[Victim]:
    with victim(tmp_path_factory.mktemp("attacked"), server_pki) as found:
        yield found


@pytest.mark.parametrize("attack", ATTACKS, ids=lambda attack: attack.__name__)
def test_one_connection_does_little_harm(attacked: Victim, attack: Callable[[Victim], None]) -> None:
    harm = attacked.suffer(attack)
    print(attack.__name__, harm)
    assert harm.delay < DELAY, str(harm)
    assert harm.memory < MEMORY, str(harm)
    assert attacked.server.process.poll() is None and "Traceback" not in attacked.server.output


def answers(
    attacked: Victim, *headers: tuple[str, str], path: str = "/livez", method: str = "GET"
) -> list[int]:
    """Types of the frames that answer two requests, and whether the connection ended."""
    with attacked.http2() as client:
        client.socket.sendall(client.headers(*headers, path=path, method=method))
        kinds = []
        client.on_frame = lambda kind, payload: kinds.append(kind)
        client.listen(1)
        if not client.closed:
            client.socket.sendall(client.headers(*headers, path=path, method=method))
            client.listen(1)
        return [kind for kind in kinds if kind in (Kind.HEADERS, Kind.GOAWAY)]


def test_anonymous_http2_connection_ends_after_one_request(attacked: Victim) -> None:
    """Same as kube-apiserver (UnauthenticatedHTTP2DOSMitigation), also for allowed requests."""
    for path in ("/livez", "/api/v1/pods", "/api/v1/watch"):
        assert answers(attacked, path=path) == [Kind.HEADERS, Kind.GOAWAY]
    assert answers(attacked, ("authorization", "Bearer nobody")) == [Kind.HEADERS, Kind.GOAWAY]
    assert answers(attacked, method="FOO") == [Kind.HEADERS, Kind.GOAWAY]
    assert answers(attacked, ("authorization", f"Bearer {TOKEN}")) == [Kind.HEADERS, Kind.HEADERS]


def send_methods(attacked: Victim, prefix: str) -> None:
    """Two hundred methods that do not exist, on one connection."""
    with attacked.http2() as client, contextlib.suppress(OSError):
        client.socket.sendall(b"".join(client.headers(method=f"{prefix}{number}") for number in range(200)))
        client.listen(1)


def test_unknown_methods_do_not_grow_the_metrics(attacked: Victim, server_pki: Pki) -> None:
    client = Client(attacked.port, server_pki)
    client.ask("GET", "/metrics")
    send_methods(attacked, "FIRST")
    before = len(client.ask("GET", "/metrics").body)
    for prefix in ("M", "N", "O"):
        send_methods(attacked, prefix)
    shown = client.ask("GET", "/metrics").body
    client.close()
    assert b'verb="other"' in shown and b'verb="FIRST' not in shown and b'verb="M' not in shown
    assert len(shown) < before + 4096
