"""Many clusters in one process: time and CPU of creation and deletion, memory, CPU while idle, files left.

    python benchmarks/clusters.py               # 1,000 clusters in memory
    python benchmarks/clusters.py --count 100 --storage disk
    python benchmarks/clusters.py --noisy 200   # latency of a cluster beside one with 200 busy connections

A server runs in a process of its own, and clusters are created over HTTP, one after the other, on one connection. The
CPU time is that of the server's process. The first cluster, which makes the template, is not counted.
"""

from __future__ import annotations

import argparse
import asyncio
import http.client
import json
import multiprocessing
import os
import resource
import ssl
import statistics
import subprocess
import sys
import tempfile
import time
from pathlib import Path
from typing import Any

from loader import connect, request, tls

CLUSTERS = "/kubist/v1/clusters"
TICKS = os.sysconf("SC_CLK_TCK")
PAGE = resource.getpagesize()


class Server:
    """`kubist serve --clusters` in a process of its own."""

    def __init__(self, directory: Path) -> None:
        self.directory = directory
        command = [sys.executable, "-m", "kubist", "serve", "--clusters", "--secure-port=0"]
        self.process = subprocess.Popen([*command, f"--data-dir={directory}"], stdout=subprocess.DEVNULL)
        path = directory / "kubeconfig"
        deadline = time.monotonic() + 60
        while not path.exists():
            assert time.monotonic() < deadline, "the server does not start"
            time.sleep(0.02)
        pki = directory / "pki"
        context = ssl.create_default_context(cafile=str(pki / "ca.crt"))
        context.load_cert_chain(pki / "admin.crt", pki / "admin.key")
        port = int(path.read_text().split("https://127.0.0.1:")[1].split()[0])
        self.connection = http.client.HTTPSConnection("127.0.0.1", port, context=context)

    def request(self, method: str, path: str, body: Any = None, token: str = "") -> Any:
        headers = {"Authorization": f"Bearer {token}"} if token else {}
        self.connection.request(method, path, json.dumps(body) if body is not None else None, headers)
        response = self.connection.getresponse()
        raw = response.read()
        assert response.status < 400, raw
        return json.loads(raw)

    def cpu(self) -> float:
        """Seconds of CPU time so far."""
        fields = Path(f"/proc/{self.process.pid}/stat").read_text().rsplit(")", 1)[1].split()
        return (int(fields[11]) + int(fields[12])) / TICKS

    def memory(self) -> float:
        """Resident memory in MB."""
        return int(Path(f"/proc/{self.process.pid}/statm").read_text().split()[1]) * PAGE / 1e6

    def files(self) -> int:
        return sum(len(names) for _, _, names in os.walk(self.directory / "clusters"))

    def stop(self) -> None:
        self.connection.close()
        self.process.terminate()
        self.process.wait()


def measure(server: Server, count: int, storage: str, idle: float) -> None:
    server.request("POST", CLUSTERS, {"name": "first"})
    server.request("DELETE", f"{CLUSTERS}/first")
    memory, cpu = server.memory(), server.cpu()
    seconds, made = [], []
    began = time.perf_counter()
    for _ in range(count):
        start = time.perf_counter()
        made.append(server.request("POST", CLUSTERS, {"storage": storage}))
        seconds.append(time.perf_counter() - start)
    took = time.perf_counter() - began
    ordered = sorted(seconds)
    report("create, median", 1000 * statistics.median(seconds), "ms")
    report("create, 99 %", 1000 * ordered[int(0.99 * len(ordered))], "ms")
    report("create, longest", 1000 * ordered[-1], "ms")
    report("create, CPU of the server", 1000 * (server.cpu() - cpu) / count, "ms")
    report("created per second", count / took, "")
    report("memory per empty cluster", (server.memory() - memory) / count, "MB")

    time.sleep(2)
    cpu = server.cpu()
    time.sleep(idle)
    report(f"CPU while {count} clusters are idle", 100 * (server.cpu() - cpu) / idle, "% of a core")

    cpu, start = server.cpu(), time.perf_counter()
    for cluster in made:
        token = cluster["kubeconfig"]["users"][0]["user"]["token"]
        server.request("GET", f"{cluster['path']}/api/v1/namespaces", token=token)
    report("first list of namespaces", 1000 * (time.perf_counter() - start) / count, "ms")
    report("memory per cluster that was used", (server.memory() - memory) / count, "MB")

    seconds = []
    cpu = server.cpu()
    for cluster in made:
        start = time.perf_counter()
        server.request("DELETE", f"{CLUSTERS}/{cluster['name']}")
        seconds.append(time.perf_counter() - start)
    report("delete, median", 1000 * statistics.median(seconds), "ms")
    report("delete, CPU of the server", 1000 * (server.cpu() - cpu) / count, "ms")
    report("files left", server.files(), "")


def annoy(port: int, path: str, token: str, connections: int, seconds: float) -> None:
    """Lists all cluster roles repeatedly on many connections."""
    sent = 0

    async def work() -> None:
        nonlocal sent
        client = await connect(port, tls())
        until = time.monotonic() + seconds
        while time.monotonic() < until:
            code, _ = await client.ask(
                request("GET", f"{path}/apis/rbac.authorization.k8s.io/v1/clusterroles", token)
            )
            assert code == 200
            sent += 1
        client.transport.close()

    async def everyone() -> None:
        await asyncio.gather(*(work() for _ in range(connections)))

    asyncio.run(everyone())
    report("requests of the noisy cluster", sent / seconds, "per second")


def measure_neighbour(server: Server, connections: int, seconds: float = 10.0) -> None:
    noisy, quiet = (server.request("POST", CLUSTERS, {"name": name}) for name in ("noisy", "quiet"))
    tokens = [made["kubeconfig"]["users"][0]["user"]["token"] for made in (noisy, quiet)]

    def latencies() -> list[float]:
        found = []
        until = time.monotonic() + seconds
        while time.monotonic() < until:
            start = time.perf_counter()
            server.request("GET", f"{quiet['path']}/api/v1/namespaces/default", token=tokens[1])
            found.append(1000 * (time.perf_counter() - start))
        return sorted(found)

    alone = latencies()
    arguments = (server.connection.port, noisy["path"], tokens[0], connections, seconds + 3)
    process = multiprocessing.get_context("spawn").Process(target=annoy, args=arguments)
    process.start()
    time.sleep(2)
    beside = latencies()
    process.join()
    for name, found in (("alone", alone), (f"beside {connections} busy connections", beside)):
        report(f"get {name}, median", statistics.median(found), "ms")
        report(f"get {name}, 99 %", found[int(0.99 * len(found))], "ms")


def report(name: str, value: float, unit: str) -> None:
    print(f"{name:40} {value:10.2f} {unit}", flush=True)


def main() -> None:
    parser = argparse.ArgumentParser()
    parser.add_argument("--count", type=int, default=1000)
    parser.add_argument("--storage", choices=("memory", "disk"), default="memory")
    parser.add_argument("--noisy", type=int, default=0, help="connections of a noisy cluster")
    parser.add_argument("--idle", type=float, default=30, help="seconds for which CPU is measured while idle")
    options = parser.parse_args()
    with tempfile.TemporaryDirectory() as directory:
        server = Server(Path(directory) / "data")
        try:
            if options.noisy:
                measure_neighbour(server, options.noisy)
                return
            measure(server, options.count, options.storage, options.idle)
        finally:
            server.stop()


if __name__ == "__main__":
    main()
