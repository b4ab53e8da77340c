"""HTTP transport: TLS, HTTP/1.1, HTTP/2 and WebSocket. Turns bytes into requests and responses into bytes.
Knows nothing about Kubernetes."""

from kubist.http.limits import Limits
from kubist.http.server import HttpServer
from kubist.http.tls import server_context

__all__ = ["HttpServer", "Limits", "server_context"]
