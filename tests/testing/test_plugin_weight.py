"""Weight of the pytest plugin for test suites that do not use it."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

LOADED = {
    "kubist",
    "kubist.base",
    "kubist.base.version",
    "kubist.testing",
    "kubist.testing.plugin",
    "kubist.testing.running_test",
}
"""Modules of Kubist that pytest loads in a suite without clusters."""

REPORT = """\
import sys

def pytest_unconfigure():
    print("loaded:", *sorted(sys.modules))
"""


def modules(where: Path, *options: str) -> set[str]:
    """Modules that are loaded after pytest ran one test."""
    (where / "conftest.py").write_text(REPORT)
    (where / "test_nothing.py").write_text("def test_nothing():\n    assert True\n")
    command = [sys.executable, "-m", "pytest", "-q", "-p", "no:cacheprovider", *options, "test_nothing.py"]
    done = subprocess.run(command, cwd=where, capture_output=True, text=True, check=True, timeout=120)
    assert "1 passed" in done.stdout
    (line,) = [line for line in done.stdout.splitlines() if line.startswith("loaded:")]
    return set(line.split()[1:])


def test_plugin_loads_no_server(tmp_path: Path) -> None:
    assert modules(tmp_path) - modules(tmp_path, "-p", "no:kubist") == LOADED
