"""HTTPS server on loopback that runs the webhooks of one cluster. Its certificate is signed by a CA made for it."""

from __future__ import annotations

import asyncio
import base64
import contextlib
import json
import tempfile
import threading
from pathlib import Path
from typing import Any

from kubist.base.http.limits import Limits
from kubist.base.http.messages import Request, Response
from kubist.base.http.server import HttpServer
from kubist.base.http.tls import certificates
from kubist.base.http.tls.contexts import HTTP1, server_context
from kubist.model.meta.object import Object
from kubist.testing.webhooks.hook import Hook

BODY_BYTES = 16 << 20
"""Maximum size of a review in bytes. It has the new and the old object, and each may have 3 MB."""
GRACE = 1.0
"""Seconds that calls may take while the server stops."""


class HttpsServer:
    """Runs in the event loop of the cluster. Each call gets a thread, so functions may block and use the cluster."""

    def __init__(self) -> None:
        authority = certificates.new_authority("kubist-webhooks")
        self.ca_bundle = base64.b64encode(authority.cert_pem).decode()
        self._pair = authority.issue_server(["127.0.0.1", "localhost"])
        self._files = tempfile.TemporaryDirectory(prefix="kubist-webhooks-")
        self._hooks: dict[str, Hook[Any]] = {}
        self._port = 0
        self._server: HttpServer | None = None

    async def start(self) -> None:
        cert, key = (Path(self._files.name) / name for name in ("tls.crt", "tls.key"))
        certificates.save(self._pair, cert, key)
        context = server_context(cert, key, alpn=HTTP1)
        self._server = HttpServer(self._serve, ssl_context=context, limits=Limits(body_bytes=BODY_BYTES))
        self._port = await self._server.start()

    async def stop(self) -> None:
        if self._server is not None:
            await self._server.stop(GRACE)
            self._server = None
        self._files.cleanup()

    def add(self, hook: Hook[Any]) -> None:
        self._hooks[_path(hook)] = hook

    def remove(self, hook: Hook[Any]) -> None:
        self._hooks.pop(_path(hook), None)

    def client_config(self, hook: Hook[Any]) -> Object:
        """`clientConfig` of a webhook: its URL and the CA."""
        return {"url": f"https://127.0.0.1:{self._port}{_path(hook)}", "caBundle": self.ca_bundle}

    async def _serve(self, request: Request) -> Response:
        hook = self._hooks.get(request.path)
        if hook is None:
            return _text(404, "no such webhook; it was removed")
        if request.method != "POST":
            return _text(405, "a webhook takes POST")
        if request.body_too_large:
            return _text(413, f"the review is larger than {BODY_BYTES} bytes")
        return await _run_in_thread(hook, request.body)


def _path(hook: Hook[Any]) -> str:
    return f"/{hook.kind.replace(' ', '-')}/{hook.name}"


async def _run_in_thread(hook: Hook[Any], body: bytes) -> Response:
    """Response of a hook. A thread for each call, not a pool: functions wait for requests that call other webhooks."""
    loop = asyncio.get_running_loop()
    done: asyncio.Future[Response] = loop.create_future()

    def finish(response: Response) -> None:
        if not done.done():
            done.set_result(response)

    def work() -> None:
        response = _answer(hook, body)
        with contextlib.suppress(RuntimeError):  # the cluster stopped meanwhile
            loop.call_soon_threadsafe(finish, response)

    threading.Thread(target=work, name=f"kubist-{hook.name}", daemon=True).start()
    return await done


def _answer(hook: Hook[Any], body: bytes) -> Response:
    try:
        review = json.loads(body)
    except ValueError as error:
        return _text(400, f"the body is not JSON: {error}")
    try:
        answer = json.dumps(hook.answer(review)).encode()
    except BaseException as error:  # pytest.fail raises no Exception
        return _text(500, hook.note_error(error))
    return Response(200, [(b"Content-Type", b"application/json")], answer)


def _text(code: int, text: str) -> Response:
    return Response(code, [(b"Content-Type", b"text/plain; charset=utf-8")], text.encode())
