"""How costs grow with the number of objects: what should stay flat, and what may grow as they do.

    python benchmarks/growth.py [5000 20000 80000]

One store is filled to each size in turn; the server is started anew at each, as start-up reads everything.
"""

from __future__ import annotations

import asyncio
import sys
import tempfile
from pathlib import Path

import uvloop
from bench import measure
from loader import Sample
from servers import Server, start_kubist
from workloads import JSON, PODS, Run, Target, Workload, each, get, lists, make_namespace, pod

SIZES = (5_000, 20_000, 80_000)
LAST = 2_000
"""Creates that are measured: the last ones before a size is reached."""
PER_LABEL = 100

HEADER = (
    f"{'pods':>7} {'create':>9} {'get':>9} {'selector':>9} {'list':>9} {'of it':>9} {'start':>7} {'CPU':>7}"
    f" {'RSS':>7} {'JSON':>7}\n"
    f"{'':>7} {'CPU ms':>9} {'CPU ms':>9} {'CPU ms':>9} {'CPU ms':>9} {'µs/pod':>9} {'s':>7} {'s':>7} {'MB':>7}"
    f" {'MB':>7}"
)


def creates(first: int, count: int) -> Workload:
    """Pods of which a hundred at a time share a label."""

    async def prepare(target: Target) -> Run:
        def ask(i: int) -> bytes:
            number = first + i
            body = pod(number).replace(b'"tier":"t', b'"batch":"%d","tier":"t' % (number // PER_LABEL), 1)
            return target.ask("POST", PODS, body, Content_Type=JSON)

        return each(target, count, ask, expected=201)

    return prepare


async def selector(target: Target) -> Run:
    """A hundred pods by their label, of however many there are; the index is made beforehand."""

    def ask(i: int) -> bytes:
        batch = i * 37 % (target.objects // PER_LABEL)
        return target.ask("GET", f"{PODS}?labelSelector=batch%3D{batch}", Accept=JSON)

    await each(target, 1, ask)()
    return each(target, 400, ask, clients=4)


async def at_size(directory: Path, server: Server, before: int, size: int) -> Server:
    """Fill up to a size and measure there; the server, started anew."""
    target = Target(server.port, size)

    async def cost(workload: Workload) -> tuple[Sample, float]:
        sample, cpu = await measure(server, target, workload)
        if sample.failures:
            raise SystemExit(sample.failures[0])
        return sample, cpu

    await cost(creates(before, size - before - LAST))
    _, create_cpu = await cost(creates(size - LAST, LAST))
    server.stop()
    server = await start_kubist(directory)
    target = Target(server.port, size)
    memory, start_cpu = server.memory(), server.cpu()
    _, get_cpu = await cost(get)
    _, selector_cpu = await cost(selector)
    listed, list_cpu = await cost(lists(JSON))
    megabytes = listed.bytes / listed.operations / 1e6
    print(
        f"{size:7,} {create_cpu:9.3f} {get_cpu:9.3f} {selector_cpu:9.3f} {list_cpu:9.1f}"
        f" {list_cpu / size * 1000:9.2f} {server.ready:7.2f} {start_cpu:7.2f} {memory:7.0f} {megabytes:7.0f}",
        flush=True,
    )
    return server


async def grow(sizes: list[int]) -> None:
    with tempfile.TemporaryDirectory(prefix="kubist-growth-") as where:
        directory = Path(where)
        server = await start_kubist(directory)
        try:
            await make_namespace(Target(server.port, 0))
            print(HEADER)
            for before, size in zip([0, *sizes], sizes, strict=False):
                server = await at_size(directory, server, before, size)
        finally:
            await asyncio.to_thread(server.stop)


if __name__ == "__main__":
    uvloop.run(grow([int(size) for size in sys.argv[1:]] or list(SIZES)))
