"""Fixtures for simulated workloads."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from kubist.testing import Cluster, Host


@pytest.fixture(scope="module")
def server(kubist_host: Host) -> Iterator[Cluster]:
    """Server with simulated workloads, shared by the tests of a module."""
    cluster = kubist_host.cluster(workloads=True)
    yield cluster
    cluster.stop()
