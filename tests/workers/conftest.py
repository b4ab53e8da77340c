from __future__ import annotations

import sys
from collections.abc import Iterator

import pytest

from .crew import Connection, Crew, crew

# What processes there are is read from /proc.
collect_ignore_glob = [] if sys.platform == "linux" else ["*"]

WORKERS = 3


@pytest.fixture(scope="session")
def three(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Crew]:
    """A server of three workers, for all tests that leave them alive."""
    with crew(tmp_path_factory.mktemp("three"), WORKERS) as running:
        yield running


@pytest.fixture
def workers(three: Crew) -> Iterator[list[Connection]]:
    """A connection to each of them."""
    yield three.one_each(WORKERS)
    three.hang_up()


@pytest.fixture
def namespace(workers: list[Connection]) -> str:
    made = workers[0].post("/api/v1/namespaces", {"metadata": {"generateName": "crew-"}})
    name: str = made["metadata"]["name"]
    return name
