"""TLS, HTTP/1.1 and HTTP/2: bytes to requests and answers to bytes. Knows nothing about Kubernetes."""

from kubist.http.limits import Limits
from kubist.http.server import HttpServer
from kubist.http.tls import server_context

__all__ = ["HttpServer", "Limits", "server_context"]
