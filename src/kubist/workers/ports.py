"""The sockets that workers listen on: one port for all, connections spread over them by the kernel."""

from __future__ import annotations

import socket
import sys
from typing import Any

from kubist.server import bound


def listening(address: str, port: int, count: int) -> list[socket.socket]:
    """A bound socket for each worker. Fails like any other server where the port is taken."""
    first = bound(address, port)
    if sys.platform != "linux":  # elsewhere SO_REUSEPORT shares a port, but not the connections
        return [first, *(first.dup() for _ in range(count - 1))]
    # Without SO_REUSEPORT first: with it alone the port of another server could be shared by mistake.
    where = first.getsockname()
    first.close()
    return [_shared(first.family, where) for _ in range(count)]


def _shared(family: int, where: tuple[Any, ...]) -> socket.socket:
    sock = socket.socket(family, socket.SOCK_STREAM)
    try:
        sock.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        sock.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEPORT, 1)
        if family == socket.AF_INET6:
            sock.setsockopt(socket.IPPROTO_IPV6, socket.IPV6_V6ONLY, 0)
        sock.bind(where)
    except OSError:
        sock.close()
        raise
    return sock
