"""The source reads the system's clocks only for metrics, logs, network timeouts and internals of a process."""

from __future__ import annotations

import re
from pathlib import Path

import kubist

SOURCE = Path(kubist.__file__).parent
READS = re.compile(
    r"\btime\.(time|time_ns|monotonic|monotonic_ns|localtime)\("
    r"|\bdatetime\.now\(|\butcnow\(|^from time import (?!perf_counter)",
    re.MULTILINE,
)
ALLOWED = {
    "clock.py": "it is the clock",
    "bench/movable_clock.py": "it is the clock",
    "bench/clock_control.py": "the offset of a clock from the system's",
    "logs.py": "logs",
    "filters/auditfile.py": "names and ages of log files",
    "discovery/metrics.py": "metrics",
    "discovery/zpages.py": "uptime of the process",
    "discovery/sampling.py": "a profile of the process",
    "discovery/openapi.py": "HTTP headers for caches of clients",
    "storage/encryption/tally.py": "metrics",
    "http/tls.py": "how often a file is checked",
    "http/certificates.py": "certificates of the server itself, which clients check by their own clocks",
    "runtime/pki.py": "certificates of the server itself, which clients check by their own clocks",
    "storage/etcd_lease.py": "leases of etcd, which has its own clock",
    "storage/retention.py": "how long history is kept",
    "control/resourcequotas.py": "a pause that batches changes",
    "admission/plugins/podsecurity.py": "the time limit of a computation",
    "envtest/environment.py": "the start of a process",
    "cli/instance.py": "the uptime of a process",
    "cli/progress.py": "how often a line is updated",
    "cli/stop.py": "how long a process may take to end",
    "workers/supervisor.py": "restarts of processes",
    "workers/child.py": "restarts of processes",
    "filters/issuerkeys.py": "requests to an issuer",
    "clusters/limits.py": "requests per second, which protect the process",
    "envtest/warm.py": "how long a process waits for work",
}


def readers() -> set[str]:
    return {
        path.relative_to(SOURCE).as_posix()
        for path in sorted(SOURCE.rglob("*.py"))
        if READS.search(path.read_text())
    }


def test_time_dependent_code_asks_the_clock_of_the_server() -> None:
    assert readers() - set(ALLOWED) == set()


def test_every_exception_is_needed() -> None:
    assert set(ALLOWED) - readers() == set()
