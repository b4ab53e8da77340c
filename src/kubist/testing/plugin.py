"""pytest plugin: `cluster`, a new API server for every test, and `kubist_server`, one for the whole session.

`@pytest.mark.kubist(workloads=True)` sets fields of `kubist.Config` for the cluster of a test. The option
`kubist_unused_faults` says what happens to a test that adds a fault rule which never acts.
"""

from __future__ import annotations

import warnings
from collections.abc import Iterator
from typing import TYPE_CHECKING

import pytest

if TYPE_CHECKING:
    from kubist.testing.cluster import Cluster
    from kubist.testing.host import Host


UNUSED_FAULTS = "kubist_unused_faults"
CHOICES = ("warn", "error", "ignore")


def pytest_addoption(parser: pytest.Parser) -> None:
    about = "fault rules that never acted in a test: warn (default), error or ignore"
    parser.addini(UNUSED_FAULTS, about, default="warn")


def pytest_configure(config: pytest.Config) -> None:
    # pytest rewrites the assertions of all modules of a plugin's distribution, here a whole API server. This
    # prevents it.
    marked = getattr(config.pluginmanager.rewrite_hook, "_must_rewrite", None)
    if isinstance(marked, set):
        marked.discard("kubist")
    config.addinivalue_line("markers", "kubist(**settings): settings of the test's `cluster`")
    if config.getini(UNUSED_FAULTS) not in CHOICES:
        raise pytest.UsageError(f"{UNUSED_FAULTS} must be {', '.join(CHOICES[:-1])} or {CHOICES[-1]}")


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
    stop(cluster_)


@pytest.fixture
def cluster(request: pytest.FixtureRequest, kubist_host: Host) -> Iterator[Cluster]:
    """A new, empty in-memory API server for each test."""
    # Saves start-up time: pytest loads this plugin even if no test uses a server.
    from kubist.config import Config

    settings = {}
    for mark in reversed(list(request.node.iter_markers("kubist"))):
        if mark.args:
            pytest.fail(
                f'@pytest.mark.kubist takes settings by name: kubist({mark.args[0]}=...), not "{mark.args[0]}"',
                pytrace=False,
            )
        settings.update(mark.kwargs)
    try:
        Config(**settings)
    except TypeError as error:
        pytest.fail(f"@pytest.mark.kubist: {error}", pytrace=False)
    cluster_ = kubist_host.cluster(**settings)
    yield cluster_
    bench = cluster_.inner.bench if cluster_.loop is not None else None
    unused = bench.unused_faults() if bench is not None else []
    stop(*cluster_.forks, cluster_)
    if unused:
        report_unused(request.config.getini(UNUSED_FAULTS), unused)


def stop(*clusters: Cluster) -> None:
    """Stops clusters. The test fails if the function of a webhook failed and the test did not notice."""
    # Saves start-up time: pytest loads this plugin even if no test uses a server.
    from kubist.testing.webhooks.failed import WebhookFailed

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
