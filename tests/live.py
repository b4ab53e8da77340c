"""Real server for tests: TLS on a real socket in its own thread, and a small client."""

from __future__ import annotations

import asyncio
import contextlib
import dataclasses
import http.client
import json
import socket
import ssl
import threading
import time
from collections.abc import Coroutine, Iterator
from pathlib import Path
from typing import Any, TypeVar

import uvloop
import yaml

from kubist.api.config import Config
from kubist.base.http.tls.certificates import new_authority, save
from kubist.model.meta.object import Object
from kubist.server.server import Server

T = TypeVar("T")
TOKEN = "admin-token"
TOKENS = f'{TOKEN},admin,u-admin,"system:masters"\ndev-token,dev,u-dev,"devs"\n'
MERGE = "application/merge-patch+json"


class Pki:
    """Certificates, tokens and a signing key that the servers of a test session share."""

    def __init__(self, directory: Path) -> None:
        self.directory = directory
        authority = new_authority("test-ca")
        authority.save(self.path("ca.crt"), self.path("ca.key"))
        pair = authority.issue_server(["localhost", "127.0.0.1", "::1"])
        save(pair, self.path("tls.crt"), self.path("tls.key"))
        admin = authority.issue_client("admin", ["system:masters"])
        save(admin, self.path("admin.crt"), self.path("admin.key"))
        self.path("tokens.csv").write_text(TOKENS)

    def path(self, name: str) -> Path:
        return self.directory / name

    def config(self, **changes: Any) -> Config:
        base = Config(
            bind_address="127.0.0.1",
            secure_port=0,
            tls_cert_file=str(self.path("tls.crt")),
            tls_private_key_file=str(self.path("tls.key")),
            client_ca_file=str(self.path("ca.crt")),
            token_auth_file=str(self.path("tokens.csv")),
            authorization_mode=("RBAC",),
            disable_admission_plugins=("ServiceAccount",),
            service_account_issuer=("https://kubernetes.default.svc",),
            service_account_signing_key_file=str(self.path("tls.key")),
        )
        return dataclasses.replace(base, **changes)

    def kubeconfig(self, port: int, path: Path) -> Path:
        cluster = {"server": f"https://127.0.0.1:{port}", "certificate-authority": str(self.path("ca.crt"))}
        document = {
            "apiVersion": "v1",
            "kind": "Config",
            "clusters": [{"name": "test", "cluster": cluster}],
            "users": [{"name": "test", "user": {"token": TOKEN}}],
            "contexts": [{"name": "test", "context": {"cluster": "test", "user": "test"}}],
            "current-context": "test",
        }
        path.write_text(yaml.safe_dump(document))
        return path


class Live:
    """Server in a background thread."""

    def __init__(self, pki: Pki, **config: Any) -> None:
        self.pki = pki
        self.loop = uvloop.new_event_loop()
        self.thread = threading.Thread(target=self.loop.run_forever, daemon=True)
        self.thread.start()
        self.server: Server = self.run(self._make(pki.config(**config)))
        self.cache = self.server.registry.cache

    async def _make(self, config: Config) -> Server:
        return Server(config)

    def __enter__(self) -> Live:
        self.run(self.server.start())
        self.client = Client(self.server.port, self.pki)
        return self

    def __exit__(self, *_: object) -> None:
        self.client.close()
        self.run(self.server.stop(0.1))
        self.loop.call_soon_threadsafe(self.loop.stop)
        self.thread.join()
        self.loop.close()

    def run(self, work: Coroutine[Any, Any, T]) -> T:
        return asyncio.run_coroutine_threadsafe(work, self.loop).result(30)


class Answer:
    def __init__(self, response: http.client.HTTPResponse) -> None:
        self.status = response.status
        self.headers = response.headers
        self.body = response.read()

    @property
    def json(self) -> Any:
        return json.loads(self.body)

    def __repr__(self) -> str:
        return f"{self.status} {self.body[:2000].decode(errors='replace')}"


class Client:
    """HTTP/1.1 client on kept connections. Any number of threads may use it."""

    def __init__(self, port: int, pki: Pki, token: str = TOKEN) -> None:
        self.port = port
        self.token = token
        self._tls = ssl.create_default_context(cafile=str(pki.path("ca.crt")))
        self._idle: list[tuple[float, http.client.HTTPSConnection]] = []

    def connect(self, timeout: float = 20) -> http.client.HTTPSConnection:
        connection = http.client.HTTPSConnection("127.0.0.1", self.port, timeout=timeout, context=self._tls)
        connection.connect()
        connection.sock.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        return connection

    def headers(self, **more: str) -> dict[str, str]:
        return {"Authorization": f"Bearer {self.token}", **more}

    def ask(self, method: str, path: str, body: Any = None, content_type: str = "application/json") -> Answer:
        """Sends a request and returns the response with any status."""
        connection = self._kept() or self.connect()
        raw = body if isinstance(body, bytes) or body is None else json.dumps(body).encode()
        try:
            connection.request(method, path, raw, self.headers(**{"Content-Type": content_type}))
            response = connection.getresponse()
            answer = Answer(response)
        except BaseException:
            connection.close()
            raise
        if response.will_close:
            connection.close()
        else:
            self._idle.append((time.monotonic(), connection))
        return answer

    def _kept(self) -> http.client.HTTPSConnection | None:
        """Kept connection that the server has not closed."""
        while self._idle:
            since, connection = self._idle.pop()
            if time.monotonic() - since < 30:
                return connection
            connection.close()
        return None

    def close(self) -> None:
        while self._idle:
            self._idle.pop()[1].close()

    def get(self, path: str) -> Any:
        answer = self.ask("GET", path)
        assert answer.status == 200, answer
        return answer.json

    def post(self, path: str, body: Any) -> Any:
        answer = self.ask("POST", path, body)
        assert answer.status == 201, answer
        return answer.json

    def put(self, path: str, body: Any) -> Any:
        answer = self.ask("PUT", path, body)
        assert answer.status in (200, 201), answer
        return answer.json

    def patch(self, path: str, body: Any, content_type: str = MERGE) -> Any:
        answer = self.ask("PATCH", path, body, content_type)
        assert answer.status == 200, answer
        return answer.json

    def delete(self, path: str, body: Any = None) -> Any:
        answer = self.ask("DELETE", path, body)
        assert answer.status in (200, 202), answer
        return answer.json

    @contextlib.contextmanager
    def watch(self, path: str, timeout: float = 20, **headers: str) -> Iterator[Watch]:
        """Watch on its own connection. `path` may have a query."""
        connection = self.connect(timeout)
        try:
            path += ("&" if "?" in path else "?") + "watch=1"
            connection.request("GET", path, headers=self.headers(**headers))
            yield Watch(connection.getresponse())
        finally:
            connection.close()


class Watch:
    """Events of a watch."""

    def __init__(self, response: http.client.HTTPResponse) -> None:
        self.response = response
        self.status = response.status

    def next(self) -> Object | None:
        """Next event. None if the server has ended the stream."""
        line = self.response.readline()
        event: Object | None = json.loads(line) if line else None
        return event

    def __iter__(self) -> Iterator[Object]:
        while (event := self.next()) is not None:
            yield event

    def take(self, count: int) -> list[Object]:
        events: list[Object] = []
        for _ in range(count):
            event = self.next()
            assert event is not None, f"the stream ended after {len(events)} events"
            events.append(event)
        return events


def configmap(name: str, namespace: str = "default", **data: str) -> Object:
    return {
        "apiVersion": "v1",
        "kind": "ConfigMap",
        "metadata": {"name": name, "namespace": namespace},
        "data": data,
    }


def version(obj: Object) -> int:
    return int(obj["metadata"]["resourceVersion"])


def seen(event: Object) -> tuple[str, str, int]:
    """Type, name and resourceVersion of an event."""
    return event["type"], event["object"]["metadata"]["name"], version(event["object"])


def concurrently(*work: Any, timeout: float = 60) -> list[Any]:
    """Runs functions in threads and returns their results. Raises the first failure."""
    results: list[Any] = [None] * len(work)
    failures: list[BaseException] = []

    def run(index: int, function: Any) -> None:
        try:
            results[index] = function()
        except BaseException as error:
            failures.append(error)

    threads = [threading.Thread(target=run, args=pair, daemon=True) for pair in enumerate(work)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(timeout)
        assert not thread.is_alive() or failures, "still at work"
    if failures:
        raise failures[0]
    return results
