"""CONTRIBUTING.md: its walk-throughs work as they are written, in a copy of the repository, and its files exist."""

from __future__ import annotations

import os
import re
import shlex
import shutil
import subprocess
import sys
import textwrap
from pathlib import Path
from typing import NamedTuple

import pytest

from tests import programs
from tests.live import Live, Pki

ROOT = Path(__file__).parents[2]
PAGE = (ROOT / "CONTRIBUTING.md").read_text("utf-8")
COPIED = ("src", "tests", "tools", "docs", "pyproject.toml", "README.md", "Makefile")


class Block(NamedTuple):
    language: str
    path: str
    """The last path that the text before the block names."""
    text: str


def blocks(title: str) -> list[Block]:
    """The code blocks of a walk-through."""
    section = PAGE.partition(f"### {title}\n")[2].partition("\n##")[0]
    found, path = [], ""
    for before, language, text in re.findall(
        r"(.*?)^ *```(\w+)\n(.*?)^ *```$", section, re.DOTALL | re.MULTILINE
    ):
        paths = re.findall(r"`((?:src|tests)/[\w/.-]+\.\w+)`", before)
        path = paths[-1] if paths else path
        found.append(Block(language, path, textwrap.dedent(text)))
    return found


def apply(root: Path, block: Block) -> None:
    path = root / block.path
    if block.language != "diff":
        before = path.read_text("utf-8") + "\n\n" if path.exists() else ""
        path.write_text(before + block.text, "utf-8")
        return
    lines = block.text.splitlines(keepends=True)
    old = "".join(line[1:] for line in lines if line[0] in " -")
    new = "".join(line[1:] for line in lines if line[0] in " +")
    content = path.read_text("utf-8")
    assert content.count(old) == 1, (block.path, old)
    path.write_text(content.replace(old, new), "utf-8")


def run(root: Path, command: list[str]) -> str:
    environment = {**os.environ, "PYTHONPATH": str(root / "src")}
    done = subprocess.run(
        command, cwd=root, env=environment, capture_output=True, text=True, check=False, timeout=280
    )
    assert done.returncode == 0, done.stdout[-4000:] + done.stderr[-4000:]
    return done.stdout


def follow(root: Path, title: str, *, replace: tuple[tuple[str, str], ...] = ()) -> list[str]:
    """Follows a walk-through: writes its files and runs its commands. Returns the output of each command."""
    outputs = []
    for block in blocks(title):
        if block.language != "sh":
            apply(root, block)
            continue
        for line in block.text.splitlines():
            for old, new in replace:
                line = line.replace(old, new)
            words = shlex.split(line, comments=True)
            if words[:2] == ["make", "test"]:
                arguments = shlex.split(words[2].removeprefix("ARGS="))
                words = ["python", "-m", "pytest", "-q", "-p", "no:cacheprovider", *arguments]
            assert words[0] == "python"
            outputs.append(run(root, [sys.executable, *words[1:]]))
    return outputs


@pytest.fixture
def repository(tmp_path: Path) -> Path:
    """A copy of the repository."""
    ignored = shutil.ignore_patterns("__pycache__", ".*")
    for name in COPIED:
        if (ROOT / name).is_dir():
            shutil.copytree(ROOT / name, tmp_path / name, ignore=ignored)
        else:
            shutil.copy(ROOT / name, tmp_path / name)
    return tmp_path


def test_every_named_source_file_exists() -> None:
    table = PAGE.partition("## Where is the rule that")[2]
    named = re.findall(r"\| `([\w/]+\.py)` \|", table)
    assert len(named) >= 25
    assert [name for name in named if not (ROOT / "src/kubist" / name).is_file()] == []


def test_commands_at_the_top_name_targets_and_files_that_exist() -> None:
    commands = PAGE.partition("```sh\n")[2].partition("```")[0].splitlines()
    assert len(commands) >= 5
    targets = set(re.findall(r"^(\S+):", (ROOT / "Makefile").read_text("utf-8"), re.MULTILINE))
    for command in commands:
        words = shlex.split(command, comments=True)
        assert words[0] != "make" or words[1] in targets, command
        for path in re.findall(r"\btests/[\w/.]+", command):
            assert (ROOT / path).exists(), command


@programs.needs("make")
def test_make_passes_arguments_to_pytest() -> None:
    done = subprocess.run(
        ["make", "-n", "-o", ".venv/.installed", "test", "ARGS=tests/http/test_tls.py -x"],
        cwd=ROOT,
        capture_output=True,
        text=True,
        check=True,
    )
    assert "-m pytest tests/http/test_tls.py -x" in done.stdout


def test_walk_through_of_a_rule_names_tests_that_pass(repository: Path) -> None:
    (passed, replayed) = follow(
        repository,
        "Change a rule of a kind",
        replace=(("groups core", "groups-batch-basics"),),
    )
    assert " passed" in passed
    assert "fidelity: " in replayed


def passed(outputs: list[str]) -> list[int]:
    """Number of tests that each run of pytest passed."""
    return [int(count) for output in outputs for count in re.findall(r"(\d+) passed", output)]


def test_walk_through_of_a_kind_works(repository: Path) -> None:
    assert passed(follow(repository, "Add a kind")) == [1, 1]


def test_walk_through_of_a_version_works(repository: Path) -> None:
    assert passed(follow(repository, "Make a field depend on a version")) == [2]


def test_walk_through_of_an_admission_plugin_works(repository: Path) -> None:
    assert passed(follow(repository, "Add an admission plugin")) == [1, 1]


def test_walk_through_of_a_control_loop_works(repository: Path) -> None:
    assert passed(follow(repository, "Add a control loop")) == [1, 1]


def test_walk_through_of_a_command_works(repository: Path) -> None:
    assert passed(follow(repository, "Add a command")) == [1, 2]
    assert "## `kubist whoami`" in (repository / "docs/cli.md").read_text("utf-8")


def test_walk_through_of_an_authenticator_works(repository: Path) -> None:
    assert passed(follow(repository, "Add an authenticator")) == [1]


def test_walk_through_of_a_store_works(repository: Path) -> None:
    contract, _, setting = follow(repository, "Add a store")
    assert re.search(r"\d\d passed", contract)
    assert " passed" in setting


def test_walk_through_of_a_recording_works(repository: Path, live: Live, server_pki: Pki) -> None:
    """A Kubist server stands in for the kube-apiserver that is recorded."""
    recorded, replayed, raised = follow(
        repository,
        "Add a recording",
        replace=(
            ("https://127.0.0.1:6443", f"https://127.0.0.1:{live.server.port}"),
            ("TOKEN", "admin-token"),
        ),
    )
    assert "crud-my-object: 2 of 2 steps recorded" in recorded
    assert "2/2 steps (100.00 %), 2 in the same words" in replayed
    assert "2/2 steps" in raised
    assert (
        '"crud-my-object": {"steps": 2, "words": 2}'
        in (repository / "tests/conformance/floor.json").read_text()
    )
