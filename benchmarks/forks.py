"""Forks of a cluster: CPU time and memory of one fork, by the number of pods.

    python benchmarks/forks.py [PODS …]

CPU time is that of the server's thread, from the call of `fork` to the end of its start. Control loops begin after it
and read the pods once more. Memory includes the state of the loops.
"""

from __future__ import annotations

import asyncio
import gc
import statistics
import sys
import time

from kubist.testing import Cluster

ROUNDS = 9
NAMESPACE = "/api/v1/namespaces/default"
POD = {
    "metadata": {"name": "", "labels": {"app": "web"}},
    "spec": {"containers": [{"name": "web", "image": "web:1", "ports": [{"containerPort": 80}]}]},
}


def fill(cluster: Cluster, pods: int) -> None:
    for number in range(pods):
        metadata = {**POD["metadata"], "name": f"web-{number:05}"}
        cluster.request("POST", f"{NAMESPACE}/pods", {**POD, "metadata": metadata})


async def fork(cluster: Cluster) -> tuple[float, float]:
    """Milliseconds of CPU for a fork, and for the start of its control loops."""
    gc.collect()
    started = time.thread_time()
    made = await cluster.fork_here()
    ready = time.thread_time()
    await asyncio.sleep(0.5)
    loops = time.thread_time()
    await made.stop_here()
    return (ready - started) * 1e3, (loops - ready) * 1e3


async def memory(cluster: Cluster) -> float:
    """Kilobytes of one fork, after its control loops have started."""
    before = resident()
    forks = [await cluster.fork_here() for _ in range(ROUNDS)]
    await asyncio.sleep(1)
    after = resident()
    for each in forks:
        await each.stop_here()
    return (after - before) / ROUNDS


def resident() -> int:
    """Kilobytes of this process in memory."""
    with open("/proc/self/status") as status:
        return next(int(line.split()[1]) for line in status if line.startswith("VmRSS"))


def main(sizes: list[int]) -> None:
    print("pods    fork: CPU ms (median, best)    control loops: CPU ms    memory KB")
    for pods in sizes:
        with Cluster() as cluster:
            fill(cluster, pods)
            size = cluster.run(memory(cluster))
            forks, loops = zip(*(cluster.run(fork(cluster)) for _ in range(ROUNDS)), strict=True)
        median = statistics.median
        print(f"{pods:<7} {median(forks):>12.1f} {min(forks):>8.1f} {median(loops):>22.1f} {size:>19.0f}")


if __name__ == "__main__":
    main([int(size) for size in sys.argv[1:]] or [0, 500, 5000])
