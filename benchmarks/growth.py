"""Growth of costs with the number of objects.

    python benchmarks/growth.py [--configmaps] [--save FILE] [5000 20000 80000]

Fills one store to each size in turn. All but the last objects bypass the server, which is much faster: they are copies
of an object that it has stored. The server restarts at each size, because start-up reads everything.
"""

from __future__ import annotations

import argparse
import asyncio
import json
import os
import random
import re
import tempfile
from collections.abc import Callable
from dataclasses import asdict, dataclass
from pathlib import Path

import uvloop
import workloads
from bench import measure
from loader import Connection, connect, run, tls
from servers import Server, start_kubist
from workloads import JSON, Run, Target, Workload, each, make_namespace

from kubist.storage.sqlite.store import SqliteStore

SIZES = (5_000, 20_000, 80_000)
LAST = 1_000
"""Creates that are measured: the last ones before a size is reached."""
PER_LABEL = 100
AT_ONCE = 2_000


@dataclass(frozen=True)
class Subject:
    """Kind of the objects whose number grows."""

    resource: str
    stem: str
    body: Callable[[int], bytes]

    @property
    def path(self) -> str:
        return f"/api/v1/namespaces/bench/{self.resource}"

    def name(self, number: int) -> str:
        return f"{self.stem}-{number:06}"

    def labelled(self, number: int) -> bytes:
        """Every hundred objects share a label."""
        return self.body(number).replace(b'"tier":"t', b'"batch":"%d","tier":"t' % (number // PER_LABEL), 1)


def configmap(number: int) -> bytes:
    """About 1 KB once it is stored."""
    return (
        f'{{"apiVersion":"v1","kind":"ConfigMap","metadata":{{"name":"map-{number:06}","namespace":"bench",'
        f'"labels":{{"app":"app-{number % 50}","tier":"t{number % 5}"}}}},'
        f'"data":{{"settings":"{"level=info " * 45}{number}"}}}}'
    ).encode()


PODS = Subject("pods", "pod", workloads.pod)
CONFIGMAPS = Subject("configmaps", "map", configmap)


@dataclass
class Row:
    """Measurements at one size. Times are CPU of the server in milliseconds."""

    objects: int
    create: float = 0.0
    get: float = 0.0
    selector: float = 0.0
    warm: float = 0.0
    pages: float = 0.0
    list: float = 0.0
    ready: float = 0.0
    start: float = 0.0
    memory: float = 0.0
    used: float = 0.0
    megabytes: float = 0.0

    def __str__(self) -> str:
        each, allowed = self.list / self.objects * 1000, self.megabytes * 2.5 + 80
        return (
            f"{self.objects:8,} {self.create:8.3f} {self.get:8.3f} {self.selector:8.3f} {self.warm:8.3f}"
            f" {self.pages:8.3f} {self.list:8.1f} {each:8.2f} {self.ready:7.2f} {self.start:7.2f}"
            f" {self.memory:7.0f} {self.used:7.0f} {self.megabytes:7.0f} {allowed:8.0f}"
        )


HEADER = (
    f"{'objects':>8} {'create':>8} {'get':>8} {'100 by':>8} {'of 50':>8} {'a write,':>8} {'list':>8} {'of it':>8}"
    f" {'start':>7} {'of it':>7} {'RSS at':>7} {'after':>7} {'JSON':>7} {'allowed':>8}\n"
    f"{'':>8} {'ms':>8} {'ms':>8} {'label':>8} {'labels':>8} {'a page':>8} {'ms':>8} {'µs each':>8}"
    f" {'s':>7} {'CPU s':>7} {'start':>7} {'reads':>7} {'MB':>7} {'MB':>8}"
)


class Growth:
    def __init__(self, subject: Subject, directory: Path) -> None:
        self.subject = subject
        self.directory = directory
        self.filled = 0

    async def row(self, size: int) -> Row:
        """Fills the store to a size and measures there."""
        row = Row(size)
        if not self.filled:
            server = await start_kubist(self.directory)
            await make_namespace(Target(server.port, 0))
            await self._cost(server, self._creates(1))
            self._template = await self._read(server)
            await asyncio.to_thread(server.stop)
        await self._fill(size - LAST)
        server = await start_kubist(self.directory)
        row.create = await self._cost(server, self._creates(LAST))
        await asyncio.to_thread(server.stop)
        server = await start_kubist(self.directory)
        try:
            row.ready, row.memory, row.start = server.ready, server.memory(), server.cpu()
            row.get = await self._cost(server, self._gets)
            row.selector = await self._cost(server, self._selector(0))
            row.warm = await self._cost(server, self._selector(50))
            row.pages = await self._cost(server, self._pages)
            listed, row.list = await self._measure(server, self._lists)
            row.megabytes = listed / 1e6
            row.used = server.memory()
        finally:
            await asyncio.to_thread(server.stop)
        return row

    async def _measure(self, server: Server, workload: Workload) -> tuple[float, float]:
        """Bytes of an answer, and milliseconds of CPU for it."""
        sample, cpu = await measure(server, Target(server.port, self.filled), workload)
        if sample.failures:
            raise SystemExit(sample.failures[0])
        return sample.bytes / sample.operations, cpu

    async def _cost(self, server: Server, workload: Workload) -> float:
        return (await self._measure(server, workload))[1]

    async def _read(self, server: Server) -> bytes:
        """The first object as it is stored."""
        client = await connect(server.port, tls())
        path = f"{self.subject.path}/{self.subject.name(0)}"
        _, body = await client.ask(Target(server.port, 0).ask("GET", path, Accept=JSON))
        client.transport.close()
        return re.sub(rb'"resourceVersion":"\d+",', b"", body, count=1).strip()

    async def _fill(self, size: int) -> None:
        """Writes copies to the store while no server runs."""
        store = SqliteStore(str(self.directory / "kubist.db"))
        await store.open()
        own = self.subject.name(0).encode()
        head = f"/registry/{self.subject.resource}/bench/"
        while self.filled < size:
            numbers = range(self.filled, min(size, self.filled + AT_ONCE))
            await asyncio.gather(
                *(
                    store.create(head + self.subject.name(number), self._copy(own, number))
                    for number in numbers
                )
            )
            self.filled = numbers.stop
        await store.close()

    def _copy(self, own: bytes, number: int) -> bytes:
        text = self._template.replace(own, self.subject.name(number).encode())
        text = text.replace(b'"batch":"0"', b'"batch":"%d"' % (number // PER_LABEL), 1)
        return re.sub(rb'"uid":"[^"]+"', f'"uid":"{os.urandom(16).hex()}"'.encode(), text, count=1)

    # Requests

    def _creates(self, count: int) -> Workload:
        first, subject = self.filled, self.subject
        self.filled += count

        async def prepare(target: Target) -> Run:
            def ask(i: int) -> bytes:
                return target.ask("POST", subject.path, subject.labelled(first + i), Content_Type=JSON)

            return each(target, count, ask, expected=201)

        return prepare

    async def _gets(self, target: Target) -> Run:
        chosen, subject = random.Random(1), self.subject

        def ask(_: int) -> bytes:
            path = f"{subject.path}/{subject.name(chosen.randrange(target.objects))}"
            return target.ask("GET", path, Accept=JSON)

        return each(target, 10_000, ask)

    def _selector(self, labels: int) -> Workload:
        """Lists of a hundred objects by label. The index is built before the measurement. With few labels, the
        responses stay in the processor's cache at every size."""
        path = self.subject.path

        async def prepare(target: Target) -> Run:
            def ask(i: int) -> bytes:
                batch = i * 37 % (labels or target.objects // PER_LABEL)
                return target.ask("GET", f"{path}?labelSelector=batch%3D{batch}", Accept=JSON)

            await each(target, 1, ask)()
            return each(target, 800, ask, clients=4)

        return prepare

    async def _pages(self, target: Target) -> Run:
        """Pages of a hundred from the middle, always at the version of the start. An operation is a write and then a
        page."""
        subject = self.subject
        client = await connect(target.port, tls())
        middle = f"{subject.path}?limit={target.objects // 2}"
        _, body = await client.ask(target.ask("GET", middle, Accept=JSON))
        client.transport.close()
        found = re.search(rb'"continue":"([^"]+)"', body[:1000])
        assert found is not None
        path = f"{subject.path}?limit=100&continue={found[1].decode()}"

        async def do(client: Connection, number: int) -> tuple[int, int]:
            patch = b'{"metadata":{"annotations":{"n":"%d"}}}' % number
            where = f"{subject.path}/{subject.name(number)}"
            merge = "application/merge-patch+json"
            status, page = await client.ask(target.ask("PATCH", where, patch, Content_Type=merge))
            if status != 200:
                return status, len(page)
            status, page = await client.ask(target.ask("GET", path, Accept=JSON))
            return status, len(page)

        return lambda: run(target.port, 4, 200, 200, do)

    async def _lists(self, target: Target) -> Run:
        def ask(_: int) -> bytes:
            return target.ask("GET", self.subject.path, Accept=JSON)

        await each(target, 1, ask)()
        return each(target, max(4, 400_000 // target.objects), ask, clients=2)


async def grow(subject: Subject, sizes: list[int], save: str) -> None:
    rows = []
    with tempfile.TemporaryDirectory(prefix="kubist-growth-") as where:
        growth = Growth(subject, Path(where))
        print(HEADER)
        for size in sizes:
            rows.append(await growth.row(size))
            print(rows[-1], flush=True)
    if save:
        with open(save, "w") as file:  # noqa: ASYNC230
            file.write(json.dumps([asdict(row) for row in rows], indent=1) + "\n")


def main() -> None:
    parser = argparse.ArgumentParser(description=(__doc__ or "").partition("\n")[0])
    parser.add_argument("--configmaps", action="store_true", help="configmaps of 1 KB, not pods of 3.4 KB")
    parser.add_argument("--save", default="", help="write the figures to this file, for plot.py")
    parser.add_argument("sizes", type=int, nargs="*", default=list(SIZES))
    options = parser.parse_args()
    subject = CONFIGMAPS if options.configmaps else PODS
    uvloop.run(grow(subject, options.sizes, options.save))


if __name__ == "__main__":
    main()
