"""Watchers that disconnect at random and resume, compared with one steady watch.

The steady watch is itself compared with the acknowledged writes.
"""

from __future__ import annotations

import asyncio
import contextlib
import random
import re
import ssl
import time
from collections.abc import AsyncIterator, Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import orjson

from tests.cli.processes import running
from tests.live import TOKEN, Pki

MAPS = "/api/v1/namespaces/default/configmaps"
NAMES = 300
WRITERS = 8
EVEN = "labelSelector=parity%3Deven"

Seen = tuple[int, str, str]
"""Version, type and name of an event."""


@contextlib.contextmanager
def forgetful(pki: Pki, home: Path, window: int, history: float) -> Iterator[int]:
    """Port of a server that keeps the given number of changes per collection and the given seconds of history."""
    program = ("-m", "tests.forgetful_server")
    arguments = (str(pki.directory), str(window), str(history))
    with running(home, *arguments, program=program) as server:
        yield int(server.wait_for(r"serving on (\d+)"))


class Connection:
    """HTTP/1.1 over TLS, one request at a time."""

    def __init__(self, port: int, tls: ssl.SSLContext, limit: int = 1 << 24) -> None:
        self._port, self._tls, self._limit = port, tls, limit
        self.token = TOKEN
        self.reader: asyncio.StreamReader | None = None
        self.writer: asyncio.StreamWriter | None = None

    async def send(self, method: str, path: str, data: bytes = b"", kind: str = "application/json") -> int:
        """Sends a request and returns the status. The body is not read yet."""
        if self.writer is None:
            self.reader, self.writer = await asyncio.open_connection(
                "127.0.0.1", self._port, ssl=self._tls, limit=self._limit
            )
        head = f"{method} {path} HTTP/1.1\r\nHost: x\r\nAuthorization: Bearer {self.token}\r\n"
        head += f"Content-Type: {kind}\r\nContent-Length: {len(data)}\r\n\r\n"
        self.writer.write(head.encode() + data)
        assert self.reader is not None
        self._head = (await self.reader.readuntil(b"\r\n\r\n")).lower()
        return int(self._head[9:12])

    async def exchange(
        self, method: str, path: str, data: bytes = b"", kind: str = "application/json"
    ) -> tuple[int, bytes, bytes]:
        """Status, head and body."""
        status = await self.send(method, path, data, kind)
        length = re.search(rb"content-length: (\d+)", self._head)
        assert length is not None and self.reader is not None
        return status, self._head, await self.reader.readexactly(int(length[1]))

    async def ask(self, method: str, path: str, body: Any = None, kind: str = "application/json") -> Any:
        data = orjson.dumps(body) if body is not None else b""
        status, _, answer = await self.exchange(method, path, data, kind)
        assert status in (200, 201), answer
        return orjson.loads(answer)

    async def events(self) -> AsyncIterator[Any]:
        """Events of a watch until the server ends it or the connection is lost."""
        assert self.reader is not None
        rest = b""
        while size := int(await self.reader.readuntil(b"\r\n"), 16):
            rest += (await self.reader.readexactly(size + 2))[:-2]
            *lines, rest = rest.split(b"\n")
            for line in lines:
                yield orjson.loads(line)
        await self.reader.readexactly(2)

    def cut(self) -> None:
        """Closes the connection abruptly."""
        if self.writer is not None:
            self.writer.transport.abort()
            self.reader = self.writer = None


def version_of(obj: Any) -> int:
    return int(obj["metadata"]["resourceVersion"])


@dataclass
class Segment:
    """Events of a watcher between two lists: all after one resourceVersion up to another."""

    after: int
    events: list[Seen] = field(default_factory=list)
    until: int = 0


@dataclass
class Watcher:
    """Watcher that disconnects and resumes."""

    connection: Connection
    dice: random.Random
    query: str = ""
    patience: float = 2.0
    """The longest that it stays away."""
    version: int = 0
    held: dict[str, int] = field(default_factory=dict)
    segments: list[Segment] = field(default_factory=list)
    resumed: int = 0
    expired: int = 0
    bookmarks: int = 0

    async def run(self, done: asyncio.Event) -> None:
        """Watches until everything is written and seen."""
        await self._list()
        while not done.is_set():
            await self._watch(self.dice.choice((5, 50, 500)), self.dice.random() * 2)
            self.resumed += 1
            await asyncio.sleep(self.dice.random() ** 4 * self.patience)
        await self._list()

    async def _list(self) -> None:
        self.connection.cut()
        listed = await self.connection.ask("GET", f"{MAPS}?{self.query}")
        if self.segments:
            self.segments[-1].until = self.version
        self.version = version_of(listed)
        self.held = {item["metadata"]["name"]: version_of(item) for item in listed["items"]}
        self.segments.append(Segment(self.version))

    async def _watch(self, most: int, seconds: float) -> None:
        """Watches for some events or some time, then disconnects."""
        own = f"{MAPS}?watch=1&allowWatchBookmarks=true&resourceVersion={self.version}&{self.query}"
        polite = self.dice.random() < 0.3
        if polite:
            own += f"&timeoutSeconds={self.dice.randint(1, 3)}"
        try:
            async with asyncio.timeout(10 if polite else seconds):
                status = await self.connection.send("GET", own)
                assert status == 200, status
                async for event in self.connection.events():
                    if event["type"] == "ERROR":
                        assert event["object"]["code"] == 410, event
                        self.expired += 1
                        await self._list()
                        return
                    self._take(event)
                    if not polite and (most := most - 1) <= 0:
                        break
                else:
                    return
        except (TimeoutError, ConnectionError, asyncio.IncompleteReadError):
            pass
        self.connection.cut()

    def _take(self, event: Any) -> None:
        kind, obj = event["type"], event["object"]
        version = version_of(obj)
        if kind == "BOOKMARK":
            assert version >= self.version
            self.bookmarks += 1
        else:
            assert version > self.version, (version, self.version, kind)
            name = obj["metadata"]["name"]
            assert (kind == "ADDED") is (name not in self.held), (kind, name)
            if kind == "DELETED":
                del self.held[name]
            else:
                self.held[name] = version
            self.segments[-1].events.append((version, kind, name))
        self.version = version


@dataclass
class Writer:
    connection: Connection
    number: int
    dice: random.Random
    held: set[str] = field(default_factory=set)
    versions: list[int] = field(default_factory=list)
    writes: int = 0

    async def run(self, count: int) -> None:
        names = [f"m{self.number}-{index}" for index in range(NAMES // WRITERS)]
        merge = "application/merge-patch+json"
        for self.writes in range(1, count + 1):
            name = self.dice.choice(names)
            labels = {"parity": self.dice.choice(("even", "odd"))}
            # Every write changes something, or there would be no event.
            metadata = {"name": name, "labels": labels, "annotations": {"n": str(self.writes)}}
            if name not in self.held:
                made = await self.connection.ask("POST", MAPS, {"metadata": metadata})
                self.held.add(name)
            elif self.dice.random() < 0.2:
                await self.connection.ask("DELETE", f"{MAPS}/{name}")
                self.held.discard(name)
                continue
            else:
                made = await self.connection.ask("PATCH", f"{MAPS}/{name}", {"metadata": metadata}, merge)
            self.versions.append(version_of(made))


class Truth:
    """Watch that never disconnects."""

    def __init__(self, connection: Connection) -> None:
        self.connection = connection
        self.events: list[Seen] = []
        self.even: list[Seen] = []
        """Events that a watcher with a label selector must see."""
        self._inside: set[str] = set()

    async def run(self, total: int) -> None:
        await self.connection.send(
            "GET", f"{MAPS}?watch=1&resourceVersion={self.start}&timeoutSeconds=100000"
        )
        async for event in self.connection.events():
            obj = event["object"]
            name, version = obj["metadata"]["name"], version_of(obj)
            self.events.append((version, event["type"], name))
            matches = event["type"] != "DELETED" and obj["metadata"]["labels"]["parity"] == "even"
            if matches:
                self.even.append((version, "MODIFIED" if name in self._inside else "ADDED", name))
                self._inside.add(name)
            elif name in self._inside:
                self.even.append((version, "DELETED", name))
                self._inside.discard(name)
            if len(self.events) == total:
                break
        self.connection.cut()

    async def begin(self) -> None:
        self.start = version_of(await self.connection.ask("GET", MAPS))


@dataclass
class Report:
    writes: int
    deliveries: int
    watchers: int
    resumed: int
    expired: int
    lists: int
    bookmarks: int
    seconds: float

    def __str__(self) -> str:
        return (
            f"{self.writes} writes, {self.deliveries} events delivered to {self.watchers} watchers, which resumed"
            f" {self.resumed} times, {self.expired} of them too late (410), listed {self.lists} times and had"
            f" {self.bookmarks} bookmarks, in {self.seconds:.0f} s"
        )


async def watch_through(port: int, pki: Pki, writes: int, watchers: int, patience: float) -> Report:
    """Writes, watches, disconnects, resumes, and compares. Half of the watchers use a label selector."""
    begin = time.monotonic()
    tls = ssl.create_default_context(cafile=str(pki.path("ca.crt")))
    seed = random.randrange(1 << 32)
    print(f"seed {seed}")
    dice = random.Random(seed)
    truth = Truth(Connection(port, tls))
    await truth.begin()
    watching = [
        Watcher(Connection(port, tls), random.Random(dice.random()), EVEN if number % 2 else "", patience)
        for number in range(watchers)
    ]
    writing = [
        Writer(Connection(port, tls), number, random.Random(dice.random())) for number in range(WRITERS)
    ]
    done = asyncio.Event()

    async def write() -> None:
        await asyncio.gather(*(writer.run(writes // WRITERS) for writer in writing))

    async def until_told() -> None:
        await asyncio.gather(write(), truth.run(writes // WRITERS * WRITERS))
        done.set()

    async with asyncio.TaskGroup() as group:
        group.create_task(until_told())
        for watcher in watching:
            group.create_task(watcher.run(done))
    check(truth, writing, watching)
    for connection in [*(w.connection for w in watching), *(w.connection for w in writing)]:
        connection.cut()
    return Report(
        sum(writer.writes for writer in writing),
        sum(len(segment.events) for watcher in watching for segment in watcher.segments),
        watchers,
        sum(watcher.resumed for watcher in watching),
        sum(watcher.expired for watcher in watching),
        sum(len(watcher.segments) for watcher in watching),
        sum(watcher.bookmarks for watcher in watching),
        time.monotonic() - begin,
    )


def check(truth: Truth, writing: list[Writer], watching: list[Watcher]) -> None:
    versions = [event[0] for event in truth.events]
    assert versions == sorted(set(versions))
    assert sorted(v for writer in writing for v in writer.versions) == [
        event[0] for event in truth.events if event[1] != "DELETED"
    ]
    for watcher in watching:
        happened = truth.even if watcher.query else truth.events
        for segment in watcher.segments[:-1]:
            expected = [event for event in happened if segment.after < event[0] <= segment.until]
            assert segment.events == expected
        # The list at the end has everything.
        held: dict[str, int] = {}
        for version, kind, name in happened:
            held[name] = version
            if kind == "DELETED":
                del held[name]
        assert watcher.held == held
