"""HTTP server: listens, selects the protocol that TLS negotiated, and stops gracefully. It has no global state."""

from __future__ import annotations

import asyncio
import socket
import ssl

from kubist.base.http.connection import Connection, Host, log
from kubist.base.http.http1.connection import Http1
from kubist.base.http.http2.connection import Http2
from kubist.base.http.limits import Limits
from kubist.base.http.messages import Application

_BACKLOG = 1024
_TLS_SHUTDOWN_TIMEOUT = 10.0


class HttpServer:
    """Serves `application` on any number of addresses until it is stopped."""

    def __init__(
        self,
        application: Application,
        *,
        ssl_context: ssl.SSLContext | None = None,
        limits: Limits | None = None,
    ) -> None:
        self._application = application
        self._ssl_context = ssl_context
        self._limits = limits or Limits()
        self._listeners: list[asyncio.Server] = []
        self._host: Host | None = None
        self._timer: asyncio.TimerHandle | None = None

    async def start(
        self, host: str = "127.0.0.1", port: int = 0, *, sock: socket.socket | None = None
    ) -> int:
        """Listens on an address (port 0: any free port) or on a bound socket. Returns the port. May be called
        again."""
        loop = asyncio.get_running_loop()
        if self._host is None:
            self._host = Host(self._application, self._limits, loop)
            self._tick()
        shared = self._host

        def connect() -> asyncio.Protocol:
            return Http1(shared) if self._ssl_context is None else _Negotiation(shared)

        address = {"sock": sock} if sock is not None else {"host": host, "port": port}
        tls = {}
        if self._ssl_context is not None:
            tls = {
                "ssl": self._ssl_context,
                "ssl_handshake_timeout": self._limits.handshake_timeout,
                "ssl_shutdown_timeout": _TLS_SHUTDOWN_TIMEOUT,
            }
        listener = await loop.create_server(connect, backlog=_BACKLOG, **address, **tls)  # type: ignore[call-overload]
        self._listeners.append(listener)
        bound = listener.sockets[0].getsockname()
        return int(bound[1]) if isinstance(bound, tuple) else 0

    def switch(self, application: Application) -> None:
        """Passes further requests to another application."""
        self._application = application
        if self._host is not None:
            self._host.application = application

    @property
    def connections(self) -> int:
        return len(self._host.connections) if self._host is not None else 0

    async def stop(self, grace: float = 10.0) -> None:
        """Stops listening, finishes current requests and ends streams. Cuts the rest after `grace` seconds."""
        for listener in self._listeners:
            listener.close()
        self._listeners.clear()
        shared = self._host
        if shared is None:
            return
        shared.stopping = True
        for connection in list(shared.connections):
            if connection.transport.is_closing():
                connection.close()
            else:
                connection.shutdown()
        shared.left()
        if not await _within(grace, shared.quiet):
            await _cut(shared)
        if self._timer is not None:
            self._timer.cancel()
        self._host = None

    def _tick(self) -> None:
        if self._host is not None:
            self._host.tick()
            self._timer = self._host.loop.call_later(self._limits.tick, self._tick)


async def _cut(shared: Host) -> None:
    left = list(shared.connections)
    tasks = [*shared.orphans, *(task for connection in left for task in connection.tasks())]
    if left or tasks:
        log.info(
            "closing %d connections and cancelling %d requests after the grace period", len(left), len(tasks)
        )
    for task in tasks:
        task.cancel()
    for connection in left:
        connection.transport.abort()
    await asyncio.gather(*tasks, return_exceptions=True)
    await _within(1.0, shared.quiet)


async def _within(seconds: float, event: asyncio.Event) -> bool:
    try:
        await asyncio.wait_for(event.wait(), seconds)
    except TimeoutError:
        return False
    return True


class _Negotiation(asyncio.Protocol):
    """Protocol until the TLS handshake has negotiated HTTP/1.1 or HTTP/2."""

    __slots__ = ("_shared",)

    def __init__(self, shared: Host) -> None:
        self._shared = shared

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        tls = transport.get_extra_info("ssl_object")
        protocol: Connection
        if tls is not None and tls.selected_alpn_protocol() == "h2":
            protocol = Http2(self._shared)
        else:
            protocol = Http1(self._shared)
        transport.set_protocol(protocol)
        protocol.connection_made(transport)
