"""pytest plugin: `cluster`, a new API server for every test, and `kubist_server`, one for the whole session.

`@pytest.mark.kubist(workloads=True)` sets fields of `kubist.Config` for the cluster of a test.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING

import pytest

if TYPE_CHECKING:
    from kubist.testing.cluster import Cluster
    from kubist.testing.host import Host


def pytest_configure(config: pytest.Config) -> None:
    # pytest rewrites the assertions of all modules of a plugin's distribution, here a whole API server. This
    # prevents it.
    marked = getattr(config.pluginmanager.rewrite_hook, "_must_rewrite", None)
    if isinstance(marked, set):
        marked.discard("kubist")
    config.addinivalue_line("markers", "kubist(**settings): settings of the test's `cluster`")


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
    cluster_.stop()


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
    cluster_.stop()
