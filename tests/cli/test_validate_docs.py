"""The examples of docs/validate.md run as they are written, and print what the page shows."""

from __future__ import annotations

import json
import os
import re
import subprocess
import sys
from pathlib import Path
from typing import Any

import yaml

from tests import programs
from tests.cli.processes import environment
from tests.docs.pages import DOCS, Block, blocks

BLOCKS = blocks(DOCS / "validate.md")


def in_language(language: str) -> list[Block]:
    return [block for block in BLOCKS if block.language == language]


@programs.needs("bash")
def test_scripts_run_and_print_what_the_page_shows(home: Path) -> None:
    variables = environment(home)
    variables["PATH"] = f"{Path(sys.executable).parent}{os.pathsep}{variables['PATH']}"
    shown = 0
    for block in in_language("bash"):
        done = subprocess.run(
            ["bash", "-euo", "pipefail", "-c", block.text],
            cwd=home,
            env=variables,
            capture_output=True,
            text=True,
            timeout=280,
            check=False,
        )
        assert done.returncode == 0, done.stdout + done.stderr
        following = BLOCKS[block.number + 1] if block.number + 1 < len(BLOCKS) else None
        if following is not None and following.language == "text":
            assert done.stdout == following.text
            shown += 1
    assert shown == len(in_language("text")) == 2
    report = json.loads(
        subprocess.run(
            [sys.executable, "-m", "kubist", "validate", "web.yaml", "-o", "json"],
            cwd=home,
            env=variables,
            capture_output=True,
            check=False,
        ).stdout
    )
    [block] = in_language("json")
    assert keys(json.loads(block.text)) == keys(report)
    found = re.findall(r"^\| `(--[\w-]+)|, `(--[\w-]+)", (DOCS / "validate.md").read_text(), re.MULTILINE)
    usage = subprocess.run(
        [sys.executable, "-m", "kubist", "validate", "--help"],
        env=variables,
        capture_output=True,
        text=True,
        check=True,
    ).stdout
    assert found and all((first or second) in usage for first, second in found)


def keys(value: Any) -> Any:
    """Names of all fields; of lists, those of the first item."""
    if isinstance(value, dict):
        return {name: keys(part) for name, part in value.items()}
    return keys(value[0]) if isinstance(value, list) else None


def test_python_examples_pass(home: Path) -> None:
    [example] = in_language("python")
    (home / "test_example.py").write_text(example.text)
    done = subprocess.run(
        [sys.executable, "-m", "pytest", "-q", "-p", "no:cacheprovider", "test_example.py"],
        cwd=home,
        env=environment(home),
        capture_output=True,
        text=True,
        timeout=280,
        check=False,
    )
    assert "2 passed" in done.stdout, done.stdout + done.stderr


def test_snippets_for_ci_are_yaml_that_calls_the_command() -> None:
    snippets = in_language("yaml")
    assert len(snippets) == 3
    for block in snippets:
        assert isinstance(yaml.safe_load(block.text), dict)
        [command] = re.findall(r"kubist validate [^\n]*", block.text)
        assert "--crds crds/" in command
