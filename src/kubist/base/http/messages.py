"""Messages between transport and application: a request, and a response or stream.

This module knows nothing about Kubernetes.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from dataclasses import dataclass, field
from typing import Protocol

Headers = list[tuple[bytes, bytes]]


@dataclass(slots=True)
class Request:
    """One complete request. `path` is raw (percent-encoded), `query` is raw without the `?`.

    `headers` has lower-case names. The values of a repeated header are joined by ", " in order; `repeated` has
    them as a list.
    `peer_certificates` are the certificates of the client (DER, its own first). The transport does not verify
    their issuer, so the application must.
    `connection` is a dict that lives as long as the client's connection.
    `body_too_large`: the body was above the limit and was discarded. The response ends the connection.
    `retires`: set by the application. An HTTP/2 connection accepts no further requests after this response.
    `is_authenticated`: set by the application when it has accepted a credential of the client.
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
    is_authenticated: bool = False

    def header_values(self, name: str) -> list[str]:
        """All values of a header, as sent."""
        if self.repeated is not None and name in self.repeated:
            return self.repeated[name]
        value = self.headers.get(name)
        return [] if value is None else [value]


@dataclass(slots=True)
class Response:
    """Complete response. The transport adds `Date`, `Content-Length` and connection headers.

    `body` may be a list of chunks, which are sent in order without joining them first.
    """

    status: int
    headers: Headers
    body: bytes | list[bytes] = b""


class StreamWriter(Protocol):
    """Writer of a `Stream` whose headers are sent. Only for the thread of the event loop."""

    @property
    def buffered(self) -> int:
        """Bytes accepted by `write` that the client's connection has not accepted yet."""
        ...

    @property
    def closed(self) -> bool: ...

    on_room: Callable[[], None] | None
    """Called once, when the client has read the written data. For applications with much to send."""

    def write(self, data: bytes) -> None:
        """Sends `data` now (a chunk; on a WebSocket one message). Never blocks. Ignored after close."""
        ...

    def close(self) -> None:
        """Ends the stream cleanly after the written data."""
        ...

    def abort(self) -> None:
        """Cuts the connection (HTTP/2: resets the stream) and discards buffered data."""
        ...


class UpgradedWriter(StreamWriter, Protocol):
    """Writer of a tunnel, or of a WebSocket whose messages the application receives."""

    def listen(self, willing: bool) -> None:
        """Resumes or pauses reading from the client."""
        ...


@dataclass(slots=True)
class Stream:
    """Response without a fixed end, such as a watch: headers now, then the data that the application writes.

    `start` is called once with the writer. `stopped` is called once when the client disconnected or the stream
    ended. If the client disconnected before the response, only `stopped` is called.
    On a WebSocket upgrade the transport answers the handshake and sends each `write` as a message, unless the status is
    an error.
    """

    status: int
    headers: Headers
    start: Callable[[StreamWriter], None]
    stopped: Callable[[], None]
    subprotocol: str = ""
    """Subprotocol of a WebSocket. The application chooses it."""
    received: Callable[[bytes], None] | None = None
    """Receives all further bytes of the client. If set, the response (101) turns the connection into a tunnel."""
    message: Callable[[bytes], None] | None = None
    """Receives each message of a WebSocket client. Without it, messages are dropped."""
    text_messages: bool = False
    """Whether a WebSocket sends text messages; the default is binary messages, unless the content is JSON."""
    byte_stream: bool = False
    """Whether writes are pieces of one stream, such as a log. A WebSocket then starts with an empty message and sends
    at most 2048 bytes in each. Text messages have them in base64."""
    prefix: int = 0
    """Bytes at the start of each write that a WebSocket leaves out: the length of a message."""


class HangUp(Exception):
    """Raised by the application to end the connection (HTTP/2: the stream) without a whole response.

    `response`, if set, is sent up to the first `sent` bytes of its body; its Content-Length is that of the whole.
    """

    def __init__(self, response: Response | None = None, sent: int = 0) -> None:
        super().__init__("the application ended the connection")
        self.response = response
        self.sent = sent


Answer = Response | Stream
Application = Callable[[Request], Awaitable[Answer]]
"""The application. It may raise `HangUp`. After any other exception the transport sends a 500 with an empty body."""
