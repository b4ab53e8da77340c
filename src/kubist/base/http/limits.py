"""Limits of the transport on clients. Times are in seconds."""

from __future__ import annotations

from dataclasses import dataclass

BODY_BYTES = 3 * 1024 * 1024
"""Maximum size of a request body in bytes. Limits of patches and of CRD schemas are derived from it."""


@dataclass(frozen=True, slots=True)
class Limits:
    body_bytes: int = BODY_BYTES
    header_bytes: int = 1024 * 1024
    header_count: int = 4096
    path_bytes: int = 8192
    """Maximum length of a path, without its query. Rejections repeat the path, escaped and more than once."""
    pipelined_requests: int = 256

    handshake_timeout: float = 32.0
    header_timeout: float = 32.0
    """Maximum time from the first byte of a request to the end of its headers."""
    body_timeout: float = 60.0
    """Maximum time from the end of the headers to the end of the body."""
    idle_timeout: float = 90.0
    """Maximum time between two requests on a connection."""
    stall_timeout: float = 60.0
    """Maximum time that a client may leave a full send buffer unread."""
    linger_timeout: float = 5.0
    """Maximum time that a rejected client may go on sending before the connection is cut."""

    streams: int = 250
    """HTTP/2: concurrent requests on a connection."""
    connection_body_bytes: int = 12 * 1024 * 1024
    """HTTP/2: bytes of bodies of unanswered requests on a connection, beyond the first 64 KiB of each."""
    connection_header_bytes: int = 4 * 1024 * 1024
    """HTTP/2: bytes of headers of unanswered requests on a connection."""
    idle_frames: int = 1000
    """HTTP/2: frames without a request (PING, SETTINGS, RST_STREAM, empty DATA …) in ten seconds."""

    @property
    def tick(self) -> float:
        """Seconds between two checks of the deadlines."""
        shortest = min(
            self.header_timeout, self.body_timeout, self.idle_timeout, self.stall_timeout, self.linger_timeout
        )
        return min(1.0, shortest / 4)
