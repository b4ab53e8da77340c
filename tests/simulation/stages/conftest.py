"""A server for all tests of Stages."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from kubist.testing import Cluster
from kubist.testing.host import Host
from tests.simulation.stages.making import CRD


@pytest.fixture(scope="package")
def server(kubist_host: Host) -> Iterator[Cluster]:
    """One server with the CRD of Stages. Tests use labels and names of their own."""
    made = kubist_host.cluster(workloads=True)
    made.load(CRD)
    yield made
    made.stop()
