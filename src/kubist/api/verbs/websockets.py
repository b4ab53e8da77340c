"""Subprotocols of WebSocket requests, chosen by the rules of kube-apiserver."""

from __future__ import annotations

import re

from kubist.api.filters.authentication.authentication import TOKEN_PROTOCOL
from kubist.base.http.messages import Request, Response
from kubist.base.http.websocket import is_upgrade, refusal

BINARY, BASE64 = "binary.k8s.io", "base64.binary.k8s.io"
_URI = re.compile(r"/|[A-Za-z][A-Za-z0-9+.-]*:")


def is_websocket(request: Request) -> bool:
    """Whether the transport answers this request with a WebSocket."""
    return request.http_version.startswith("1.") and is_upgrade(request)


def offered_protocols(request: Request) -> list[str]:
    """Subprotocols that the client offers, without the one that carries its token."""
    offered = (name.strip() for name in request.headers.get("sec-websocket-protocol", "").split(","))
    return [name for name in offered if name and not name.startswith(TOKEN_PROTOCOL)]


def stream_protocol(request: Request) -> str | Response:
    """Subprotocol of a byte stream: the first that the client offers and this server knows, or none."""
    if (rejected := refusal(request)) is not None:
        return rejected
    offered = offered_protocols(request)
    chosen = next((name for name in offered if name in (BINARY, BASE64)), "")
    return Response(403, []) if offered and not chosen else chosen


def watch_protocol(request: Request) -> str | Response:
    """Subprotocol of a watch: the client's offer, whatever its name. The messages do not depend on it. The client must
    send an Origin."""
    if (rejected := refusal(request)) is not None:
        return rejected
    if not _URI.match(request.headers.get("origin", "")):
        return Response(403, [])
    offered = offered_protocols(request)
    return Response(400, []) if offered[1:] else next(iter(offered), "")
