"""Conversations: backpressure in both directions, idle timeout, and the end of client and task."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Coroutine
from typing import Any

from kubist.base.http import conversation as module
from kubist.base.http.conversation import HIGH_WATER, Conversation
from kubist.base.http.messages import Stream


class Wire:
    """Writer whose client reads when the test says so."""

    def __init__(self) -> None:
        self.written = b""
        self.unread = 0
        self.closed = False
        self.closing = asyncio.Event()
        self.listening = True
        self.on_room: Callable[[], None] | None = None

    @property
    def buffered(self) -> int:
        return self.unread

    def write(self, data: bytes) -> None:
        self.written += data
        self.unread += len(data)

    def read(self) -> None:
        """The client reads everything."""
        self.unread = 0
        on_room, self.on_room = self.on_room, None
        if on_room is not None:
            on_room()

    def listen(self, willing: bool) -> None:
        self.listening = willing

    def close(self) -> None:
        self.closed = True
        self.closing.set()

    def abort(self) -> None:
        self.closed = True


def run(test: Callable[[], Coroutine[Any, Any, None]]) -> None:
    asyncio.run(asyncio.wait_for(test(), 30))


async def turns(count: int = 5) -> None:
    for _ in range(count):
        await asyncio.sleep(0)


def started(talk: Conversation, wire: Wire, received: Callable[[bytes], None]) -> Stream:
    stream = talk.tunnel([], received)
    stream.start(wire)
    return stream


def test_connection_closes_when_the_task_ends() -> None:
    async def test() -> None:
        async def serve() -> None:
            talk.write(b"hello")

        talk, wire = Conversation(serve), Wire()
        started(talk, wire, lambda _: None)
        await turns()
        assert (wire.written, wire.closed, talk.ended) == (b"hello", True, True)

    run(test)


def test_full_inlet_pauses_reading() -> None:
    async def test() -> None:
        async def serve() -> None:
            await asyncio.sleep(3600)

        talk, wire = Conversation(serve), Wire()
        first, second = talk.inlet(), talk.inlet()
        stream = started(talk, wire, first.feed)
        assert stream.received is not None
        stream.received(b"x" * HIGH_WATER)
        assert wire.listening
        stream.received(b"x")
        assert not wire.listening
        second.feed(b"y" * (HIGH_WATER + 1))
        assert len(await first.read()) == HIGH_WATER
        assert not wire.listening, "the second inlet is still full"
        second.abandon()
        assert wire.listening and await second.read() == b""
        first.end()
        assert (await first.read(), await first.read()) == (b"x", b"")
        stream.stopped()

    run(test)


def test_many_inlets_pause_reading_together() -> None:
    """A client with a thousand streams cannot leave a quarter of a megabyte in each."""

    async def test() -> None:
        async def serve() -> None:
            await asyncio.sleep(3600)

        talk, wire = Conversation(serve), Wire()
        inlets = [talk.inlet() for _ in range(100)]
        stream = started(talk, wire, inlets[0].feed)
        held = 0
        for inlet in inlets:
            if wire.listening:
                inlet.feed(b"x" * 100_000)
                held += 100_000
        assert held <= module.ALL_INLETS + 100_000
        for inlet in inlets[:8]:
            await inlet.read()
        assert wire.listening
        while wire.listening:
            inlets[0].feed(b"y")
            held += 1
        assert held < 2 * module.ALL_INLETS, "small pieces count too"
        for inlet in inlets:
            inlet.abandon()
        assert wire.listening
        stream.stopped()

    run(test)


def test_drain_waits_for_the_client() -> None:
    async def test() -> None:
        done = asyncio.Event()

        async def serve() -> None:
            talk.write(b"x" * (HIGH_WATER + 1))
            await talk.drain()
            done.set()

        talk, wire = Conversation(serve), Wire()
        started(talk, wire, lambda _: None)
        await turns()
        assert not done.is_set()
        wire.read()
        await turns()
        assert done.is_set()

    run(test)


def test_client_that_does_not_read_replies_is_not_read() -> None:
    async def test() -> None:
        async def serve() -> None:
            await asyncio.sleep(3600)

        talk, wire = Conversation(serve), Wire()
        stream = started(talk, wire, lambda data: talk.write(data))
        assert stream.received is not None
        stream.received(b"x" * (HIGH_WATER + 1))
        assert not wire.listening
        wire.read()
        assert wire.listening
        stream.stopped()

    run(test)


def test_idle_conversation_ends() -> None:
    async def test() -> None:
        async def serve() -> None:
            await asyncio.sleep(3600)

        talk, wire = Conversation(serve, idle=0.01), Wire()
        started(talk, wire, lambda _: None)
        await wire.closing.wait()

    run(test)


def test_task_of_a_client_that_left_is_cancelled() -> None:
    async def test() -> None:
        ends: list[str] = []

        async def serve() -> None:
            try:
                await asyncio.sleep(3600)
            finally:
                ends.append("task")

        talk, wire = Conversation(serve), Wire()
        talk.on_end = lambda: ends.append("conversation")
        stream = started(talk, wire, lambda _: None)
        await turns()
        stream.stopped()
        await turns()
        assert ends[:2] == ["conversation", "task"]

    run(test)


def test_task_that_outlives_its_client_reads_the_rest_and_cannot_write() -> None:
    async def test() -> None:
        seen: list[object] = []

        async def serve() -> None:
            while piece := await inlet.read():
                seen.append(piece)
            try:
                await talk.drain()
            except BrokenPipeError as error:
                seen.append(type(error))

        talk, wire = Conversation(serve, outlives_client=True), Wire()
        inlet = talk.inlet()
        stream = started(talk, wire, inlet.feed)
        inlet.feed(b"rest")
        stream.stopped()
        await turns()
        assert seen == [b"rest", BrokenPipeError]

    run(test)


def test_task_outlives_its_client_for_a_limited_time(monkeypatch: Any) -> None:
    monkeypatch.setattr(module, "AFTERLIFE_SECONDS", 0.01)

    async def test() -> None:
        async def serve() -> None:
            await asyncio.sleep(3600)

        talk, wire = Conversation(serve, outlives_client=True), Wire()
        stream = started(talk, wire, lambda _: None)
        await turns()
        stream.stopped()
        await wire.closing.wait()

    run(test)
