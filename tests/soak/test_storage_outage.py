"""Long failures of the store under load: etcd away for half a minute, members killed in turn for minutes, a
disk that fails repeatedly, and failing flushes.

`KUBIST_SOAK_AWAY`, `KUBIST_SOAK_MEMBERS`, `KUBIST_SOAK_DISK` and `KUBIST_SOAK_FLUSHES` set the seconds (30,
300, 180, 60; short: 8, 60, 30, 20).
"""

from __future__ import annotations

import contextlib
import errno
import random
import signal
import subprocess
import time
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests import programs
from tests.cli.processes import Running
from tests.live import Live, Pki
from tests.outages import Work
from tests.soak.sizes import Note, size
from tests.storage import faults
from tests.storage.cluster import EtcdCluster

AWAY = size("AWAY", 30, 8)
MEMBERS = size("MEMBERS", 300, 60)
DISK = size("DISK", 180, 30)
FLUSHES = size("FLUSHES", 60, 20)
RECOVERY = 60.0


@pytest.mark.parametrize("how", ["killed", "stopped"])
def test_long_etcd_outage_loses_no_write(etcd_directory: Path, server_pki: Pki, how: str, note: Note) -> None:
    cluster = EtcdCluster(etcd_directory, 1)
    cluster.start()
    (member,) = cluster.members
    try:
        with Live(server_pki, etcd_servers=cluster.endpoints) as live:
            with Work(live.server.port, server_pki) as work:
                for _ in range(3):
                    time.sleep(5)
                    member.stop() if how == "killed" else member.pause()
                    time.sleep(AWAY)
                    assert live.client.ask("GET", "/readyz/etcd").status == 500
                    member.start() if how == "killed" else member.resume()
                    note(f"{how} for {AWAY} s: writes again after {work.recovered(RECOVERY):.1f} s")
            work.check()
    finally:
        cluster.stop()


def test_members_are_killed_in_turn(etcd_cluster: EtcdCluster, server_pki: Pki, note: Note) -> None:
    with Live(server_pki, etcd_servers=etcd_cluster.endpoints) as live:
        with Work(live.server.port, server_pki) as work:
            end = time.monotonic() + MEMBERS
            while time.monotonic() < end:
                member = random.choice([etcd_cluster.leader(), *etcd_cluster.members])
                hard = random.random() < 0.5
                member.stop() if hard else member.pause()
                work.recovered(RECOVERY)
                time.sleep(random.uniform(1, 8))
                member.start() if hard else member.resume()
                member.wait()
                time.sleep(random.uniform(1, 4))
        work.check()
        note(f"{MEMBERS} s: {len(work.events[0])} events, {len(work.doubtful)} writes in doubt")


@pytest.mark.skipif(not faults.possible(), reason="SQLite's system calls cannot be replaced here")
def test_repeated_disk_failures_lose_no_write(server_pki: Pki, tmp_path: Path, note: Note) -> None:
    with Live(server_pki, data_dir=str(tmp_path)) as live:
        with Work(live.server.port, server_pki) as work:
            end = time.monotonic() + DISK
            while time.monotonic() < end:
                time.sleep(random.uniform(0.01, 1))
                with faults.failing_writes(random.choice((errno.ENOSPC, errno.EIO, errno.EROFS))):
                    time.sleep(random.uniform(0.01, 1))
                work.recovered(RECOVERY)
        work.check()
        note(f"{DISK} s: {figures(work)}")
    with Live(server_pki, data_dir=str(tmp_path)) as live:
        work.check_held(live.client)


def test_failing_flushes_lose_no_acknowledged_write(server_pki: Pki, tmp_path: Path, note: Note) -> None:
    """Every seventh flush of a real process fails, by strace. After a kill no acknowledged write is lost."""
    strace = programs.path_of("strace")
    data = tmp_path / "data"
    flags = (
        "apiserver", "--secure-port=0", "--bind-address=127.0.0.1", "--authorization-mode=RBAC",
        f"--tls-cert-file={server_pki.path('tls.crt')}", f"--tls-private-key-file={server_pki.path('tls.key')}",
        f"--token-auth-file={server_pki.path('tokens.csv')}", f"--data-dir={data}",
        "--disable-admission-plugins=ServiceAccount",
    )  # fmt: skip
    server = Running(tmp_path, *flags)
    try:
        port = int(server.wait_for(r"serving on 127\.0\.0\.1:(\d+)", 60))
        with Work(port, server_pki) as work:
            with flushes_fail(strace, server.process.pid):
                time.sleep(FLUSHES)
            work.recovered(RECOVERY)
        assert work.answers["POST", 503] and work.answers["POST", 201]
        note(f"{FLUSHES} s: {figures(work)}")
        work.check()
    finally:
        server.close()
    with Live(server_pki, data_dir=str(data)) as live:
        work.check_held(live.client)


def figures(work: Work) -> str:
    return ", ".join(f"{count} {method} {code}" for (method, code), count in sorted(work.answers.items()))


@contextlib.contextmanager
def flushes_fail(strace: str, pid: int) -> Iterator[None]:
    """Makes every seventh flush of a process fail."""
    calls = "fdatasync,fsync"
    command = [strace, "-f", "-qq", "-o", "/dev/null", "-p", str(pid), "-e", f"trace={calls}"]
    tracer = subprocess.Popen([*command, "-e", f"inject={calls}:error=EIO:when=7+7"])
    try:
        yield
    finally:
        tracer.send_signal(signal.SIGINT)
        tracer.wait(30)
