"""The sockets that workers listen on: one port for all, connections spread over them by the kernel."""

from __future__ import annotations

import socket
import sys

from kubist.server import bound


def listening(address: str, port: int, count: int) -> list[socket.socket]:
    """A bound socket for each worker. Fails like any other server where the port is taken."""
    first = bound(address, port)
    if sys.platform != "linux":  # elsewhere SO_REUSEPORT shares a port, but not the connections
        return [first, *(first.dup() for _ in range(count - 1))]
    # Without SO_REUSEPORT first: with it alone the port of another server could be shared by mistake.
    port = first.getsockname()[1]
    first.close()
    return [bound(address, port, shared=True) for _ in range(count)]
