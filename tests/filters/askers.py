"""Users, permissions for them, and a remote webhook service."""

from __future__ import annotations

import http.server
import json
import os
import ssl
import threading
from collections.abc import Callable
from typing import Any

from kubist.base.http.messages import Request, Response
from kubist.model.meta.object import Object
from tests.live import Answer, Client, Live, Pki


class Person(Client):
    """Client with its own headers."""

    def __init__(self, live: Live, token: str = "", **headers: str) -> None:
        super().__init__(live.server.port, live.pki, token)
        self.more = {name.replace("_", "-"): value for name, value in headers.items()}

    def headers(self, **more: str) -> dict[str, str]:
        known = {"Authorization": f"Bearer {self.token}"} if self.token else {}
        return {**known, **self.more, **more}

    def ask(self, method: str, path: str, body: Any = None, content_type: str = "application/json") -> Answer:
        try:
            return super().ask(method, path, body, content_type)
        finally:
            self.close()

    def may(self, verb: str, resource: str, **attributes: str) -> bool:
        group, _, plural = resource.rpartition("/")
        asked = {"verb": verb, "group": group, "resource": plural, **attributes}
        review = {"spec": {"resourceAttributes": asked}}
        path = "/apis/authorization.k8s.io/v1/selfsubjectaccessreviews"
        allowed: bool = self.post(path, review)["status"]["allowed"]
        return allowed

    def whoami(self) -> Object:
        path = "/apis/authentication.k8s.io/v1/selfsubjectreviews"
        info: Object = self.post(path, {})["status"]["userInfo"]
        return info


def rbac(kind: str) -> str:
    return f"/apis/rbac.authorization.k8s.io/v1/{kind}"


def grant(admin: Client, to: Object, *rules: Object, namespace: str = "") -> str:
    """Creates a role with these rules and binds it to a subject. Returns its name."""
    name = f"test-{os.urandom(4).hex()}"
    where = f"namespaces/{namespace}/" if namespace else ""
    kind = "Role" if namespace else "ClusterRole"
    admin.post(rbac(f"{where}{kind.lower()}s"), {"metadata": {"name": name}, "rules": list(rules)})
    bind(admin, to, kind, name, namespace)
    return name


def bind(admin: Client, to: Object, kind: str, role: str, namespace: str = "") -> str:
    name = f"test-{os.urandom(4).hex()}"
    where = f"namespaces/{namespace}/rolebindings" if namespace else "clusterrolebindings"
    ref = {"apiGroup": "rbac.authorization.k8s.io", "kind": kind, "name": role}
    admin.post(rbac(where), {"metadata": {"name": name}, "roleRef": ref, "subjects": [to]})
    return name


def user(name: str) -> Object:
    return {"kind": "User", "name": name, "apiGroup": "rbac.authorization.k8s.io"}


def group(name: str) -> Object:
    return {"kind": "Group", "name": name, "apiGroup": "rbac.authorization.k8s.io"}


def ask(live: Live, method: str, path: str, token: str = "", body: bytes = b"", **headers: str) -> Response:
    """Sends a request directly to the application, without a socket."""
    raw, _, query = path.partition("?")
    told = {name.replace("_", "-"): value for name, value in headers.items()}
    if token:
        told["authorization"] = f"Bearer {token}"
    answer = live.run(live.server.api(Request(method, raw, query, told, body)))
    assert isinstance(answer, Response)
    return answer


def body_of(answer: Response) -> bytes:
    assert isinstance(answer.body, bytes)
    return answer.body


class Remote:
    """HTTPS service on a real socket: responds by path and records the requests."""

    def __init__(self, pki: Pki) -> None:
        self.answers: dict[str, Callable[[Object], Object | int]] = {}
        self.asked: list[tuple[str, Object, dict[str, str]]] = []
        remote = self

        class Handler(http.server.BaseHTTPRequestHandler):
            def _answer(self) -> None:
                raw = self.rfile.read(int(self.headers.get("Content-Length", 0)))
                body = json.loads(raw) if raw else {}
                remote.asked.append((self.path, body, dict(self.headers)))
                answer = remote.answers.get(self.path)
                found = 404 if answer is None else answer(body)
                shown = json.dumps(found if isinstance(found, dict) else {}).encode()
                self.send_response(found if isinstance(found, int) else 200)
                self.send_header("Content-Type", "application/json")
                self.send_header("Content-Length", str(len(shown)))
                self.end_headers()
                self.wfile.write(shown)

            do_GET = do_POST = _answer

            def log_message(self, *_: object) -> None: ...

        self._server = http.server.ThreadingHTTPServer(("127.0.0.1", 0), Handler)
        context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
        context.load_cert_chain(pki.path("tls.crt"), pki.path("tls.key"))
        self._server.socket = context.wrap_socket(self._server.socket, server_side=True)
        self.url = f"https://127.0.0.1:{self._server.server_port}"
        self._thread = threading.Thread(target=self._server.serve_forever, args=(0.01,), daemon=True)
        self._thread.start()

    def close(self) -> None:
        self._server.shutdown()
        self._server.server_close()
        self._thread.join()
