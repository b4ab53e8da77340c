"""Targets of port-forward and proxy: a local address that the pod's annotation names, or the built-in response."""

from __future__ import annotations

import ipaddress
from typing import NamedTuple

from kubist.base.http.messages import Request
from kubist.cluster.simulation.kubeletapi.containers import shown
from kubist.model.meta.object import Object

ANNOTATION = "kubist.io/port-forward"


class Target(NamedTuple):
    host: str
    port: int

    def __str__(self) -> str:
        return f"[{self.host}]:{self.port}" if ":" in self.host else f"{self.host}:{self.port}"


class TargetError(Exception):
    """The port cannot be forwarded. The text says why and what to do."""


def target_of(pod: Object, port: int, request: Request) -> Target | None:
    """Local address of a pod's port; None if the annotation names none. Raises TargetError.

    Only loopback addresses are allowed, and only for clients on the machine of the server. Otherwise users that may
    create pods could reach services of that machine that are not open to the network.
    """
    text = (pod["metadata"].get("annotations") or {}).get(ANNOTATION, "")
    for part in filter(None, (piece.strip() for piece in text.split(","))):
        number, equals, address = part.partition("=")
        host, colon, local = address.strip().rpartition(":")
        if not (equals and colon and is_port(number.strip()) and is_port(local)):
            raise TargetError(
                f'annotation {ANNOTATION}: "{part[:100]}" is not of the form PORT=127.0.0.1:PORT'
            )
        if int(number) == port:
            host = "127.0.0.1" if host == "localhost" else host.strip("[]")
            if not is_loopback(host):
                raise TargetError(
                    f'annotation {ANNOTATION}: "{host}" is not a loopback address, such as 127.0.0.1'
                )
            if not is_loopback(request.peer[0]):
                raise TargetError(f"annotation {ANNOTATION} is only for clients on the machine of the server")
            return Target(host, int(local))
    return None


def is_port(text: str) -> bool:
    return text.isascii() and text.isdigit() and len(text) <= 5 and 0 < int(text) < 65536


def is_loopback(host: str) -> bool:
    try:
        address = ipaddress.ip_address(host)
    except ValueError:
        return False
    if isinstance(address, ipaddress.IPv6Address) and address.ipv4_mapped is not None:
        return address.ipv4_mapped.is_loopback
    return address.is_loopback


def explanation(pod: Object, port: int) -> str:
    """Body of the built-in response."""
    return (
        f"kubist: pod {shown(pod)} is simulated: nothing runs behind port {port}. "
        f"To reach a local service, annotate the pod with {ANNOTATION}: {port}=127.0.0.1:PORT\n"
    )
