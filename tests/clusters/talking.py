"""Connections to a cluster below /clusters/NAME."""

from __future__ import annotations

import http.client
import json
import ssl
from collections.abc import Iterator
from contextlib import contextmanager

from kubist.testing import Cluster


@contextmanager
def connection(cluster: Cluster) -> Iterator[http.client.HTTPSConnection]:
    context = ssl.create_default_context(cafile=str(cluster.ca))
    made = http.client.HTTPSConnection("127.0.0.1", cluster.port, context=context, timeout=30)
    try:
        yield made
    finally:
        made.close()


@contextmanager
def open_watch(cluster: Cluster, path: str) -> Iterator[http.client.HTTPResponse]:
    """Response of a watch whose initial events are read."""
    query = (
        "watch=1&timeoutSeconds=600&sendInitialEvents=true&resourceVersionMatch=NotOlderThan"
        "&allowWatchBookmarks=true"
    )
    with connection(cluster) as made:
        headers = {"Authorization": f"Bearer {cluster.token}"}
        made.request("GET", f"{cluster._prefix}{path}?{query}", headers=headers)
        response = made.getresponse()
        assert response.status == 200, response.read()
        while json.loads(response.readline())["type"] != "BOOKMARK":
            pass
        yield response
