"""The long tests: everything in this directory is marked `soak`, has hours, and runs by `make soak` alone."""

from __future__ import annotations

from pathlib import Path

import pytest

HERE = Path(__file__).parent
HOURS = 6 * 3600


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    for item in items:
        if HERE in item.path.parents:
            item.add_marker(pytest.mark.soak)
            item.add_marker(pytest.mark.timeout(HOURS))
