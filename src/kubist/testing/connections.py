"""Connections of a test to its cluster, kept open between requests."""

from __future__ import annotations

import http.client
import select
import ssl
from pathlib import Path
from urllib.parse import urlsplit

from kubist.testbench.control_api.control_api import FAULT_HEADER

# pytest omits the frames of this module from its reports.
__tracebackhide__ = True


class Connections:
    """HTTPS connections to one server. Each request takes one for itself, so several threads can send requests.

    A connection does not belong to a thread, because every call of a webhook has its own thread.
    """

    def __init__(self, ca: Path, url: str) -> None:
        self._context = ssl.create_default_context(cafile=str(ca))
        self._address = urlsplit(url).netloc
        self._idle: list[http.client.HTTPSConnection] = []
        self._is_closed = False

    def send(
        self, method: str, path: str, body: bytes | str | None, headers: dict[str, str]
    ) -> tuple[int, bytes, str]:
        """Status and body of the response, and the id of the fault rule that made it. The request is sent once."""
        connection = self._take()
        try:
            connection.request(method, path, body, headers)
            response = connection.getresponse()
            answer = response.status, response.read(), response.getheader(FAULT_HEADER, "")
        except BaseException:
            connection.close()
            raise
        if self._is_closed:
            connection.close()
        else:
            self._idle.append(connection)
        return answer

    def _take(self) -> http.client.HTTPSConnection:
        while True:
            try:
                connection = self._idle.pop()
            except IndexError:
                return http.client.HTTPSConnection(self._address, context=self._context)
            if _is_open(connection):
                return connection
            connection.close()

    def close(self) -> None:
        self._is_closed = True
        while self._idle:
            self._idle.pop().close()


def _is_open(connection: http.client.HTTPSConnection) -> bool:
    """Whether an idle connection can be used. If there is something to read, the server has closed it."""
    if connection.sock is None:
        return False
    poll = select.poll()
    poll.register(connection.sock, select.POLLIN)
    return not poll.poll(0)
