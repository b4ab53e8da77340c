"""A host with clusters, for all tests of a module."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from kubist.testing import Cluster


@pytest.fixture(scope="module")
def host(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Cluster]:
    """A host with a data directory."""
    with Cluster(clusters=True, data_dir=str(tmp_path_factory.mktemp("host"))) as made:
        yield made


@pytest.fixture
def directory(host: Cluster) -> Path:
    """Directory of the host's clusters on disk."""
    return Path(host.config.data_dir) / "clusters"
