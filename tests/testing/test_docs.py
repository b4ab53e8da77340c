"""The examples of the guides run as they are written."""

from __future__ import annotations

import os
import re
import subprocess
import sys
from pathlib import Path

import pytest

from kubist.testing import Cluster
from tests import programs

DOCS = Path(__file__).parents[2] / "docs"
PAGES = (
    "testing.md",
    "clock.md",
    "faults.md",
    "recording.md",
    "test-webhooks.md",
    "test-operators.md",
    "snapshots.md",
)


def blocks(page: str, language: str) -> list[str]:
    """Code blocks of a page in one language."""
    return re.findall(rf"^```{language}\n(.*?)^```", (DOCS / page).read_text(), re.DOTALL | re.MULTILINE)


TESTS = [(page, block) for page in PAGES for block in blocks(page, "python") if "def test_" in block]
PROGRAMS = [(page, block) for page in PAGES for block in blocks(page, "python") if "def test_" not in block]
GO_PROGRAMS = [(page, block) for page in PAGES for block in blocks(page, "go")]
SCRIPTS = [(page, block) for page in PAGES for block in blocks(page, "bash")]


def run(where: Path, *arguments: str) -> str:
    command = [sys.executable, *arguments]
    done = subprocess.run(command, cwd=where, capture_output=True, text=True, check=False, timeout=280)
    assert done.returncode == 0, done.stdout + done.stderr
    return done.stdout


def test_examples_with_tests_pass(tmp_path: Path) -> None:
    for number, (page, example) in enumerate(TESTS):
        (tmp_path / f"test_{Path(page).stem}_{number}.py").write_text(example)
    found = sum(len(re.findall(r"^(?:async )?def test_", example, re.MULTILINE)) for _, example in TESTS)
    assert f"{found} passed" in run(tmp_path, "-m", "pytest", "-q", "-p", "no:cacheprovider", ".")


@pytest.mark.parametrize("number", range(len(PROGRAMS)))
def test_examples_with_programs_run(number: int, tmp_path: Path) -> None:
    (tmp_path / "program.py").write_text(PROGRAMS[number][1])
    assert "127.0.0.1" in run(tmp_path, "program.py")


@pytest.mark.parametrize("number", range(len(SCRIPTS)))
def test_examples_for_the_command_line_run(number: int, cluster: Cluster) -> None:
    script = SCRIPTS[number][1]
    programs.require("bash", *programs.used_in(script))
    path = f"{Path(sys.executable).parent}{os.pathsep}{os.environ['PATH']}"
    variables = os.environ | {"KUBECONFIG": str(cluster.kubeconfig), "PATH": path}
    done = subprocess.run(
        ["bash", "-euxo", "pipefail", "-c", script], env=variables, timeout=280, check=False
    )
    assert done.returncode == 0


@programs.needs("go")
@pytest.mark.parametrize("number", range(len(GO_PROGRAMS)))
def test_examples_in_go_run(number: int, cluster: Cluster, tmp_path: Path) -> None:
    page, program = GO_PROGRAMS[number]
    (tmp_path / "main.go").write_text(program)
    variables = os.environ | {
        "KUBIST_URL": cluster.url,
        "KUBIST_TOKEN": cluster.token,
        "KUBIST_CA": str(cluster.ca),
        "GOFLAGS": "-mod=mod",
    }
    done = subprocess.run(
        ["go", "run", "main.go"],
        cwd=tmp_path,
        env=variables,
        capture_output=True,
        text=True,
        check=False,
        timeout=280,
    )
    assert done.returncode == 0, done.stderr
    # The comments of the example say what it prints.
    expected = [part for line in re.findall(r"Println.*// (.*)", program) for part in line.split(", ")]
    assert done.stdout.splitlines() == expected, page
