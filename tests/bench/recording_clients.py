"""Clients for tests of recordings."""

from __future__ import annotations

import json
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

from kubist.model.meta.object import Object
from kubist.testing import Cluster
from tests.bench.fault_clients import connect
from tests.live import Watch

RECORDINGS = "/kubist/v1/recordings"


def lines(cluster: Cluster, path: str) -> list[Object]:
    """Lines of a recording that is read once."""
    with following(cluster, path) as found:
        return list(found)


@contextmanager
def following(cluster: Cluster, path: str) -> Iterator[Iterator[Object]]:
    """Lines of a recording as they arrive, on a connection of its own."""
    connection = connect(cluster)
    try:
        connection.request("GET", path, headers={"Authorization": f"Bearer {cluster.token}"})
        response = connection.getresponse()
        assert response.status == 200, response.read()
        assert response.headers["Content-Type"] == "application/jsonl"
        yield (json.loads(line) for line in response)
    finally:
        connection.close()


@contextmanager
def recording(cluster: Cluster, **spec: Any) -> Iterator[str]:
    """Path of a recording."""
    path = f"{RECORDINGS}/{cluster.request('POST', RECORDINGS, spec)['id']}"
    yield path
    cluster.request("DELETE", path)


def until(watch: Watch, name: str) -> None:
    """Reads events up to one of this object."""
    assert any(event["object"]["metadata"].get("name") == name for event in watch)
