"""Clients for tests of faults: raw requests with their own headers, watches, and HTTP/2."""

from __future__ import annotations

import http.client
import json
import socket
import ssl
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any

from kubist.model.meta.object import Object
from kubist.testing import Cluster
from tests.http.h2client import H2Client
from tests.live import Watch

FAULTS = "/kubist/v1/faults"
MAPS = "/api/v1/namespaces/default/configmaps"


def config_map(name: str, labels: dict[str, str] | None = None, **data: str) -> Object:
    metadata = {"name": name, "labels": labels or {}}
    return {"apiVersion": "v1", "kind": "ConfigMap", "metadata": metadata, "data": data}


def connect(cluster: Cluster, timeout: float = 30) -> http.client.HTTPSConnection:
    context = ssl.create_default_context(cafile=str(cluster.ca))
    return http.client.HTTPSConnection("127.0.0.1", cluster.port, context=context, timeout=timeout)


def ask(
    cluster: Cluster, method: str, path: str, body: Any = None, **headers: str
) -> tuple[int, Any, http.client.HTTPMessage]:
    """Status, JSON and headers of a response, on a connection of its own."""
    connection = connect(cluster)
    try:
        sent = {"Authorization": f"Bearer {cluster.token}", "Content-Type": "application/json"}
        sent |= {name.replace("_", "-"): value for name, value in headers.items()}
        connection.request(method, path, json.dumps(body) if body is not None else None, sent)
        response = connection.getresponse()
        return response.status, json.loads(response.read() or b"null"), response.headers
    finally:
        connection.close()


def code(cluster: Cluster, method: str, path: str, body: Any = None, **headers: str) -> int:
    return ask(cluster, method, path, body, **headers)[0]


@contextmanager
def watching(cluster: Cluster, path: str = MAPS, **headers: str) -> Iterator[Watch]:
    """Watch on a connection of its own."""
    connection = connect(cluster)
    try:
        path += ("&" if "?" in path else "?") + "watch=1"
        connection.request("GET", path, headers={"Authorization": f"Bearer {cluster.token}", **headers})
        yield Watch(connection.getresponse())
    finally:
        connection.close()


class _Serving:
    """Address of a cluster, as the HTTP/2 client of the tests needs it."""

    def __init__(self, cluster: Cluster) -> None:
        self._cluster = cluster
        self.pki = self

    def client(self, *, alpn: tuple[str, ...], certificate: object = None) -> ssl.SSLContext:
        context = ssl.create_default_context(cafile=str(self._cluster.ca))
        context.set_alpn_protocols(list(alpn))
        return context

    def socket(self, context: ssl.SSLContext) -> ssl.SSLSocket:
        raw = socket.create_connection(("127.0.0.1", self._cluster.port), timeout=30)
        return context.wrap_socket(raw, server_hostname="127.0.0.1")


def http2_client(cluster: Cluster) -> H2Client:
    return H2Client(_Serving(cluster))  # type: ignore[arg-type]


def authorization(cluster: Cluster) -> list[tuple[str, str]]:
    return [("authorization", f"Bearer {cluster.token}")]


def fails(call: Callable[[], object]) -> Exception:
    """The exception of a call whose connection is cut."""
    try:
        call()
    except (OSError, http.client.HTTPException) as error:
        return error
    raise AssertionError("the call did not fail")
