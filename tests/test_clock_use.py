"""The source reads the system's clocks only for metrics, logs, network timeouts and internals of a process."""

from __future__ import annotations

import re
from pathlib import Path

import kubist

SOURCE = Path(kubist.__file__).parent
READS = re.compile(
    r"\btime\.(time|time_ns|monotonic|monotonic_ns|localtime|clock_gettime|clock_gettime_ns)\("
    r"|\b(gmtime|ctime|asctime)\(\)|\bdate(time)?\.(now|today)\(|\butcnow\("
    r"|^from time import (?!perf_counter)|^import time as ",
    re.MULTILINE,
)
WAITS = re.compile(r"\.call_(later|at)\(|\bloop\.time\(\)|\basyncio\.sleep\((?!0\))|\btime\.sleep\(")
ALLOWED = {
    "base/clock.py": "it is the clock",
    "testbench/clock/movable.py": "it is the clock",
    "testbench/clock/control.py": "the offset of a clock from the system's",
    "api/logs.py": "logs",
    "api/filters/audit/file.py": "names and ages of log files",
    "api/discovery/metrics.py": "metrics",
    "api/discovery/zpages.py": "uptime of the process",
    "api/discovery/profiling.py": "a profile of the process",
    "api/discovery/openapi.py": "HTTP headers for caches of clients",
    "storage/encryption/metrics.py": "metrics",
    "base/http/http1/response_head.py": "the HTTP header Date, which clients compare with their own clocks",
    "base/http/tls/contexts.py": "how often a file is checked",
    "base/http/tls/certificates.py": "certificates of the server itself, which clients check by their own clocks",
    "server/runtime/pki.py": "certificates of the server itself, which clients check by their own clocks",
    "server/runtime/kubeconfig.py": "how long to wait for a lock",
    "storage/etcd/store.py": "leases of etcd, which has its own clock",
    "storage/retention.py": "how long history is kept",
    "cluster/control/resourcequota.py": "a pause that batches changes",
    "api/admission/plugins/podsecurity.py": "the time limit of a computation",
    "testing/envtest/environment.py": "the start of a process",
    "cli/backup.py": "names of files",
    "cli/instance.py": "the uptime of a process",
    "cli/progress.py": "how often a line is updated",
    "cli/stop.py": "how long a process may take to end",
    "server/workers/supervisor.py": "restarts of processes",
    "server/workers/child.py": "restarts of processes",
    "api/filters/authentication/oidc.py": "requests to an issuer",
    "api/filters/flowcontrol/work_estimate.py": "how often the mean size of objects is computed",
    "server/clusters/limits.py": "requests per second, which protect the process",
    "testing/envtest/warm.py": "how long a process waits for work",
}


WAITS_ALLOWED = {
    "base/clock.py": "it is the clock",
    "testbench/clock/movable.py": "it is the clock",
    "testbench/faults/fault.py": "delays of faults are in real time",
    "testbench/recording/capture.py": "how long recent requests are kept for a client",
    "testbench/replay/replay.py": "a client of another server",
    "base/http/": "network timeouts",
    "api/aggregation/": "the network to extension API servers",
    "api/verbs/watch.py": "timeouts and bookmarks of connections",
    "api/filters/": "the network to webhooks and issuers, and files that change",
    "api/discovery/profiling.py": "a profile of the process",
    "server/runtime/kubeconfig.py": "how long to wait for a lock",
    "server/runtime/run.py": "shutdown of the process",
    "server/server.py": "whether etcd responds",
    "storage/": "commits, history, and the network to etcd and to the store's process",
    "cluster/control/leader.py": "leader election on etcd, where the clock cannot be moved",
    "cluster/control/kubernetes_service.py": "leases on etcd, where the clock cannot be moved",
    "cluster/control/events.py": "a pause that batches changes",
    "api/crd/controller.py": "retries after an error",
    "api/admission/plugins/serviceaccount.py": "a pause until a control loop has made the account",
    "cluster/simulation/kubelet_api/": "connections of a client that waits",
    "cluster/simulation/shell/container.py": "commands of a client that waits",
    "server/clusters/": "pauses until something has started or ended",
    "testing/offline/state.py": "the network to a cluster",
    "testing/": "the process of the test",
    "testing/envtest/environment.py": "the start of a process",
    "cli/": "the process of the command",
}


def readers(pattern: re.Pattern[str] = READS) -> set[str]:
    return {
        path.relative_to(SOURCE).as_posix()
        for path in sorted(SOURCE.rglob("*.py"))
        if pattern.search(path.read_text())
    }


def test_time_dependent_code_asks_the_clock_of_the_server() -> None:
    assert readers() - set(ALLOWED) == set()


def test_every_exception_is_needed() -> None:
    assert set(ALLOWED) - readers() == set()


def is_below(path: str, allowed: str) -> bool:
    return path.startswith(allowed) if allowed.endswith("/") else path == allowed


def test_time_dependent_code_waits_by_the_clock_of_the_server() -> None:
    waits = readers(WAITS)
    assert [path for path in waits if not any(is_below(path, allowed) for allowed in WAITS_ALLOWED)] == []
    assert [allowed for allowed in WAITS_ALLOWED if not any(is_below(path, allowed) for path in waits)] == []


def test_reads_of_every_form_are_found() -> None:
    for text in (
        "time.time()",
        "time.gmtime()",
        "datetime.date.today()",
        "from time import time",
        "datetime.now(UTC)",
    ):
        assert READS.search(text), text
    for text in ("time.gmtime(moment)", "clock.now()", "from time import perf_counter", "asyncio.sleep(0)"):
        assert not READS.search(text) and not WAITS.search(text), text
