"""What passes between the transport and the application: a request, and one of two kinds of answer.

Nothing here knows Kubernetes.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from dataclasses import dataclass, field
from typing import Protocol

Headers = list[tuple[bytes, bytes]]


@dataclass(slots=True)
class Request:
    """One complete request. `path` is raw (still percent-encoded), `query` is raw without the `?`.

    `headers` has lower-case names; of a repeated header the values are joined by ", " (in order), and
    `repeated` has them apart.
    `peer_certificates` are the client's certificates as it presented them (DER, its own first). The transport does not
    verify who issued them; the application must.
    `connection` lives as long as the client's connection: a place for what is known per connection.
    `body_too_large`: the body passed the server's limit and was thrown away; the answer ends the connection.
    `retires`: set by the application; an HTTP/2 connection takes no further requests after this one's answer.
    """

    method: str
    path: str
    query: str
    headers: dict[str, str]
    body: bytes = b""
    peer: tuple[str, int] = ("", 0)
    http_version: str = "1.1"
    peer_certificates: tuple[bytes, ...] = ()
    connection: dict[str, object] = field(default_factory=dict)
    body_too_large: bool = False
    repeated: dict[str, list[str]] | None = None
    retires: bool = False

    def header_values(self, name: str) -> list[str]:
        """All values of a header, as they were sent."""
        if self.repeated is not None and name in self.repeated:
            return self.repeated[name]
        value = self.headers.get(name)
        return [] if value is None else [value]


@dataclass(slots=True)
class Response:
    """A complete answer. The transport adds `Date`, `Content-Length` and connection headers.

    `body` may be a list of chunks that are sent one after the other without being joined first.
    """

    status: int
    headers: Headers
    body: bytes | list[bytes] = b""


class StreamWriter(Protocol):
    """The sending side of a `Stream` once its headers are out. For use on the event loop's thread only."""

    @property
    def buffered(self) -> int:
        """Bytes accepted by `write` that the client's connection has not taken yet."""
        ...

    @property
    def closed(self) -> bool: ...

    on_room: Callable[[], None] | None
    """Called once, when the client has taken what was written: for who has much to send."""

    def write(self, data: bytes) -> None:
        """Send `data` now (a chunk; on a WebSocket one message). Never blocks; ignored once closed."""
        ...

    def close(self) -> None:
        """End the stream cleanly after what was written."""
        ...

    def abort(self) -> None:
        """Cut the connection (HTTP/2: reset the stream) without delivering what is buffered."""
        ...


@dataclass(slots=True)
class Stream:
    """An answer that goes on: headers now, then whatever `start` arranges to be written.

    `start` is called once with the writer; `stopped` once when the client has gone or the stream has ended
    (a client that left before the answer: `stopped` alone).
    On a WebSocket upgrade request the transport answers the handshake itself and sends each `write` as a
    message (`websocket_protocols`: the sub-protocols that the application accepts, in order of preference).
    """

    status: int
    headers: Headers
    start: Callable[[StreamWriter], None]
    stopped: Callable[[], None]
    websocket_protocols: tuple[str, ...] = ()
    received: Callable[[bytes], None] | None = None
    """Where all that the client sends from now on goes: the answer, a 101, makes a tunnel of its connection."""


Answer = Response | Stream
Application = Callable[[Request], Awaitable[Answer]]
"""The application. It must not raise; the transport answers 500 with an empty body if it does."""
