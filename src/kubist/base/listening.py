"""Bound sockets of a server, and the addresses of clients. Loads nothing else of Kubist."""

from __future__ import annotations

import socket


def bound(address: str, port: int, *, shared: bool = False) -> socket.socket:
    """Bound socket, not yet listening, so that a port in use is reported before any other step.

    `shared`: other processes of this server bind the same port (SO_REUSEPORT).
    """
    family, kind, protocol, _, where = socket.getaddrinfo(
        address or None, port, type=socket.SOCK_STREAM, flags=socket.AI_PASSIVE
    )[0]
    sock = socket.socket(family, kind, protocol)
    try:
        sock.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        if shared:
            sock.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEPORT, 1)
        if family == socket.AF_INET6:
            sock.setsockopt(socket.IPPROTO_IPV6, socket.IPV6_V6ONLY, 0)
        sock.bind(where)
    except OSError:
        sock.close()
        raise
    return sock


def reachable(address: str) -> str:
    """Host in the URL by which clients on this machine reach a server that is bound to `address`."""
    if address in ("0.0.0.0", "::", ""):
        return "127.0.0.1"
    return f"[{address}]" if ":" in address else address
