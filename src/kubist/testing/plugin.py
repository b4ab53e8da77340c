"""pytest plugin: `cluster`, a new API server for every test, and `kubist_server`, one for the whole session.

`@pytest.mark.kubist(workloads=True)` sets fields of `kubist.Config` for the cluster of a test. The option
`kubist_unused_faults` decides what happens to a test that adds a fault rule which never acts. The report of a failed
test has the last requests, Events and changed objects of its clusters, unless `kubist_failure_report` is false or
`--no-kubist-failure-report` is given. `--kubist-update-golden` writes golden files.
"""

from __future__ import annotations

import os
import warnings
from collections.abc import Generator, Iterator
from typing import TYPE_CHECKING, Any

import pytest

from kubist.testing import running_test
from kubist.testing.running_test import RunningTest

if TYPE_CHECKING:
    from kubist.testing.cluster import Cluster
    from kubist.testing.host import Host
    from kubist.testing.operators.kopf_operators import KopfOperators


UNUSED_FAULTS = "kubist_unused_faults"
CHOICES = ("warn", "error", "ignore")
FAILURE_REPORT = "kubist_failure_report"
UPDATE_GOLDEN = "KUBIST_UPDATE_GOLDEN"
"""Environment variable that makes `Requests.match_golden` write its file."""
_TEST = pytest.StashKey[RunningTest]()
"""The running test of a session."""
_OUTER = pytest.StashKey[RunningTest | None]()
"""The running test of another session in this process, whose test runs pytest."""


def pytest_addoption(parser: pytest.Parser) -> None:
    about = "fault rules that never acted in a test: warn (default), error or ignore"
    parser.addini(UNUSED_FAULTS, about, default="warn")
    about = (
        "report the last requests, Events and changed objects of the cluster of a failed test (default: true)"
    )
    parser.addini(FAILURE_REPORT, about, type="bool", default=True)
    group = parser.getgroup("kubist")
    about = "do not report requests, Events and changed objects of failed tests"
    group.addoption("--no-kubist-failure-report", action="store_true", help=about)
    about = "write the files of requests.match_golden() instead of comparing them"
    group.addoption("--kubist-update-golden", action="store_true", help=about)


def pytest_configure(config: pytest.Config) -> None:
    # pytest rewrites the assertions of all modules of a plugin's distribution, here a whole API server. This
    # prevents it.
    marked = getattr(config.pluginmanager.rewrite_hook, "_must_rewrite", None)
    if isinstance(marked, set):
        marked.discard("kubist")
    config.addinivalue_line("markers", "kubist(**settings): settings of the test's `cluster`")
    if config.getini(UNUSED_FAULTS) not in CHOICES:
        raise pytest.UsageError(f"{UNUSED_FAULTS} must be {', '.join(CHOICES[:-1])} or {CHOICES[-1]}")
    if config.getoption("--kubist-update-golden"):
        os.environ[UPDATE_GOLDEN] = "1"
    config.stash[_OUTER] = running_test.current
    running_test.current = config.stash[_TEST] = RunningTest(has_report=_reports_failures(config))


def pytest_unconfigure(config: pytest.Config) -> None:
    if config.getoption("--kubist-update-golden"):
        os.environ.pop(UPDATE_GOLDEN, None)
    running_test.current = config.stash.get(_OUTER, None)


def _reports_failures(config: pytest.Config) -> bool:
    return bool(config.getini(FAILURE_REPORT)) and not config.getoption("--no-kubist-failure-report")


@pytest.hookimpl(hookwrapper=True)
def pytest_runtest_makereport(item: pytest.Item, call: pytest.CallInfo[None]) -> Generator[None, Any, None]:
    outcome = yield
    if call.excinfo is None or call.when == "teardown":
        return
    report: pytest.TestReport = outcome.get_result()
    if report.failed:
        report.sections += item.config.stash[_TEST].sections()


@pytest.hookimpl(tryfirst=True)
def pytest_runtest_setup(item: pytest.Item) -> None:
    item.config.stash[_TEST].begin()


@pytest.hookimpl(wrapper=True)
def pytest_runtest_teardown(item: pytest.Item) -> Generator[None, object, object]:
    test = item.config.stash[_TEST]
    test.begin_teardown()
    result = yield
    if unused := test.end():
        report_unused(item.config.getini(UNUSED_FAULTS), unused)
    return result


@pytest.fixture(scope="session")
def kubist_host() -> Iterator[Host]:
    """Factory of clusters: `kubist_host.cluster(**settings)`. The caller must stop them."""
    # Saves start-up time: pytest loads this plugin even if no test uses a server.
    from kubist.testing.host import Host

    host = Host()
    yield host
    host.stop()


@pytest.fixture(scope="session")
def kubist_server(kubist_host: Host) -> Iterator[Cluster]:
    """One API server for all tests of the session (with pytest-xdist: of each worker)."""
    cluster_ = kubist_host.cluster()
    yield cluster_
    stop(*cluster_.forks, cluster_)


@pytest.fixture
def cluster(request: pytest.FixtureRequest, kubist_host: Host) -> Iterator[Cluster]:
    """A new, empty in-memory API server for each test."""
    # Saves start-up time: pytest loads this plugin even if no test uses a server.
    from kubist.api.config import Config

    settings = {}
    for mark in reversed(list(request.node.iter_markers("kubist"))):
        if mark.args:
            pytest.fail(
                f'@pytest.mark.kubist takes settings by name: kubist({mark.args[0]}=...), not "{mark.args[0]}"',
                pytrace=False,
            )
        settings.update(mark.kwargs)
    problem = ""
    try:
        Config(**settings)
    except TypeError as error:
        problem = str(error)
    if problem:  # outside `except`, where pytest would show both errors
        pytest.fail(f"@pytest.mark.kubist: {problem}", pytrace=False)
    cluster_ = kubist_host.cluster(**settings)
    yield cluster_
    stop(*cluster_.forks, cluster_)


@pytest.fixture
def kopf_operator(request: pytest.FixtureRequest, cluster: Cluster) -> Iterator[KopfOperators]:
    """Starts kopf operators of the test's `cluster`: `kopf_operator("operator.py")`. They stop after the test."""
    # Saves start-up time: pytest loads this plugin even if no test uses a server.
    from kubist.testing.operators.kopf_operators import KopfOperators
    from kubist.testing.operators.operator import OperatorFailed

    problem = ""
    try:
        with KopfOperators(cluster, request.path.parent) as operators:
            yield operators
    except OperatorFailed as failed:
        problem = str(failed)
    if problem:  # outside `except`, where pytest would show both errors
        pytest.fail(problem, pytrace=False)


def stop(*clusters: Cluster) -> None:
    """Stops clusters. The test fails if the function of a webhook failed and the test did not notice."""
    # Saves start-up time: pytest loads this plugin even if no test uses a server.
    from kubist.testing.errors import WebhookFailed

    failures = []
    for each in clusters:
        try:
            each.stop()
        except WebhookFailed as failed:
            failures.append(str(failed))
    if failures:
        pytest.fail("\n".join(failures), pytrace=False)


def report_unused(how: str, faults: list[str]) -> None:
    """Reports fault rules of a test that never acted."""
    text = "\n".join(f"fault rule never acted: {fault}" for fault in faults[:10])
    if how == "error":
        pytest.fail(text, pytrace=False)
    elif how == "warn":
        warnings.warn(UnusedFaultWarning(text), stacklevel=2)


class UnusedFaultWarning(UserWarning):
    """A test added a fault rule that never acted."""
