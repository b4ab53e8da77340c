"""An API server to aggregate: HTTPS server of the standard library that serves flavours of ice cream."""

from __future__ import annotations

import base64
import contextlib
import json
import queue
import socket
import ssl
import threading
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any

from kubist.base.http.tls.certificates import load_authority, save
from kubist.model.meta.object import Object
from tests.live import Client, Pki

GROUP, VERSION = "ice.example.com", "v1"
PATH = f"/apis/{GROUP}/{VERSION}"
APISERVICES = "/apis/apiregistration.k8s.io/v1/apiservices"
NAME = f"{VERSION}.{GROUP}"
SERVED = {
    "kind": "APIResourceList",
    "apiVersion": "v1",
    "groupVersion": f"{GROUP}/{VERSION}",
    "resources": [
        {
            "name": "flavours",
            "singularName": "flavour",
            "namespaced": True,
            "kind": "Flavour",
            "verbs": ["create", "get", "list", "watch"],
            "shortNames": ["fl"],
        },
        {
            "name": "flavours/status",
            "singularName": "",
            "namespaced": True,
            "kind": "Flavour",
            "verbs": ["get"],
        },
    ],
}


class Backend:
    """Records its requests, except availability checks."""

    def __init__(self, pki: Pki, directory: Path, service: str = "scoops.backends.svc") -> None:
        self.asked: list[tuple[str, str, list[tuple[str, str]], bytes]] = []
        self.events: queue.Queue[Object | None] = queue.Queue()
        self.certificates: list[Any] = []
        self.sockets: list[socket.socket] = []
        self.connections: set[Any] = set()
        """Client addresses of its connections."""
        self.left = threading.Event()
        """Set when the watching client disconnected."""
        authority = load_authority(pki.path("ca.crt"), pki.path("ca.key"))
        save(authority.issue_server([service]), directory / "b.crt", directory / "b.key")
        outer = self

        class Handler(BaseHTTPRequestHandler):
            protocol_version = "HTTP/1.1"

            def setup(self) -> None:
                super().setup()
                outer.sockets.append(self.connection)

            def answer(self) -> None:
                body = self.rfile.read(int(self.headers.get("Content-Length") or 0))
                outer.certificates.append(self.connection.getpeercert())
                if self.headers["X-Remote-User"] != "system:kube-aggregator":
                    outer.connections.add(self.client_address)
                    outer.asked.append((self.command, self.path, self.headers.items(), body))
                if self.path == PATH:
                    self.send(200, SERVED)
                elif "watch=1" in self.path:
                    self.watch()
                elif self.headers["Upgrade"]:
                    self.echo()
                elif self.path.endswith("/large"):
                    self.send(200, {"kind": "Flavour", "data": "x" * 3_000_000})
                elif self.path.endswith("/teapot"):
                    self.send(418, {"kind": "Status", "code": 418})
                elif self.command == "POST":
                    self.send(201, json.loads(body))
                else:
                    self.send(200, {"kind": "Flavour", "metadata": {"name": "vanilla"}})

            do_GET = do_POST = do_PUT = do_PATCH = do_DELETE = answer

            def send(self, code: int, document: Object) -> None:
                body = json.dumps(document).encode()
                self.send_response(code)
                self.send_header("Content-Type", "application/json")
                self.send_header("Content-Length", str(len(body)))
                self.send_header("X-Flavour", "lemon")
                self.end_headers()
                self.wfile.write(body)

            def echo(self) -> None:
                """Switches to another protocol: echoes all input in capitals."""
                self.send_response(101)
                self.send_header("Connection", "Upgrade")
                self.send_header("Upgrade", self.headers["Upgrade"])
                self.send_header("X-Flavour", "lemon")
                self.end_headers()
                while data := self.connection.recv(65536):
                    self.connection.sendall(data.upper())
                outer.left.set()
                self.close_connection = True

            def watch(self) -> None:
                self.send_response(200)
                self.send_header("Content-Type", "application/json")
                self.send_header("Transfer-Encoding", "chunked")
                self.end_headers()
                try:
                    while (event := outer.events.get()) is not None:
                        line = json.dumps(event).encode() + b"\n"
                        self.wfile.write(b"%x\r\n%b\r\n" % (len(line), line))
                    self.wfile.write(b"0\r\n\r\n")
                except OSError:
                    outer.left.set()
                    self.close_connection = True

            def log_message(self, *args: Any) -> None:
                pass

        self.server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
        context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
        context.load_cert_chain(directory / "b.crt", directory / "b.key")
        context.load_verify_locations(pki.path("ca.crt"))
        context.verify_mode = ssl.CERT_OPTIONAL
        self.server.socket = context.wrap_socket(self.server.socket, server_side=True)
        self.thread = threading.Thread(target=self.server.serve_forever, args=(0.02,), daemon=True)
        self.thread.start()
        self.port: int = self.server.server_address[1]
        self.bundle = base64.b64encode(pki.path("ca.crt").read_bytes()).decode()

    def stop(self) -> None:
        self.events.put(None)
        self.server.shutdown()
        self.server.server_close()
        for connection in self.sockets:
            with contextlib.suppress(OSError):
                connection.shutdown(socket.SHUT_RDWR)


def service(client: Client, name: str = "scoops", **spec: Any) -> None:
    client.ask("POST", "/api/v1/namespaces", {"metadata": {"name": "backends"}})
    client.post(
        "/api/v1/namespaces/backends/services",
        {"metadata": {"name": name}, "spec": spec or {"type": "ExternalName", "externalName": "localhost"}},
    )


def register(client: Client, port: int, **spec: Any) -> None:
    where = {"namespace": "backends", "name": "scoops", "port": port}
    body = {"group": GROUP, "version": VERSION, "groupPriorityMinimum": 100, "versionPriority": 10}
    client.post(APISERVICES, {"metadata": {"name": NAME}, "spec": {**body, "service": where, **spec}})


def condition(client: Client) -> Object:
    """Present Available condition."""
    conditions = client.get(f"{APISERVICES}/{NAME}").get("status", {}).get("conditions") or [{}]
    found: Object = conditions[0]
    return found
