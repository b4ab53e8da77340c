"""Speed of a server process: rate, latency, CPU and memory per workload, beside a bare server.

    python benchmarks/bench.py [--quick] [--objects N] [--only create,get,…] [--workers N] [--bare own|uvicorn]

Starts `kubist apiserver` on SQLite (durable before the answer) and the bare server, both with TLS, and gives both the
same requests; the bare one answers the same number of bytes without doing anything for them, on Kubist's own transport
or on uvicorn. Ratios within one run mean more than rates, which vary with the machine.
"""

from __future__ import annotations

import argparse
import sys
import tempfile
from dataclasses import replace
from pathlib import Path

import uvloop
import workloads
from loader import Sample
from servers import BARE, Server, start_bare, start_kubist
from workloads import WORKLOADS, Target, Workload

HEADER = (
    f"{'workload':10} {'per second':>10} {'p50 ms':>8} {'p99 ms':>8} {'CPU ms':>8} {'RSS MB':>7}"
    f" │ {'bare /s':>9} {'CPU ms':>8} │ {'rate':>6} {'CPU':>6}"
)


async def measure(server: Server, target: Target, workload: Workload) -> tuple[Sample, float]:
    """A workload's sample, and milliseconds of the server's CPU for each operation."""
    run = await workload(target)
    before = server.cpu()
    sample = await run()
    return sample, (server.cpu() - before) / max(1, sample.operations) * 1000


async def compare(name: str, kubist: Server, bare: Server, objects: int) -> bool:
    target, workload = Target(kubist.port, objects), WORKLOADS[name]
    sample, cpu = await measure(kubist, target, workload)
    count = max(1, sample.operations)
    plain = replace(target, port=bare.port, size=max(1, sample.bytes // count))
    yardstick, bare_cpu = await measure(bare, plain, workload)
    rate, bare_rate = count / sample.seconds, yardstick.operations / yardstick.seconds
    print(
        f"{name:10} {rate:10,.1f} {sample.quantile(0.5) * 1000:8.2f} {sample.quantile(0.99) * 1000:8.2f}"
        f" {cpu:8.3f} {kubist.memory():7.0f} │ {bare_rate:9,.1f} {bare_cpu:8.3f} │"
        f" {rate / bare_rate:6.0%} {bare_cpu / cpu if cpu else 1:6.0%}",
        flush=True,
    )
    for failure in sample.failures[:3]:
        print(f"           {failure}", file=sys.stderr)
    return not sample.failures


async def bench(names: list[str], objects: int, workers: int, transport: str) -> bool:
    with tempfile.TemporaryDirectory(prefix="kubist-bench-") as where:
        directory = Path(where)
        first = await start_kubist(directory, workers)
        first.stop()
        kubist = await start_kubist(directory, workers)
        bare = await start_bare(transport)
        try:
            ready = f"start to ready {kubist.ready:.2f} s, {kubist.cpu():.2f} s of CPU"
            print(
                f"{ready} (the very first time {first.ready:.2f} s), {kubist.memory():.0f} MB; {objects:,} pods"
            )
            print(HEADER)
            await workloads.make_namespace(Target(kubist.port, objects))
            if "create" not in names:
                await (await workloads.create(Target(kubist.port, objects)))()
            return all([await compare(name, kubist, bare, objects) for name in names])
        finally:
            kubist.stop()
            bare.stop()


def main() -> None:
    parser = argparse.ArgumentParser(description=(__doc__ or "").partition("\n")[0])
    parser.add_argument("--quick", action="store_true", help="500 objects: to see that it works")
    parser.add_argument("--objects", type=int, default=5000)
    parser.add_argument("--only", default="", help="workloads, separated by commas: " + ",".join(WORKLOADS))
    parser.add_argument("--workers", type=int, default=1, help="processes of the server")
    parser.add_argument("--bare", choices=list(BARE), default="own", help="the bare server's transport")
    options = parser.parse_args()
    wanted = options.only.split(",") if options.only else list(WORKLOADS)
    if unknown := [name for name in wanted if name not in WORKLOADS]:
        parser.error(f"no such workload: {', '.join(unknown)}")
    names = [name for name in WORKLOADS if name in wanted]
    objects = min(500, options.objects) if options.quick else options.objects
    if not uvloop.run(bench(names, objects, options.workers, options.bare)):
        raise SystemExit(1)


if __name__ == "__main__":
    main()
