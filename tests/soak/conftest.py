"""Soak tests: all tests in this directory are marked `soak`, may run for hours, and run only with `make soak`.

After the last test a table shows the outcome, duration and figures of each.
"""

from __future__ import annotations

from collections import defaultdict
from pathlib import Path

import pytest

from tests.soak.sizes import SHORT, Note

HERE = Path(__file__).parent
HOURS = 6 * 3600
LATENCY_FIRST = ("test_overload.py", "test_stalled_watchers.py")
"""Modules that judge latency. They run first, because a machine is most often idle just after `make soak` began."""
FIGURES = pytest.StashKey[dict[str, list[str]]]()


def pytest_configure(config: pytest.Config) -> None:
    figures: dict[str, list[str]] = defaultdict(list)
    config.stash[FIGURES] = figures


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    for item in items:
        if HERE in item.path.parents:
            item.add_marker(pytest.mark.soak)
            item.add_marker(pytest.mark.timeout(HOURS))
    items.sort(key=lambda item: HERE in item.path.parents and item.path.name not in LATENCY_FIRST)


@pytest.fixture
def note(request: pytest.FixtureRequest) -> Note:
    """Records a figure for the table at the end."""
    figures = request.config.stash[FIGURES][request.node.nodeid]

    def record(figure: object) -> None:
        figures.append(str(figure))
        print(figure, flush=True)

    return record


def pytest_terminal_summary(terminalreporter: pytest.TerminalReporter, config: pytest.Config) -> None:
    rows: dict[str, list[pytest.TestReport]] = defaultdict(list)
    for reports in terminalreporter.stats.values():
        for report in reports:
            if isinstance(report, pytest.TestReport) and "soak" in report.keywords:
                rows[report.nodeid].append(report)
    if not rows:
        return
    terminalreporter.section(f"soak summary ({'short' if SHORT else 'full'} sizes)")
    total = 0.0
    for nodeid, reports in rows.items():
        seconds = sum(report.duration for report in reports)
        total += seconds
        terminalreporter.write_line(
            f"{outcome(reports):8}{seconds:8.1f} s  {nodeid.removeprefix('tests/soak/')}"
        )
        for figure in config.stash[FIGURES][nodeid]:
            for line in figure.splitlines():
                terminalreporter.write_line(f"{'':20}{line}")
    counts = [f"{sum(outcome(found) == kind for found in rows.values())} {kind}" for kind in OUTCOMES]
    terminalreporter.write_line(f"{', '.join(counts)} in {total / 60:.1f} minutes")


OUTCOMES = ("passed", "failed", "skipped")


def outcome(reports: list[pytest.TestReport]) -> str:
    """Outcome of a test: the worst of its set-up, call and tear-down."""
    found = {report.outcome for report in reports}
    return next((kind for kind in ("failed", "skipped") if kind in found), "passed")
