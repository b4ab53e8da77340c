"""The examples of docs/testing.md run as they are written."""

from __future__ import annotations

import re
import subprocess
import sys
from pathlib import Path

import pytest

EXAMPLES = re.findall(
    r"```python\n(.*?)```", (Path(__file__).parents[2] / "docs/testing.md").read_text(), re.DOTALL
)


@pytest.mark.parametrize("example", EXAMPLES, ids=[f"example-{n}" for n in range(len(EXAMPLES))])
def test_example_runs(example: str, tmp_path: Path) -> None:
    if "def test_" in example:
        command = [sys.executable, "-m", "pytest", "-q", "-p", "no:cacheprovider", "test_example.py"]
    else:
        command = [sys.executable, "test_example.py"]
    (tmp_path / "test_example.py").write_text(example)
    done = subprocess.run(command, cwd=tmp_path, capture_output=True, text=True, check=False, timeout=100)
    assert done.returncode == 0, done.stdout + done.stderr
