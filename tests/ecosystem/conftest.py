"""Fixtures and the table of results."""

from __future__ import annotations

import os
from collections.abc import Generator, Iterator
from dataclasses import replace
from pathlib import Path

import pytest

from tests.ecosystem.servers import Server
from tests.ecosystem.table import PAGE, Row, merge, table

ROWS = pytest.StashKey[dict[str, Row]]()
HERE = Path(__file__).parent


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Marks the tests of this folder. The first run downloads and builds, so the time limit is long."""
    for item in items:
        if HERE in item.path.parents:
            item.add_marker(pytest.mark.ecosystem)
            item.add_marker(pytest.mark.timeout(3600))


@pytest.hookimpl(wrapper=True)
def pytest_runtest_makereport(item: pytest.Item) -> Generator[None, pytest.TestReport, pytest.TestReport]:
    """Notes the result of a test with a row."""
    report = yield
    if (mark := item.get_closest_marker("exercises")) is not None:
        rows = item.config.stash.setdefault(ROWS, {})
        if report.failed:
            rows[item.nodeid] = replace(mark.args[0], result="fails")
        elif report.skipped:
            reason = report.longrepr[2] if isinstance(report.longrepr, tuple) else ""
            rows[item.nodeid] = replace(mark.args[0], result=reason.replace("Skipped", "skipped"))
        elif report.when == "call":
            rows[item.nodeid] = replace(mark.args[0], result="passes")
    return report


def pytest_terminal_summary(terminalreporter: pytest.TerminalReporter, config: pytest.Config) -> None:
    """Prints the table. With KUBIST_ECOSYSTEM_DOCS, also updates docs/ecosystem.md."""
    if rows := list(config.stash.get(ROWS, {}).values()):
        terminalreporter.section("ecosystem")
        terminalreporter.write(table(rows))
        if os.environ.get("KUBIST_ECOSYSTEM_DOCS"):
            PAGE.write_text(merge(PAGE.read_text(), rows))


@pytest.fixture(scope="session")
def server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Server]:
    """Server with simulated workloads. Tests share it and use namespaces of their own."""
    shared = Server(tmp_path_factory.mktemp("ecosystem"), "--workloads")
    shared.start()
    yield shared
    shared.stop()


@pytest.fixture
def own_server(tmp_path: Path) -> Iterator[Server]:
    """Server for one test, which may restart it."""
    own = Server(tmp_path)
    own.start()
    yield own
    own.stop()
