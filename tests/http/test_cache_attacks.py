"""Requests with long and ever different parts leave little in the memory of a server process."""

from __future__ import annotations

import contextlib
import http.client
import json
import os
import socket
import ssl
import subprocess
import sys
from collections.abc import Iterator
from typing import Any

import pytest

from tests.http.h2client import frames_in
from tests.live import TOKEN, Pki

pytestmark = pytest.mark.skipif(sys.platform != "linux", reason="reads /proc")

REQUESTS = 25
LONG = "a" * 400_000
MEGABYTE = 1 << 20
Headers = dict[str, str]


class Process:
    """Server process with at most one connection."""

    def __init__(self, pki: Pki) -> None:
        self._ca = str(pki.path("ca.crt"))
        self._process = subprocess.Popen(
            [sys.executable, "-m", "tests.cache_server", str(pki.directory)],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            text=True,
            env={**os.environ, "PYTHONPATH": os.pathsep.join(sys.path)},
        )
        assert self._process.stdout is not None
        self.port = int(self._process.stdout.readline())
        self._connection: http.client.HTTPSConnection | None = None

    def report(self) -> dict[str, int]:
        assert self._process.stdin is not None
        assert self._process.stdout is not None
        self._process.stdin.write("report\n")
        self._process.stdin.flush()
        found: dict[str, int] = json.loads(self._process.stdout.readline())
        return found

    def ask(self, method: str, path: str, headers: Headers | None = None, body: Any = None) -> int:
        """Status of a response. After a rejection the client opens a new connection."""
        for _ in range(2):
            if self._connection is None:
                context = ssl.create_default_context(cafile=self._ca)
                self._connection = http.client.HTTPSConnection(
                    "127.0.0.1", self.port, timeout=60, context=context
                )
            try:
                text = None if body is None else json.dumps(body)
                self._connection.request(method, path, text, headers or {})
                answer = self._connection.getresponse()
                answer.read()
            except (OSError, http.client.HTTPException):
                self._connection.close()
                self._connection = None
                continue
            return answer.status
        return 0

    def ask_h2(self, *fields: tuple[str, str]) -> None:
        """One request on its own connection, with literal headers, because `h2` takes seconds to compress these."""
        context = ssl.create_default_context(cafile=self._ca)
        context.set_alpn_protocols(["h2"])
        block = b"".join(_literal(name.encode(), value.encode()) for name, value in fields)
        parts = [block[start : start + 16_000] for start in range(0, len(block), 16_000)]
        frames = [_frame(4, 0, 0, b"")]
        for number, part in enumerate(parts):
            flags = (number == 0) | 4 * (number == len(parts) - 1)
            frames.append(_frame(9 if number else 1, flags, 1, part))
        raw = socket.create_connection(("127.0.0.1", self.port), timeout=20)
        with contextlib.suppress(OSError), context.wrap_socket(raw, server_hostname="127.0.0.1") as client:
            client.sendall(b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n" + b"".join(frames))
            received = b""
            while not _answered(received) and (data := client.recv(65536)):
                received += data

    def stop(self) -> None:
        if self._connection is not None:
            self._connection.close()
        with self._process:  # closes its standard input, at the end of which it stops
            pass


def _frame(kind: int, flags: int, stream: int, payload: bytes) -> bytes:
    return len(payload).to_bytes(3, "big") + bytes((kind, flags)) + stream.to_bytes(4, "big") + payload


def _literal(name: bytes, value: bytes) -> bytes:
    """Header without indexing and without compression."""
    return b"\0" + _sized(name) + _sized(value)


def _sized(text: bytes) -> bytes:
    size = len(text)
    if size < 0x7F:
        return bytes((size,)) + text
    encoded, size = bytearray((0x7F,)), size - 0x7F
    while size >= 0x80:
        encoded.append(size & 0x7F | 0x80)
        size >>= 7
    return bytes((*encoded, size)) + text


def _answered(received: bytes) -> bool:
    """Whether there is a HEADERS frame, or a frame that ends the stream or the connection."""
    return any(kind in (1, 3, 7) for kind, _, _ in frames_in(received))


@pytest.fixture(scope="module")
def process(server_pki: Pki) -> Iterator[Process]:
    process = Process(server_pki)
    try:
        yield process
    finally:
        process.stop()


def _admin(**more: str) -> Headers:
    return {
        "Authorization": f"Bearer {TOKEN}",
        **{name.replace("_", "-"): text for name, text in more.items()},
    }


def _pod(number: int) -> dict[str, Any]:
    resources = {"limits": {"cpu": f"{number}{'1' * 1_400_000}"}}
    container = {"name": "c", "image": "i", "resources": resources}
    return {"apiVersion": "v1", "kind": "Pod", "metadata": {"name": "p"}, "spec": {"containers": [container]}}


def _configmap(number: int) -> dict[str, Any]:
    return {"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": f"c{number}"}}


PODS = "/api/v1/namespaces/default/pods"
MAPS = "/api/v1/namespaces/default/configmaps"
GET, SCHEME = (":method", "GET"), (":scheme", "https")

ANONYMOUS = {
    "path": lambda it, n: it.ask("GET", f"/{n}{LONG}"),
    "path of many parts": lambda it, n: it.ask("GET", f"/{n}/" + "ab/" * 130_000),
    "api path": lambda it, n: it.ask("GET", f"/apis/{n}{LONG}/v1/things/x"),
    "namespace": lambda it, n: it.ask("GET", f"/api/v1/namespaces/{n}{LONG}/pods/x"),
    "namespace, long resource": lambda it, n: it.ask("GET", f"/api/v1/namespaces/n{n}/{n}{LONG}/x"),
    "query": lambda it, n: it.ask("GET", f"{PODS}?{n}{LONG}=1"),
    "label selector": lambda it, n: it.ask("GET", f"{PODS}?labelSelector=a{n}={LONG}"),
    "header name": lambda it, n: it.ask("GET", PODS, {f"x{n}{LONG}": "1"}),
    "header value": lambda it, n: it.ask("GET", PODS, {"X-Value": f"{n}{LONG}"}),
    "Accept": lambda it, n: it.ask("GET", "/version", {"Accept": f"application/{n}{LONG}"}),
    "Content-Type": lambda it, n: it.ask("POST", PODS, {"Content-Type": f"application/{n}{LONG}"}, {}),
    "Audit-Id": lambda it, n: it.ask("GET", PODS, {"Audit-Id": f"{n}{LONG}"}),
    "User-Agent": lambda it, n: it.ask("GET", PODS, {"User-Agent": f"{n}{LONG}"}),
    "token": lambda it, n: it.ask("GET", PODS, {"Authorization": f"Bearer {n}{LONG}"}),
    "Impersonate-User": lambda it, n: it.ask("GET", PODS, {"Impersonate-User": f"{n}{LONG}"}),
    "HTTP/2 method": lambda it, n: it.ask_h2((":method", f"M{n}{LONG}"), (":path", "/version"), SCHEME),
    "HTTP/2 path": lambda it, n: it.ask_h2(GET, (":path", f"/{n}{LONG}"), SCHEME),
    "HTTP/2 header name": lambda it, n: it.ask_h2(GET, (":path", "/version"), SCHEME, (f"x{n}{LONG}", "1")),
    "HTTP/2 Audit-Id": lambda it, n: it.ask_h2(
        GET, (":path", "/version"), SCHEME, ("audit-id", f"{n}{LONG}")
    ),
}

AUTHENTICATED = {
    "quantity": lambda it, n: it.ask("POST", PODS, _admin(), _pod(n)),
    "manager": lambda it, n: it.ask("POST", f"{MAPS}?fieldManager={n}{LONG}", _admin(), _configmap(n)),
    "User-Agent": lambda it, n: it.ask("POST", MAPS, _admin(User_Agent=f"{n}{LONG}"), _configmap(n)),
    "path": lambda it, n: it.ask("GET", f"{MAPS}/{n}{LONG}", _admin()),
    "namespace": lambda it, n: it.ask("GET", f"/api/v1/namespaces/{n}{LONG}/pods", _admin()),
    "label selector": lambda it, n: it.ask("GET", f"{PODS}?labelSelector=a{n}%20in%20({LONG})", _admin()),
    "field selector": lambda it, n: it.ask("GET", f"{PODS}?fieldSelector=metadata.name={n}{LONG}", _admin()),
    "Accept": lambda it, n: it.ask("GET", PODS, _admin(Accept=f"application/json, application/{n}{LONG}")),
    "Impersonate-User": lambda it, n: it.ask("GET", PODS, _admin(Impersonate_User=f"{n}{LONG}")),
    "Impersonate-Group": lambda it, n: it.ask(
        "GET", PODS, _admin(Impersonate_User="u", Impersonate_Group=f"{n}{LONG}")
    ),
    "Impersonate-Extra": lambda it, n: it.ask(
        "GET", PODS, _admin(**{"Impersonate-User": "u", "Impersonate-Extra-a": f"{n}{LONG}"})
    ),
}


@pytest.mark.parametrize("attacks", [ANONYMOUS, AUTHENTICATED], ids=["anonymous", "authenticated"])
def test_long_parts_of_requests_are_not_cached(process: Process, attacks: dict[str, Any]) -> None:
    for attack in attacks.values():
        attack(process, 0)  # loads lazily imported modules
    before = process.report()
    kept = {}
    for name, attack in attacks.items():
        for number in range(1, REQUESTS + 1):
            attack(process, number)
        kept[name] = process.report()["long strings"] - before["long strings"]
    after = process.report()
    assert max(kept.values()) < 10, f"long strings after each attack: {kept}"
    assert after["caches"] > 30
    assert after["keys"] < 4 * MEGABYTE
    assert after["longest"] <= 10_000
    assert after["rss"] - before["rss"] < 64 * MEGABYTE


def test_full_caches_are_small(process: Process) -> None:
    """Sends more parts, just short enough to be cached, than the caches hold."""
    before = process.report()
    text = "b" * 200
    for number in range(3000):
        process.ask(
            "GET",
            f"/api/v1/namespaces/{number}{text}/pods",
            {"X-Value": text, "User-Agent": f"{number}{text}", "Accept": f"application/{number}{text}"},
        )
    after = process.report()
    assert after["keys"] < 16 * MEGABYTE
    assert after["rss"] - before["rss"] < 64 * MEGABYTE
