"""Pool of idle connections to other servers: at most IDLE_EACH per server, for IDLE_SECONDS."""

from __future__ import annotations

import asyncio
import contextlib
import select
import ssl
from collections import deque
from collections.abc import Iterator
from typing import NamedTuple

from kubist.base.http.client.responses import HEAD_LIMIT, Head, read_line

IDLE_SECONDS = 60.0
IDLE_EACH = 8
IDLE_ALL = 128
LIMIT = 16 << 20
"""Maximum bytes of a body that is read whole."""


class Where(NamedTuple):
    """Key of the pool: a server. Connections are shared only within one TLS context object. Without a context the
    connection is not encrypted."""

    host: str
    port: int
    context: ssl.SSLContext | None
    server_hostname: str


class Connection:
    """TLS connection. `kept`: an earlier call used it, so the server may close it at any moment."""

    __slots__ = ("kept", "reader", "timer", "where", "writer")

    def __init__(self, where: Where, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        self.where = where
        self.reader = reader
        self.writer = writer
        self.kept = False
        self.timer: asyncio.TimerHandle | None = None

    @property
    def alive(self) -> bool:
        """Whether an idle connection is usable. A readable one is not, because the server only sends when it
        closes."""
        if self.reader.at_eof() or self.writer.transport.is_closing():
            return False
        poll = select.poll()
        poll.register(self.writer.get_extra_info("socket").fileno(), select.POLLIN)
        return not poll.poll(0)

    def abort(self) -> None:
        self.writer.transport.abort()

    async def close(self) -> None:
        """Closes the connection, and returns when it is closed."""
        self.writer.close()
        with contextlib.suppress(OSError):
            await self.writer.wait_closed()


class Pool:
    """Idle connections of one API server."""

    def __init__(self) -> None:
        self._idle: dict[Where, deque[Connection]] = {}
        self._count = 0
        self._closed = False
        self._closing: set[asyncio.Task[None]] = set()

    def take(self, where: Where) -> Connection | None:
        """Most recently used idle connection. None if there is none."""
        for connection in self._latest(where):
            if connection.alive:
                connection.kept = True
                return connection
            connection.abort()
        return None

    def _latest(self, where: Where) -> Iterator[Connection]:
        while idle := self._idle.get(where):
            connection = idle.pop()
            self._forget(connection, idle)
            yield connection

    def give(self, connection: Connection) -> None:
        """Keeps an idle connection, or closes it if the pool is full."""
        if self._closed:
            self.drop(connection)
            return
        idle = self._idle.setdefault(connection.where, deque())
        if not connection.alive or len(idle) >= IDLE_EACH or self._count >= IDLE_ALL:
            if not idle:
                del self._idle[connection.where]
            self.drop(connection)
            return
        idle.append(connection)
        self._count += 1
        loop = asyncio.get_running_loop()
        connection.timer = loop.call_later(IDLE_SECONDS, self._expire, connection)

    def _expire(self, connection: Connection) -> None:
        idle = self._idle.get(connection.where)
        if idle is not None and connection in idle:
            idle.remove(connection)
            self._forget(connection, idle)
        self.drop(connection)

    def drop(self, connection: Connection) -> None:
        """Closes a connection that is not kept, without waiting for it."""
        task = asyncio.create_task(connection.close())
        self._closing.add(task)
        task.add_done_callback(self._closing.discard)

    def _forget(self, connection: Connection, idle: deque[Connection]) -> None:
        self._count -= 1
        if not idle:
            del self._idle[connection.where]
        if connection.timer is not None:
            connection.timer.cancel()

    async def close(self) -> None:
        """Closes all idle connections, and those that are returned later. Waits a second at most."""
        self._closed = True
        for where in list(self._idle):
            for connection in self._latest(where):
                self.drop(connection)
        if self._closing:
            await asyncio.wait(self._closing, timeout=1)


async def connect(where: Where) -> Connection:
    """Opens a new connection."""
    reader, writer = await asyncio.open_connection(
        where.host,
        where.port,
        ssl=where.context,
        server_hostname=where.server_hostname if where.context is not None else None,
        limit=HEAD_LIMIT,
    )
    return Connection(where, reader, writer)


async def begin(
    pool: Pool | None, where: Where, message: bytes, *, replayable: bool
) -> tuple[Connection, bytes]:
    """Sends a request and returns the connection and the first line of the response (empty if there is none).

    A server may close a kept connection while a request is on its way. Only a `replayable` request is then sent
    again, on another connection, because the server may have processed it. This is the rule of Go's HTTP
    client.
    """
    while True:
        connection = (pool.take(where) if pool is not None else None) or await connect(where)
        again = connection.kept and replayable
        try:
            connection.writer.write(message)
            await connection.writer.drain()
            first = await read_line(connection.reader)
        except ConnectionError:
            connection.abort()
            if not again:
                raise
        except BaseException:
            connection.abort()
            raise
        else:
            if first or not again:
                return connection, first
            connection.abort()


def may_be_kept(head: Head) -> bool:
    """Whether another request may follow on the connection after the body of this response."""
    measured = head.get("content-length") or "chunked" in head.get("transfer-encoding").lower()
    return head.keeps and bool(measured) and "close" not in head.get("connection").lower()
