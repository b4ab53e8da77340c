"""Server without a listener: requests go directly to the application, webhooks use real HTTPS."""

from __future__ import annotations

import asyncio
import base64
import contextlib
import json
import ssl
import threading
from collections.abc import Callable, Coroutine, Iterator
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any

import pytest
import yaml

from kubist.api.config import Config
from kubist.base.http.messages import Request, Response
from kubist.base.http.tls.certificates import new_authority, save
from kubist.model.meta.object import Object
from kubist.server.server import Server


class Answer:
    """Response as a client gets it: status code, body, warnings."""

    def __init__(self, response: Response) -> None:
        body = response.body if isinstance(response.body, bytes) else b"".join(response.body)
        self.code = response.status
        self.body: Object = json.loads(body)
        self.warnings = [value.decode() for name, value in response.headers if name == b"Warning"]

    @property
    def message(self) -> str:
        message: str = self.body.get("message", "")
        return message


class Client:
    """Client of one server, as one user."""

    def __init__(self, server: Server, token: str = "admin-token") -> None:
        self.server = server
        self.token = token

    def as_(self, token: str) -> Client:
        return Client(self.server, token)

    async def request(
        self, method: str, path: str, body: Any = None, content_type: str = "application/json"
    ) -> Answer:
        path, _, query = path.partition("?")
        headers = {"authorization": f"Bearer {self.token}", "content-type": content_type}
        sent = yaml.safe_load(body) if isinstance(body, str) else body
        raw = json.dumps(sent).encode() if sent is not None else b""
        response = await self.server.api(Request(method, path, query, headers, raw))
        assert isinstance(response, Response)
        return Answer(response)

    async def get(self, path: str) -> Answer:
        return await self.request("GET", path)

    async def post(self, path: str, body: Any) -> Answer:
        return await self.request("POST", path, body)

    async def put(self, path: str, body: Any) -> Answer:
        return await self.request("PUT", path, body)

    async def patch(self, path: str, body: Any) -> Answer:
        return await self.request("PATCH", path, body, "application/merge-patch+json")

    async def delete(self, path: str, body: Any = None) -> Answer:
        return await self.request("DELETE", path, body)


Test = Callable[[Client], Coroutine[Any, Any, None]]


@pytest.fixture
def run(tmp_path: Path) -> Callable[..., None]:
    """Runs a test against a new server with an in-memory store. Keyword arguments configure the server."""

    def runner(test: Test, **options: Any) -> None:
        tokens = tmp_path / "tokens"
        tokens.write_text('admin-token,admin,u1,"system:masters"\ndev-token,dev,u2,"devs"\n')
        settings: dict[str, Any] = {
            "bind_address": "127.0.0.1",
            "secure_port": 0,
            "cert_dir": str(tmp_path),
            "token_auth_file": str(tokens),
            "allow_privileged": True,
            "disable_admission_plugins": ("ServiceAccount",),
        }

        async def main() -> None:
            server = Server(Config(**{**settings, **options}))
            await server.start()
            try:
                await test(Client(server))
            finally:
                await server.stop(0.1)

        asyncio.run(main())

    return runner


class WebhookServer:
    """HTTPS server that responds to AdmissionReviews with the result of `respond`."""

    def __init__(self, directory: Path) -> None:
        authority = new_authority("test")
        pair = authority.issue_server(["localhost", "127.0.0.1", "hook.default.svc"])
        save(pair, directory / "hook.crt", directory / "hook.key")
        self.ca_bundle = base64.b64encode(authority.cert_pem).decode()
        self.reviews: list[Object] = []
        self.paths: list[str] = []
        self.respond: Callable[[Object], Object] = lambda request: {"allowed": True}
        self.raw: bytes | None = None
        self.redirects: dict[str, tuple[int, str]] = {}
        """Path → status and Location of the response."""
        self.seen: list[tuple[str, str, Any]] = []
        """Method, path without query, and headers of all requests."""
        hooks = self

        class Handler(BaseHTTPRequestHandler):
            def redirected(self) -> bool:
                path = self.path.partition("?")[0]
                hooks.seen.append((self.command, path, self.headers))
                if path not in hooks.redirects:
                    return False
                self.rfile.read(int(self.headers["Content-Length"] or 0))
                status, location = hooks.redirects[path]
                self.send_response(status)
                if location:
                    self.send_header("Location", location)
                self.send_header("Content-Length", "0")
                self.end_headers()
                return True

            def do_GET(self) -> None:
                if not self.redirected():
                    self.send_response(200)
                    self.send_header("Content-Length", "2")
                    self.end_headers()
                    self.wfile.write(b"{}")

            def do_POST(self) -> None:
                if self.redirected():
                    return
                review = json.loads(self.rfile.read(int(self.headers["Content-Length"])))
                hooks.paths.append(self.path)
                hooks.reviews.append(review)
                body = hooks.raw
                if body is None:
                    response = {"uid": review["request"]["uid"], **hooks.respond(review["request"])}
                    body = json.dumps({**review, "request": None, "response": response}).encode()
                with contextlib.suppress(OSError):
                    self.send_response(200)
                    self.send_header("Content-Length", str(len(body)))
                    self.end_headers()
                    self.wfile.write(body)

            def log_message(self, *_: Any) -> None:
                pass

        class Quiet(ThreadingHTTPServer):
            daemon_threads = True

            def handle_error(self, *_: Any) -> None:
                pass

        self._http = Quiet(("127.0.0.1", 0), Handler)
        context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
        context.load_cert_chain(directory / "hook.crt", directory / "hook.key")
        self._http.socket = context.wrap_socket(self._http.socket, server_side=True)
        self.port = self._http.server_address[1]
        self._thread = threading.Thread(target=self._http.serve_forever, args=(0.01,), daemon=True)
        self._thread.start()

    @property
    def requests(self) -> list[Object]:
        return [review["request"] for review in self.reviews]

    def client_config(self, path: str = "/hook") -> Object:
        return {"url": f"https://127.0.0.1:{self.port}{path}", "caBundle": self.ca_bundle}

    def stop(self) -> None:
        self._http.shutdown()
        self._http.server_close()
        self._thread.join()


@pytest.fixture
def hook(tmp_path: Path) -> Iterator[WebhookServer]:
    server = WebhookServer(tmp_path)
    yield server
    server.stop()


def json_patch(*operations: Object) -> Object:
    """Response that allows the request and patches the object."""
    patch = base64.b64encode(json.dumps(operations).encode()).decode()
    return {"allowed": True, "patchType": "JSONPatch", "patch": patch}


def webhook(hook: WebhookServer, *operations: str, **fields: Any) -> Object:
    """Webhook for v1 configmaps."""
    rule = {"apiGroups": [""], "apiVersions": ["v1"], "resources": ["configmaps"], "operations": operations}
    return {
        "name": "hook.example.com",
        "clientConfig": hook.client_config(),
        "rules": [rule],
        "sideEffects": "None",
        "admissionReviewVersions": ["v1"],
        **fields,
    }


def configuration(kind: str, *webhooks: Object, name: str = "hooks") -> Object:
    return {
        "apiVersion": "admissionregistration.k8s.io/v1",
        "kind": kind,
        "metadata": {"name": name},
        "webhooks": list(webhooks),
    }
