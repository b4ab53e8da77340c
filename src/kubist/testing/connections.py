"""Connections of a test to its cluster: one for each thread, kept open between requests."""

from __future__ import annotations

import http.client
import select
import ssl
import threading
from pathlib import Path

# pytest omits the frames of this module from its reports.
__tracebackhide__ = True


class Connections:
    """HTTPS connections to one server. Each thread has its own, because a connection carries one request at a time."""

    def __init__(self, ca: Path, port: int) -> None:
        self._context = ssl.create_default_context(cafile=str(ca))
        self._port = port
        self._local = threading.local()
        self._open: set[http.client.HTTPSConnection] = set()

    def send(self, method: str, path: str, body: str | None, headers: dict[str, str]) -> tuple[int, bytes]:
        """Status and body of the response. The request is sent once."""
        connection = self._of_this_thread()
        try:
            connection.request(method, path, body, headers)
            response = connection.getresponse()
            return response.status, response.read()
        except (OSError, http.client.HTTPException):
            connection.close()  # the next request opens another one
            raise

    def _of_this_thread(self) -> http.client.HTTPSConnection:
        connection: http.client.HTTPSConnection | None = getattr(self._local, "connection", None)
        if connection is None:
            connection = http.client.HTTPSConnection("127.0.0.1", self._port, context=self._context)
            self._local.connection = connection
            self._open.add(connection)
        elif connection.sock is not None and select.select([connection.sock], [], [], 0)[0]:
            connection.close()  # the server has closed it: it was idle for long
        return connection

    def close(self) -> None:
        for connection in self._open:
            connection.close()
        self._open.clear()
        self._local = threading.local()
