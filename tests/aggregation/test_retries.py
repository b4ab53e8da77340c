"""Calls of backends and webhooks on kept connections: which requests are sent again after a failure."""

from __future__ import annotations

import asyncio
import contextlib
import ssl
import time
from collections.abc import Awaitable, Callable
from pathlib import Path
from typing import Any

import pytest

from kubist.base.http.client.calls import CallFailed, get, post
from kubist.base.http.client.pool import Pool
from kubist.base.http.tls.certificates import load_authority, save
from tests.aggregation.backends import Backend
from tests.live import Pki


class Scripted:
    """HTTPS server that handles each request on a connection with the next action of its script."""

    def __init__(self, pki: Pki, directory: Path, *script: bytes | None) -> None:
        authority = load_authority(pki.path("ca.crt"), pki.path("ca.key"))
        save(authority.issue_server(["localhost"]), directory / "s.crt", directory / "s.key")
        self._tls = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
        self._tls.load_cert_chain(directory / "s.crt", directory / "s.key")
        self.trust = ssl.create_default_context(cafile=str(pki.path("ca.crt")))
        self._script = list(script)
        self.requests: list[str] = []
        self.connections = 0

    async def __aenter__(self) -> Scripted:
        self._server = await asyncio.start_server(self._serve, "127.0.0.1", 0, ssl=self._tls)
        self.url = f"https://localhost:{self._server.sockets[0].getsockname()[1]}/"
        return self

    async def __aexit__(self, *_: object) -> None:
        self._server.close()

    async def _serve(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        self.connections += 1
        with contextlib.suppress(asyncio.IncompleteReadError, OSError):
            while True:
                head = await reader.readuntil(b"\r\n\r\n")
                lines = [
                    line.split(b":") for line in head.lower().split(b"\r\n") if line.startswith(b"content-l")
                ]
                await reader.readexactly(int(lines[0][1]) if lines else 0)
                self.requests.append(head.split()[0].decode())
                action = self._script.pop(0)
                if action is None:
                    break
                writer.write(action)
        writer.close()


OK = b"HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\n{}"


def scripted(pki: Pki, directory: Path, *script: bytes | None) -> Callable[..., list[Any]]:
    """Runs calls against a script. Returns their responses or errors, then the methods received."""

    def run(*calls: str) -> list[Any]:
        async def scenario() -> list[Any]:
            pool = Pool()
            found: list[Any] = []
            async with Scripted(pki, directory, *script) as server:
                how: dict[str, Callable[[], Awaitable[tuple[int, bytes]]]] = {
                    "GET": lambda: get(server.url, context=server.trust, timeout=5, pool=pool),
                    "POST": lambda: post(server.url, b"{}", context=server.trust, timeout=5, pool=pool),
                }
                for call in calls:
                    try:
                        found.append((await how[call]())[0])
                    except CallFailed as error:
                        found.append(str(error).rpartition(": ")[2])
                await pool.close()
                return [*found, server.requests, server.connections]

        return asyncio.run(scenario())

    return run


def test_post_is_not_sent_again_after_a_kept_connection_failed(server_pki: Pki, tmp_path: Path) -> None:
    run = scripted(server_pki, tmp_path, OK, None, OK)
    assert run("POST", "POST") == [200, "EOF", ["POST", "POST"], 1]


def test_get_is_sent_again_after_a_kept_connection_failed(server_pki: Pki, tmp_path: Path) -> None:
    run = scripted(server_pki, tmp_path, OK, None, OK)
    assert run("GET", "GET") == [200, 200, ["GET", "GET", "GET"], 2]


def test_get_is_not_sent_again_on_a_new_connection(server_pki: Pki, tmp_path: Path) -> None:
    run = scripted(server_pki, tmp_path, None, OK)
    assert run("GET") == ["EOF", ["GET"], 1]


def test_post_after_the_server_closed_an_idle_connection_takes_a_new_one(
    backend: Backend, server_pki: Pki, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The event loop had no turn in which it could notice that the server closed the connection."""
    answered: list[Any] = []

    def answer(self: Any) -> None:
        self.rfile.read(int(self.headers["Content-Length"]))
        self.wfile.write(OK)
        self.close_connection = True
        answered.append(self.client_address)

    monkeypatch.setattr(backend.server.RequestHandlerClass, "do_POST", answer)
    trust = ssl.create_default_context(cafile=str(server_pki.path("ca.crt")))

    async def scenario() -> list[int]:
        pool, found = Pool(), []
        for _ in range(2):
            url = f"https://127.0.0.1:{backend.port}/"
            name = "scoops.backends.svc"
            code, _ = await post(url, b"{}", context=trust, timeout=5, server_hostname=name, pool=pool)
            found.append(code)
            time.sleep(0.3)  # noqa: ASYNC251
        await pool.close()
        return found

    assert asyncio.run(scenario()) == [200, 200]
    assert len(set(answered)) == 2
