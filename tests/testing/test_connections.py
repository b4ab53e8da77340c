"""Connections of a test to its cluster."""

from __future__ import annotations

import select
import threading

from kubist.testing import Cluster
from kubist.testing.connections import Connections

VERSION = "/version"


def headers(cluster: Cluster) -> dict[str, str]:
    return {"Authorization": f"Bearer {cluster.token}"}


def test_connection_that_the_server_closed_is_replaced(kubist_server: Cluster) -> None:
    connections = Connections(kubist_server.ca, kubist_server.url)
    assert connections.send("GET", VERSION, None, headers(kubist_server))[0] == 200
    kept = connections._idle[0].sock
    kept.sendall(b"GET /livez HTTP/1.1\r\nHost: x\r\nConnection: close\r\n\r\n")
    read = b""
    while not read.endswith(b"ok"):
        read += kept.recv(65536)
    assert select.select([kept], [], [], 30)[0], "the server ends the connection, as it ends an idle one"
    assert connections.send("GET", VERSION, None, headers(kubist_server))[0] == 200
    connections.close()


def test_threads_do_not_share_a_connection_at_the_same_time(cluster: Cluster) -> None:
    found: list[int] = []

    def ask() -> None:
        for _ in range(20):
            found.append(len(cluster.list("namespaces")))

    threads = [threading.Thread(target=ask) for _ in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert len(found) == 80 and set(found) == {4}


def test_threads_one_after_the_other_use_one_connection(cluster: Cluster) -> None:
    for _ in range(5):
        thread = threading.Thread(target=cluster.list, args=("namespaces",))
        thread.start()
        thread.join()
    assert len(cluster._connections._idle) == 1
