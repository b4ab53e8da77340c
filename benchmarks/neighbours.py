"""Effect of a busy client on another one: latencies of one connection, alone and beside many connections of another
user.

python benchmarks/neighbours.py [--connections N] [--seconds S]
"""

from __future__ import annotations

import argparse
import asyncio
import multiprocessing
import tempfile
import time
from pathlib import Path

import uvloop
from loader import Sample, connect, request, tls
from servers import start_kubist
from workloads import JSON, TOKEN

PATH = "/api/v1/namespaces/default"
GROUP = "rbac.authorization.k8s.io"


async def ask_for(port: int, user: str, connections: int, seconds: float) -> Sample:
    """Gets one object repeatedly as a user for some seconds."""
    context, sample = tls(), Sample()
    asked = request("GET", PATH, TOKEN, Impersonate_User=user, Impersonate_Group="neighbours")
    until = time.perf_counter() + seconds

    async def work() -> None:
        client = await connect(port, context)
        while (begin := time.perf_counter()) < until:
            status, _ = await client.ask(asked)
            sample.latencies.append(time.perf_counter() - begin)
            if status != 200:
                sample.failures.append(f"status {status}")
        client.transport.close()

    await asyncio.gather(*(work() for _ in range(connections)))
    return sample


def noisy(port: int, connections: int, seconds: float) -> None:
    uvloop.run(ask_for(port, "noisy", connections, seconds))


async def allow(port: int) -> None:
    role = f'"roleRef":{{"apiGroup":"{GROUP}","kind":"ClusterRole","name":"cluster-admin"}}'
    who = f'"subjects":[{{"kind":"Group","apiGroup":"{GROUP}","name":"neighbours"}}]'
    body = f'{{"metadata":{{"name":"neighbours"}},{role},{who}}}'.encode()
    client = await connect(port, tls())
    path = f"/apis/{GROUP}/v1/clusterrolebindings"
    status, answer = await client.ask(request("POST", path, TOKEN, body, Content_Type=JSON))
    assert status == 201, answer
    client.transport.close()


async def bench(connections: int, seconds: float) -> None:
    with tempfile.TemporaryDirectory(prefix="kubist-neighbours-") as where:
        server = await start_kubist(Path(where))
        try:
            await allow(server.port)
            alone = await ask_for(server.port, "quiet", 1, seconds)
            other = multiprocessing.get_context("spawn").Process(
                target=noisy, args=(server.port, connections, seconds + 3)
            )
            other.start()
            await asyncio.sleep(2)
            beside = await ask_for(server.port, "quiet", 1, seconds)
            other.join()
        finally:
            server.stop()
    for name, sample in (("alone", alone), (f"beside {connections} connections", beside)):
        p50, p99 = sample.quantile(0.5) * 1000, sample.quantile(0.99) * 1000
        print(f"{name:24} p50 {p50:7.2f} ms   p99 {p99:7.2f} ms   {len(sample.failures)} failed")


def main() -> None:
    parser = argparse.ArgumentParser(description=(__doc__ or "").partition("\n")[0])
    parser.add_argument("--connections", type=int, default=50)
    parser.add_argument("--seconds", type=float, default=5)
    options = parser.parse_args()
    uvloop.run(bench(options.connections, options.seconds))


if __name__ == "__main__":
    main()
