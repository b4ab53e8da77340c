"""An extension API server that delegates authentication and authorization, as those built on k8s.io/apiserver do.

It trusts the headers of a front proxy whose certificate the ConfigMap `extension-apiserver-authentication`
describes, and sends a SubjectAccessReview for every request of users who are not in system:masters.
"""

from __future__ import annotations

import base64
import json
import ssl
import threading
from collections.abc import Callable
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any

from kubist.base.http.tls.certificates import new_authority, save
from kubist.model.meta.object import Object

GROUP, VERSION = "ice.example.com", "v1"
PATH = f"/apis/{GROUP}/{VERSION}"
TRUST = "/api/v1/namespaces/kube-system/configmaps/extension-apiserver-authentication"
REVIEWS = "/apis/authorization.k8s.io/v1/subjectaccessreviews"
RESOURCES: Object = {
    "kind": "APIResourceList",
    "apiVersion": "v1",
    "groupVersion": f"{GROUP}/{VERSION}",
    "resources": [
        {
            "name": "flavours",
            "singularName": "flavour",
            "namespaced": False,
            "kind": "Flavour",
            "verbs": ["get"],
        }
    ],
}
Ask = Callable[[str, str, Any], Any]
"""(method, path, body) to the object in the response of the main API server."""


class Extension:
    """Extension server. `users` are the users of its requests, without those of the availability checks."""

    def __init__(self, ask: Ask, directory: Path) -> None:
        self._ask = ask
        self._data = ask("GET", TRUST, None)["data"]
        self.users: list[Object] = []
        authority = new_authority("extension")
        save(authority.issue_server(["scoops.backends.svc"]), directory / "e.crt", directory / "e.key")
        self.bundle = base64.b64encode(authority.cert_pem).decode()
        outer = self

        class Handler(BaseHTTPRequestHandler):
            protocol_version = "HTTP/1.1"

            def do_GET(self) -> None:
                user = outer.authenticate(self)
                if user["user"] != "system:kube-aggregator":
                    outer.users.append(user)
                allowed = outer.authorize(user, self.path)
                shown = RESOURCES if self.path == PATH else {"kind": "Flavour", "metadata": {"name": "mint"}}
                body = json.dumps(shown if allowed else {"kind": "Status", "code": 403}).encode()
                self.send_response(200 if allowed else 403)
                self.send_header("Content-Type", "application/json")
                self.send_header("Content-Length", str(len(body)))
                self.end_headers()
                self.wfile.write(body)

            def log_message(self, *args: Any) -> None:
                pass

        self._server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
        context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
        context.load_cert_chain(directory / "e.crt", directory / "e.key")
        context.load_verify_locations(cadata=self._data["requestheader-client-ca-file"])
        context.verify_mode = ssl.CERT_OPTIONAL
        self._server.socket = context.wrap_socket(self._server.socket, server_side=True)
        threading.Thread(target=self._server.serve_forever, args=(0.02,), daemon=True).start()
        self.port: int = self._server.server_address[1]

    def authenticate(self, request: BaseHTTPRequestHandler) -> Object:
        """User of a request: that of the headers if a front proxy sent it, else anonymous."""
        names = {key: json.loads(value) for key, value in self._data.items() if value.startswith("[")}
        connection = request.connection
        assert isinstance(connection, ssl.SSLSocket)
        subject = dict(part for (part,) in (connection.getpeercert() or {}).get("subject", ()))  # type: ignore
        if subject.get("commonName") not in names["requestheader-allowed-names"]:
            return {"user": "system:anonymous", "groups": ["system:unauthenticated"]}
        headers = request.headers
        user = next(headers[name] for name in names["requestheader-username-headers"] if name in headers)
        groups = [
            group for name in names["requestheader-group-headers"] for group in headers.get_all(name, [])
        ]
        extra = {
            name[len(prefix) :].lower(): headers.get_all(name)
            for prefix in names["requestheader-extra-headers-prefix"]
            for name in headers
            if name.lower().startswith(prefix.lower())
        }
        found: Object = {"user": user, "groups": groups, **({"extra": extra} if extra else {})}
        return found

    def authorize(self, user: Object, path: str) -> bool:
        if "system:masters" in user["groups"]:
            return True
        attributes = {"nonResourceAttributes": {"path": path, "verb": "get"}}
        if path != PATH:
            resource = {"group": GROUP, "version": VERSION, "resource": "flavours", "verb": "get"}
            attributes = {"resourceAttributes": resource}
        review = self._ask("POST", REVIEWS, {"spec": user | attributes})
        return bool(review["status"]["allowed"])

    def register(self) -> None:
        """Creates the Service and the APIService in the main API server."""
        self._ask("POST", "/api/v1/namespaces", {"metadata": {"name": "backends"}})
        target = {"type": "ExternalName", "externalName": "localhost"}
        self._ask(
            "POST", "/api/v1/namespaces/backends/services", {"metadata": {"name": "scoops"}, "spec": target}
        )
        spec = {
            "group": GROUP,
            "version": VERSION,
            "groupPriorityMinimum": 100,
            "versionPriority": 10,
            "service": {"namespace": "backends", "name": "scoops", "port": self.port},
            "caBundle": self.bundle,
        }
        services = "/apis/apiregistration.k8s.io/v1/apiservices"
        self._ask("POST", services, {"metadata": {"name": f"{VERSION}.{GROUP}"}, "spec": spec})

    def is_available(self) -> bool:
        path = f"/apis/apiregistration.k8s.io/v1/apiservices/{VERSION}.{GROUP}"
        conditions = self._ask("GET", path, None).get("status", {}).get("conditions") or [{}]
        return bool(conditions[0].get("status") == "True")

    def stop(self) -> None:
        self._server.shutdown()
        self._server.server_close()
