"""Commands of all pages exist and have the flags that the pages show, also where no test can run them."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from kubist.cli import help as command_help
from kubist.cli.commands import all_commands
from tests.docs import shell
from tests.docs.pages import ROOT, blocks, pages

_COMMAND = re.compile(r"(?<![\w/.-])kubist ((?!kubist)[a-z]+)((?: [^|;&#)`>\n]*)?)")
_FLAG = re.compile(r"(?<!\S)--([a-z][\w-]*)")


def commands(path: Path) -> list[tuple[str, str]]:
    """Name and arguments of each `kubist` command in the code blocks for a shell."""
    found: list[tuple[str, str]] = []
    for block in blocks(path):
        if block.language in ("sh", "bash", "console"):
            for line in shell.lines(block.text):
                found += _COMMAND.findall(line)
    return found


@pytest.mark.parametrize("path", pages(), ids=lambda path: path.relative_to(ROOT).as_posix())
def test_commands_and_flags_exist(path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    for name, arguments in commands(path):
        assert name in all_commands(), f"kubist {name}"
        command_help.main([name])
        known = set(_FLAG.findall(capsys.readouterr().out)) | {"help"}
        own = arguments.partition(" -- ")[0]
        assert set(_FLAG.findall(own)) <= known, f"kubist {name}{arguments}"


def test_pages_show_commands() -> None:
    assert sum(len(commands(path)) for path in pages()) > 60


def test_commands_that_are_only_shown_have_a_reason() -> None:
    assert all(shell.NOT_RUN.values())


@pytest.mark.parametrize(
    "path", [ROOT / "README.md", ROOT / "CONTRIBUTING.md", *(ROOT / "docs").rglob("*.md")]
)
def test_targets_of_make_exist(path: Path) -> None:
    targets = set(re.findall(r"^([\w-]+):", (ROOT / "Makefile").read_text(), re.MULTILINE))
    for block in blocks(path):
        if block.language in ("sh", "bash"):
            used = {
                found for line in shell.lines(block.text) for found in re.findall(r"^make ([\w-]+)", line)
            }
            assert used <= targets
