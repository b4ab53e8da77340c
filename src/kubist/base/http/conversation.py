"""Conversation: an upgraded connection (WebSocket or tunnel) and the task that serves it.

Both directions have backpressure. `Inlet` holds the bytes of one stream that the task has not read yet; a full
inlet pauses reading from the connection. `Conversation.drain` waits until the client has read enough.
"""

from __future__ import annotations

import asyncio
import logging
from collections import deque
from collections.abc import Callable, Coroutine
from typing import Any, cast

from kubist.base.http.messages import Headers, Stream, StreamWriter, UpgradedWriter

log = logging.getLogger("kubist.http")

IDLE_SECONDS = 4 * 60 * 60.0
"""Seconds without a byte in either direction after which a conversation ends, as in a kubelet."""
AFTERLIFE_SECONDS = 5.0
HIGH_WATER = 256 * 1024
"""Bytes that the client may leave unread before `drain` waits, and bytes that an inlet holds before reading pauses.
Larger than the transport's own limit, because the transport reports room only after its limit was exceeded."""
ALL_INLETS = 4 * HIGH_WATER
"""Maximum bytes in all inlets of a conversation before reading pauses. A client may open a thousand streams."""
PIECE_OVERHEAD = 64
"""Bytes that each piece counts in addition to its content."""
FULL = HIGH_WATER + PIECE_OVERHEAD
"""Bytes at which an inlet is full."""


class Conversation:
    """Upgraded connection of a client. `serve` runs as a task; the connection closes when it returns."""

    def __init__(
        self,
        serve: Callable[[], Coroutine[Any, Any, None]],
        idle: float = IDLE_SECONDS,
        *,
        outlives_client: bool = False,
    ) -> None:
        """`outlives_client`: the task may go on for AFTERLIFE_SECONDS after the client has left, to handle the
        bytes that the client sent before."""
        self._serve = serve
        self._idle = idle
        self._outlives_client = outlives_client
        self._writer: UpgradedWriter | None = None
        self._task: asyncio.Task[None] | None = None
        self._timer: asyncio.TimerHandle | None = None
        self._loop = asyncio.get_running_loop()
        self._last = self._loop.time()
        self._full: set[Inlet] = set()
        self._unread = 0
        """Bytes in all inlets."""
        self._flooded = False
        """Whether reading is paused because the inlets are full."""
        self._inlets: list[Inlet] = []
        self._room = asyncio.Event()
        self._choked = False
        """Whether reading is paused because the client does not read."""
        self.on_end: Callable[[], None] = lambda: None
        """Called when the conversation ends. May be called more than once."""
        self.ended = False
        """Whether the client is gone or the task has ended."""

    def tunnel(self, headers: Headers, received: Callable[[bytes], None]) -> Stream:
        """Answer that turns the connection into a tunnel. `received` gets the bytes of the client."""
        return Stream(101, headers, self._start, self._stopped, received=self._noting(received))

    def websocket(self, message: Callable[[bytes], None], subprotocol: str, *, text: bool = False) -> Stream:
        """Answer that turns the connection into a WebSocket. `message` gets the messages of the client."""
        return Stream(
            101,
            [],
            self._start,
            self._stopped,
            subprotocol,
            message=self._noting(message),
            text_messages=text,
        )

    def inlet(self) -> Inlet:
        """New stream of bytes from the client."""
        made = Inlet(self)
        self._inlets.append(made)
        return made

    def write(self, data: bytes) -> None:
        self._last = self._loop.time()
        if self._writer is not None:
            self._writer.write(data)

    async def drain(self) -> None:
        """Waits until the client has read most of the written data. BrokenPipeError if it is gone."""
        while not self.ended:
            writer = self._writer
            if writer is None or writer.buffered <= HIGH_WATER:
                return
            self._room.clear()
            writer.on_room = self._has_room
            await self._room.wait()
        raise BrokenPipeError("the client is gone")

    def cancel(self) -> None:
        """Ends the conversation from outside, for example because the pod is deleted."""
        if self._task is not None:
            self._task.cancel()

    def _noting(self, receive: Callable[[bytes], None]) -> Callable[[bytes], None]:
        def received(data: bytes) -> None:
            self._last = self._loop.time()
            receive(data)
            writer = self._writer
            if writer is not None and writer.buffered > HIGH_WATER and not self._choked:
                # A client that makes the server reply, for example to pings, must read the replies.
                self._choked = True
                writer.on_room = self._has_room
                self._listen()

        return received

    def _has_room(self) -> None:
        self._room.set()
        if self._choked:
            self._choked = False
            self._listen()

    def _listen(self) -> None:
        if self._writer is not None:
            self._writer.listen(not self._full and not self._flooded and not self._choked)

    def _start(self, writer: StreamWriter) -> None:
        self._writer = cast("UpgradedWriter", writer)
        self._timer = self._loop.call_later(self._idle, self._check_idle)
        self._task = asyncio.ensure_future(self._run())

    async def _run(self) -> None:
        assert self._writer is not None
        try:
            await self._serve()
        except (BrokenPipeError, asyncio.CancelledError):
            pass
        except Exception:
            log.exception("an upgraded connection failed")
        finally:
            self._end()
            self._writer.close()

    def _check_idle(self) -> None:
        left = self._last + self._idle - self._loop.time()
        if left > 0:
            self._timer = self._loop.call_later(left, self._check_idle)
        else:
            self.cancel()

    def _stopped(self) -> None:
        self.ended = True
        self._room.set()
        if self._timer is not None:
            self._timer.cancel()
        if self._outlives_client and self._task is not None and not self._task.done():
            for inlet in self._inlets:
                inlet.end()
            self._timer = self._loop.call_later(AFTERLIFE_SECONDS, self.cancel)
        else:
            self._end()
            self.cancel()

    def _end(self) -> None:
        self.ended = True
        if self._timer is not None:
            self._timer.cancel()
        self._room.set()
        self.on_end()
        for inlet in list(self._inlets):
            inlet.abandon()

    def fill(self, inlet: Inlet, *, full: bool) -> None:
        """Pauses reading while any inlet is full."""
        was = bool(self._full)
        self._full.add(inlet) if full else self._full.discard(inlet)
        if bool(self._full) != was:
            self._listen()

    def hold(self, size: int) -> None:
        """Counts bytes that an inlet takes, or releases if negative. Pauses reading while all inlets together hold too
        many."""
        self._unread += size
        if (self._unread > ALL_INLETS) != self._flooded:
            self._flooded = not self._flooded
            self._listen()

    def forget(self, inlet: Inlet) -> None:
        """Drops an inlet that is no longer read, with its unread bytes."""
        if inlet in self._inlets:
            self._inlets.remove(inlet)
        self.fill(inlet, full=False)


class Inlet:
    """Bytes of one stream of the client, in order, until its end."""

    def __init__(self, conversation: Conversation) -> None:
        self._conversation = conversation
        self._pieces: deque[bytes] = deque()
        self._size = 0
        self._ended = False
        self._news = asyncio.Event()

    def feed(self, data: bytes) -> None:
        if data and not self._ended:
            self._pieces.append(data)
            size = len(data) + PIECE_OVERHEAD
            self._size += size
            self._conversation.hold(size)
            if self._size > FULL:
                self._conversation.fill(self, full=True)
            self._news.set()

    def end(self) -> None:
        """Marks the end. Bytes that are already here can still be read."""
        self._ended = True
        self._news.set()

    def abandon(self) -> None:
        """Drops all bytes, now and later."""
        self.end()
        self._pieces.clear()
        self._conversation.hold(-self._size)
        self._size = 0
        self._conversation.forget(self)

    async def read(self) -> bytes:
        """Next bytes; empty at the end."""
        while not self._pieces:
            if self._ended:
                return b""
            self._news.clear()
            await self._news.wait()
        piece = self._pieces.popleft()
        size = len(piece) + PIECE_OVERHEAD
        self._size -= size
        self._conversation.hold(-size)
        if self._size <= FULL:
            self._conversation.fill(self, full=False)
        return piece
