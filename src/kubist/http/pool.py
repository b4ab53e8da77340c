"""Connections to other servers that are kept for the next call: a few to each, for a while."""

from __future__ import annotations

import asyncio
import contextlib
import ssl
import weakref
from collections import deque
from collections.abc import Iterator
from typing import NamedTuple

IDLE_SECONDS = 60.0
IDLE_EACH = 8
IDLE_ALL = 128
LIMIT = 16 << 20
"""Of a line, and of a body whose length nobody says."""


class Where(NamedTuple):
    """Whom a connection is to. Contexts are kept by those who make them: the same trust is the same object."""

    host: str
    port: int
    context: ssl.SSLContext
    server_hostname: str


class Connection:
    """A connection, and whether it has been used before: then its other end may have left unnoticed."""

    __slots__ = ("kept", "reader", "timer", "where", "writer")

    def __init__(self, where: Where, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        self.where = where
        self.reader = reader
        self.writer = writer
        self.kept = False
        self.timer: asyncio.TimerHandle | None = None

    @property
    def alive(self) -> bool:
        return not self.reader.at_eof() and not self.writer.transport.is_closing()

    def abort(self) -> None:
        self.writer.transport.abort()


class Pool:
    """The idle connections of one event loop."""

    def __init__(self) -> None:
        self._idle: dict[Where, deque[Connection]] = {}
        self._count = 0

    def take(self, where: Where) -> Connection | None:
        """The connection that was used last, if there is one."""
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
        """Keep a connection on which nothing is under way."""
        idle = self._idle.setdefault(connection.where, deque())
        if not connection.alive or len(idle) >= IDLE_EACH or self._count >= IDLE_ALL:
            if not idle:
                del self._idle[connection.where]
            connection.writer.close()
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
        connection.writer.close()

    def _forget(self, connection: Connection, idle: deque[Connection]) -> None:
        self._count -= 1
        if not idle:
            del self._idle[connection.where]
        if connection.timer is not None:
            connection.timer.cancel()

    async def close(self) -> None:
        """Give up what is idle."""
        for where in list(self._idle):
            for connection in self._latest(where):
                connection.writer.close()
                with contextlib.suppress(OSError, TimeoutError):
                    await asyncio.wait_for(connection.writer.wait_closed(), 1)


_pools: weakref.WeakKeyDictionary[asyncio.AbstractEventLoop, Pool] = weakref.WeakKeyDictionary()


def pool() -> Pool:
    """The pool of the running event loop."""
    return _pools.setdefault(asyncio.get_running_loop(), Pool())


async def connect(where: Where) -> Connection:
    """A connection that nobody has used."""
    reader, writer = await asyncio.open_connection(
        where.host, where.port, ssl=where.context, server_hostname=where.server_hostname, limit=LIMIT
    )
    return Connection(where, reader, writer)


async def begin(where: Where, message: bytes) -> tuple[Connection, bytes]:
    """Send a request; the connection, and the first line of the answer. A kept connection whose other end has left
    without a word is replaced by a new one."""
    while True:
        connection = pool().take(where) or await connect(where)
        try:
            connection.writer.write(message)
            await connection.writer.drain()
            first = await connection.reader.readline()
        except ConnectionError:
            connection.abort()
            if connection.kept:
                continue
            raise
        except BaseException:
            connection.abort()
            raise
        if first or not connection.kept:
            return connection, first
        connection.abort()


def may_be_kept(status_line: bytes, headers: dict[str, str]) -> bool:
    """Whether another request may follow on the connection, once the body of this answer is read."""
    measured = "content-length" in headers or "chunked" in headers.get("transfer-encoding", "").lower()
    return (
        status_line.startswith(b"HTTP/1.1")
        and measured
        and "close" not in headers.get("connection", "").lower()
    )
