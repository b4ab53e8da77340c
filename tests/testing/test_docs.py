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


TESTS = [example for example in EXAMPLES if "def test_" in example]
PROGRAMS = [example for example in EXAMPLES if example not in TESTS]


def run(where: Path, *arguments: str) -> str:
    command = [sys.executable, *arguments]
    done = subprocess.run(command, cwd=where, capture_output=True, text=True, check=False, timeout=280)
    assert done.returncode == 0, done.stdout + done.stderr
    return done.stdout


def test_doc_examples_with_tests_pass(tmp_path: Path) -> None:
    for number, example in enumerate(TESTS):
        (tmp_path / f"test_{number}.py").write_text(example)
    assert f"{len(TESTS)} passed" in run(tmp_path, "-m", "pytest", "-q", "-p", "no:cacheprovider", ".")


@pytest.mark.parametrize("number", range(len(PROGRAMS)))
def test_doc_examples_with_programs_run(number: int, tmp_path: Path) -> None:
    (tmp_path / "program.py").write_text(PROGRAMS[number])
    assert "https://127.0.0.1:" in run(tmp_path, "program.py")
