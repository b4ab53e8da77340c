"""Fixtures for several test folders: a real server on a real socket, and a client."""

from __future__ import annotations

import collections
import gc
import os
import signal
import warnings
from collections.abc import Generator, Iterator
from pathlib import Path

import hypothesis
import pytest

from kubist.base.http.tls import openssl
from tests import programs
from tests.live import Client, Live, Pki
from tests.storage.cluster import EtcdCluster
from tests.storage.etcd_server import EtcdServer, running_etcd

# Examples have no time limits: on a busy machine the defaults fail tests at random.
hypothesis.settings.register_profile(
    "kubist", deadline=None, suppress_health_check=[hypothesis.HealthCheck.too_slow]
)
hypothesis.settings.load_profile("kubist")

# Options of this test run. They are not meant for the pytest and make processes that tests start.
for name in ("PYTEST_ADDOPTS", "MAKEFLAGS", "MFLAGS", "MAKELEVEL", "ARGS", "PYTHON"):
    os.environ.pop(name, None)

# Settings of the user for the output and the clusters of other programs, which change what the tests compare.
for name in (
    *("FORCE_COLOR", "NO_COLOR", "CLICOLOR_FORCE", "PY_COLORS", "TERM", "COLUMNS", "LINES"),
    *("KUBECONFIG", "PYTHONWARNINGS"),
):
    os.environ.pop(name, None)

# Client libraries of Python use the user's proxy even for this machine.
for name in ("NO_PROXY", "no_proxy"):
    os.environ[name] = ",".join(filter(None, (os.environ.get(name), "localhost,127.0.0.1,::1")))

# A shell ignores SIGINT in its background jobs, and so would all processes that tests start there and interrupt.
if signal.getsignal(signal.SIGINT) is signal.SIG_IGN:
    signal.signal(signal.SIGINT, signal.default_int_handler)
# `nohup` does so with SIGHUP.
if signal.getsignal(signal.SIGHUP) is signal.SIG_IGN:
    signal.signal(signal.SIGHUP, signal.SIG_DFL)

# These make a process a worker of this test run, also in the eyes of slipcover, which needs them at its end.
_OF_WORKER = {name: os.environ.pop(name) for name in list(os.environ) if name.startswith("PYTEST_XDIST_")}

SLOW = (
    "tests/docs/test_blocks.py",
    "tests/growth/",
    "tests/packaging/",
    "tests/testing/test_contributing_page.py",
    "tests/testing/test_docs.py",
    "tests/testing/test_examples.py",
)
"""Files and folders whose tests have the marker `slow`."""


@pytest.hookimpl(tryfirst=True)
def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    for item in items:
        if item.nodeid.startswith(SLOW):
            item.add_marker("slow")


@pytest.hookimpl(wrapper=True, tryfirst=True)
def pytest_sessionfinish(session: pytest.Session) -> Generator[None]:
    """Prints which tests were skipped, as the last lines."""
    os.environ.update(_OF_WORKER)
    yield
    reporter = session.config.pluginmanager.get_plugin("terminalreporter")
    if not isinstance(reporter, pytest.TerminalReporter):  # in a worker
        return
    reasons = collections.Counter(
        str(report.longrepr[2]).removeprefix("Skipped: ")
        for report in reporter.stats.get("skipped", ())
        if isinstance(report.longrepr, tuple)
    )
    for reason, count in reasons.most_common():
        reporter.write_line(f"Skipped {count} {'test' if count == 1 else 'tests'}: {reason}")
    if "not slow" in session.config.option.markexpr:
        reporter.write_line(
            "Left out the slow tests (documentation, examples, packaging, growth): `make test-all` runs them"
        )


@pytest.fixture(scope="session", autouse=True)
def _caches(tmp_path_factory: pytest.TempPathFactory) -> None:
    """Caches of programs for this test run: of kubectl, because in the user's cache an earlier server on the same port
    may have left entries, and of Go, if the home directory is read-only."""
    os.environ["KUBECACHEDIR"] = str(tmp_path_factory.mktemp("kubectl-cache"))
    if not os.access(Path.home(), os.W_OK):
        for name in ("GOCACHE", "GOPATH"):
            os.environ.setdefault(name, str(tmp_path_factory.mktemp(name.lower())))


@pytest.fixture(scope="session")
def server_pki(tmp_path_factory: pytest.TempPathFactory) -> Pki:
    return Pki(tmp_path_factory.mktemp("server-pki"))


@pytest.fixture(scope="session")
def shared_live(server_pki: Pki) -> Iterator[Live]:
    """Server shared by all tests that stay in their own namespace."""
    with Live(server_pki) as running:
        yield running


@pytest.fixture
def live(server_pki: Pki) -> Iterator[Live]:
    """Server in memory for one test."""
    with Live(server_pki) as running:
        yield running


@pytest.fixture
def swept() -> Iterator[None]:
    """Collects garbage after tests of client libraries, which leave sockets open. In another test an
    unclosed socket would be an error."""
    yield
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", ResourceWarning)
        gc.collect()


@pytest.fixture
def client(shared_live: Live) -> Client:
    return shared_live.client


@pytest.fixture
def namespace(client: Client) -> str:
    """Namespace of the shared server for one test."""
    name = f"test-{os.urandom(4).hex()}"
    client.post("/api/v1/namespaces", {"metadata": {"name": name}})
    return name


@pytest.fixture(scope="session")
def real_etcd(tmp_path_factory: pytest.TempPathFactory) -> Iterator[EtcdServer]:
    with running_etcd(tmp_path_factory.mktemp("real-etcd")) as server:
        yield server


@pytest.fixture
def etcd_directory(tmp_path: Path) -> Path:
    """Directory for an etcd of the test. Skips the test without etcd."""
    programs.require("etcd")
    return tmp_path


@pytest.fixture
def etcd_cluster(etcd_directory: Path) -> Iterator[EtcdCluster]:
    """An etcd with three members."""
    cluster = EtcdCluster(etcd_directory)
    cluster.start()
    yield cluster
    cluster.stop()


@pytest.fixture(params=["openssl", "fallback"])
def uses_openssl(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> bool:
    """Whether OpenSSL is reached through ctypes in this Python. The fallback is tested everywhere."""
    if request.param == "fallback":
        monkeypatch.setattr(openssl, "library", lambda: None)
    elif openssl.library() is None:
        pytest.skip("this Python's OpenSSL cannot be reached")
    return bool(request.param == "openssl")
