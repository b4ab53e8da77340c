"""Overload: 1,000 idle watches and 200 writers. Health checks respond, no user starves, excess requests get a
429.

`KUBIST_SOAK_SECONDS` sets the seconds of writing (30; short: 10).
"""

from __future__ import annotations

import asyncio
import ssl
import statistics
import subprocess
import sys
import time
from collections import Counter
from pathlib import Path
from typing import Any, NamedTuple

import orjson
import pytest

from tests.cli.processes import Running
from tests.live import Pki
from tests.soak.sizes import Note, size
from tests.soak.soaked import USERS, memory, processor_times, serving
from tests.watching import Connection

SECONDS = size("SECONDS", 30, 10)
WATCHES, WRITERS = 1000, 200
MAPS = "/api/v1/namespaces/default/configmaps"
PROBER = Path(__file__).with_name("prober.py")


class Prober:
    def __init__(self, port: int, pki: Pki) -> None:
        command = [sys.executable, str(PROBER), str(port), str(pki.path("ca.crt"))]
        self._process = subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE)

    def end(self) -> list[float]:
        output, _ = self._process.communicate()
        assert self._process.returncode == 0
        return sorted(map(float, output.split()))


def quantile(latencies: list[float], part: float) -> float:
    return latencies[int((len(latencies) - 1) * part)]


def told(name: str, latencies: list[float]) -> str:
    p50, p99 = quantile(latencies, 0.5), quantile(latencies, 0.99)
    return f"{name}: {len(latencies)} probes, p50 {p50:.1f}, p99 {p99:.1f}, most {latencies[-1]:.1f} ms"


class Load:
    """Watches, writers, and the responses to them."""

    def __init__(self, port: int, pki: Pki) -> None:
        self._port = port
        self._tls = ssl.create_default_context(cafile=str(pki.path("ca.crt")))
        self.codes: Counter[int] = Counter()
        self.served: Counter[int] = Counter()
        self.slowest = 0.0
        self._idle: list[Connection] = []

    async def prepare(self) -> None:
        admin = Connection(self._port, self._tls)
        role = {"apiGroup": "rbac.authorization.k8s.io", "kind": "ClusterRole", "name": "cluster-admin"}
        who = {"apiGroup": "rbac.authorization.k8s.io", "kind": "Group", "name": "writers"}
        binding: Any = {"metadata": {"name": "writers"}, "roleRef": role, "subjects": [who]}
        await admin.ask("POST", "/apis/rbac.authorization.k8s.io/v1/clusterrolebindings", binding)
        admin.cut()

    async def watch(self) -> None:
        """Opens watches of objects that do not change."""
        room = asyncio.Semaphore(20)

        async def open_one() -> None:
            async with room:
                connection = Connection(self._port, self._tls)
                path = "/api/v1/services?watch=1&resourceVersion=0&timeoutSeconds=3600"
                assert await connection.send("GET", path) == 200
                self._idle.append(connection)

        await asyncio.gather(*(open_one() for _ in range(WATCHES)))

    async def write(self, seconds: float) -> None:
        until = time.monotonic() + seconds

        async def write_on(number: int) -> None:
            connection = Connection(self._port, self._tls)
            connection.token = f"user-{number % USERS}"
            step = 0
            while time.monotonic() < until:
                step += 1
                body = {"metadata": {"name": f"w{number}-{step}"}, "data": {"a": "x" * 500}}
                begin = time.monotonic()
                code, headers, answer = await connection.exchange("POST", MAPS, orjson.dumps(body))
                self.slowest = max(self.slowest, time.monotonic() - begin)
                self.codes[code] += 1
                if code == 429:
                    assert b"retry-after: 1" in headers.lower(), headers
                    await asyncio.sleep(0.1)
                else:
                    assert code == 201, answer
                    self.served[number] += 1
            connection.cut()

        await asyncio.gather(*map(write_on, range(WRITERS)))

    def end(self) -> None:
        for connection in self._idle:
            connection.cut()


class Outcome(NamedTuple):
    load: Load
    quiet: list[float]
    busy: list[float]
    idle: float
    """Share of the machine's processor time that was idle before the load."""

    def check_health(self, note: Note) -> None:
        """Fails if health checks are slow, unless other programs keep the machine busy."""
        if self.idle < 0.5:
            note(f"latency is not judged: only {self.idle:.0%} of the processors were free before the load")
        else:
            assert quantile(self.busy, 0.99) <= 100 + quantile(self.quiet, 0.99)


async def overload(port: int, pki: Pki, server: Running, note: Note) -> Outcome:
    load = Load(port, pki)
    await load.prepare()
    before = Prober(port, pki)
    idle, total = processor_times()
    await asyncio.sleep(5)
    idle, total = (now - then for now, then in zip(processor_times(), (idle, total), strict=True))
    quiet = await asyncio.to_thread(before.end)
    await load.watch()
    start = memory(server.process.pid)
    during = Prober(port, pki)
    await load.write(SECONDS)
    busy = await asyncio.to_thread(during.end)
    load.end()
    counts = [load.served[number] for number in range(WRITERS)]
    note(told("health before", quiet))
    note(told("health under load", busy))
    note(f"answers {dict(load.codes)}; slowest {load.slowest:.2f} s")
    median = statistics.median(counts)
    note(f"writes of a writer: least {min(counts)}, median {median:.0f}, most {max(counts)}")
    note(f"{start:.0f} MB with the watches open, {memory(server.process.pid):.0f} MB at the end")
    return Outcome(load, quiet, busy, idle / total)


def test_health_checks_respond_and_no_user_starves(server_pki: Pki, tmp_path: Path, note: Note) -> None:
    with serving(tmp_path, server_pki) as (server, port):
        outcome = asyncio.run(overload(port, server_pki, server, note))
        assert server.process.poll() is None
    outcome.check_health(note)
    counts = [outcome.load.served[number] for number in range(WRITERS)]
    assert min(counts) >= 0.5 * statistics.median(counts)


@pytest.mark.parametrize(
    "flags", [("--enable-priority-and-fairness=false", "--max-mutating-requests-inflight=10")]
)
def test_excess_requests_get_429_with_retry_after(
    server_pki: Pki, tmp_path: Path, flags: tuple[str, ...], note: Note
) -> None:
    with serving(tmp_path, server_pki, *flags) as (server, port):
        outcome = asyncio.run(overload(port, server_pki, server, note))
        assert server.process.poll() is None
    assert outcome.load.codes[429] and outcome.load.codes[201]
    outcome.check_health(note)
