"""Server process for the soak tests, and its memory and processor use."""

from __future__ import annotations

import contextlib
import os
from collections.abc import Iterator
from pathlib import Path

from tests.cli.processes import Running, running
from tests.live import TOKEN, Pki

USERS = 10


@contextlib.contextmanager
def serving(home: Path, pki: Pki, *flags: str) -> Iterator[tuple[Running, int]]:
    """`kubist apiserver` on SQLite, with an admin and a few users in the group `writers`. Yields the process
    and its port."""
    users = [f'user-{number},user-{number},u-{number},"writers"' for number in range(USERS)]
    (home / "tokens").write_text("\n".join([f'{TOKEN},admin,u-admin,"system:masters"', *users, ""]))
    common = ["--secure-port=0", "--bind-address=127.0.0.1", "--token-auth-file=tokens", "--data-dir=data"]
    common += [f"--tls-cert-file={pki.path('tls.crt')}", f"--tls-private-key-file={pki.path('tls.key')}"]
    with running(home, "apiserver", *common, "--authorization-mode=RBAC", *flags) as server:
        yield server, int(server.wait_for(r"serving on 127\.0\.0\.1:(\d+)", 120))


def memory(pid: int) -> float:
    """Resident memory in MB."""
    for line in Path(f"/proc/{pid}/status").read_text().splitlines():
        if line.startswith("VmRSS:"):
            return int(line.split()[1]) / 1000
    return 0.0


def processor_times() -> tuple[int, int]:
    """Idle and total ticks of the machine's processors."""
    ticks = [int(field) for field in Path("/proc/stat").read_text().split("\n", 1)[0].split()[1:]]
    return ticks[3], sum(ticks[:8])


def descriptors(pid: int) -> int:
    return len(os.listdir(f"/proc/{pid}/fd"))
