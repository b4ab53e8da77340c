"""HTTP transport: TLS, HTTP/1.1, HTTP/2 and WebSocket. Turns bytes into requests and responses into bytes.
Knows nothing about Kubernetes."""

from kubist.base.http.limits import Limits
from kubist.base.http.server import HttpServer
from kubist.base.http.tls.contexts import server_context

__all__ = ["HttpServer", "Limits", "server_context"]
