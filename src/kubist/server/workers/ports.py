"""Listening sockets of workers: one port for all, connections distributed by the kernel."""

from __future__ import annotations

import socket
import sys

from kubist.base.listening import bound


def listening(address: str, port: int, count: int) -> list[socket.socket]:
    """One bound socket per worker. Raises OSError if the port is taken."""
    first = bound(address, port)
    if sys.platform != "linux":  # elsewhere SO_REUSEPORT does not distribute connections
        return [first, *(first.dup() for _ in range(count - 1))]
    # Binds without SO_REUSEPORT first, because with it alone another server's port could be shared by
    # mistake.
    port = first.getsockname()[1]
    first.close()
    return [bound(address, port, shared=True) for _ in range(count)]
