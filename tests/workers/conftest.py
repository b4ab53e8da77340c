from __future__ import annotations

import sys
from collections.abc import Iterator

import pytest

from .crew import Connection, Crew, crew

# The list of processes is read from /proc.
collect_ignore_glob = [] if sys.platform == "linux" else ["*"]

WORKERS = 3


@pytest.fixture(scope="session")
def three(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Crew]:
    """Server with three workers, for tests that do not kill them."""
    with crew(tmp_path_factory.mktemp("three"), WORKERS) as running:
        yield running


@pytest.fixture
def workers(three: Crew) -> Iterator[list[Connection]]:
    """A connection to each worker."""
    yield three.one_each(WORKERS)
    three.hang_up()


@pytest.fixture
def namespace(workers: list[Connection]) -> str:
    made = workers[0].post("/api/v1/namespaces", {"metadata": {"generateName": "crew-"}})
    name: str = made["metadata"]["name"]
    return name
