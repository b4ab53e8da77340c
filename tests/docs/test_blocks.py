"""Code blocks of the documentation run as they are written.

All blocks of a page run in order, in one directory and against one cluster with simulated workloads:

- `bash` blocks run as they are; `console` blocks have commands after `$ ` and their output, which is compared
- `python` blocks run with pytest if they have tests, otherwise as a program
- `sh` blocks are commands that serve until they are stopped, or that install software: `shell.py` runs them line by
  line, in the background where needed, and names the commands that are only shown
- a block whose first line is a comment `file: NAME` becomes that file

Other tests run the blocks of ELSEWHERE.
"""

from __future__ import annotations

import json
import os
import re
import subprocess
import sys
from pathlib import Path

import pytest
import yaml

from kubist.testing import Cluster, Host
from tests import programs
from tests.docs import shell
from tests.docs.pages import DOCS, ROOT, Block, blocks
from tests.testing import test_docs

FOLDERS = ("start", "guides", "coming-from")
GUIDES = sorted(path for folder in FOLDERS for path in (DOCS / folder).glob("*.md"))
PAGES = [ROOT / "README.md", *sorted(DOCS.rglob("*.md"))]
IN_TESTS = frozenset(("python", "bash", "go", "text", "toml"))
ELSEWHERE = {
    **{f"docs/{name}": IN_TESTS for name in test_docs.PAGES},  # tests/testing/test_docs.py
    "docs/clusters.md": frozenset(("python", "bash")),  # tests/clusters/test_docs.py
    "docs/cli.md": frozenset(("bash", "console", "text")),  # tests/cli/test_cli_page.py
    "docs/validate.md": frozenset(
        ("python", "bash", "json", "yaml", "text")
    ),  # tests/cli/test_validate_docs.py
    # tests/simulation: test_outcome_docs.py, stages/test_docs.py, streams/test_docs.py;
    # tests/control/workloads/test_batch_docs.py
    "docs/workloads.md": frozenset(("python",)),
    "docs/guides/moving.md": frozenset(("sh",)),  # needs a kube-apiserver: tests/sharedetcd
}
"""Pages whose blocks in these languages are run by other tests."""
STARTED = {
    "docs/guides/upgrades.md": "kubist serve --data-dir ./cluster",
    "docs/operations.md": "kubist serve --data-dir ./data",
    "docs/snapshots.md": "kubist serve",
    "docs/troubleshooting.md": "kubist serve",
}
"""Servers that run already when the reader of a page begins."""
_FILE = re.compile(r"^(?:#|//|<!--) file: (\S+)")
_AGES = re.compile(r"\b(?:\d+(?:\.\d+)?(?:ms|s|m|h|d))+\b")


class Page:
    """Directory and cluster of one page."""

    def __init__(self, cluster: Cluster, directory: Path) -> None:
        self.directory = directory
        binaries = Path(sys.executable).parent
        self.environment = os.environ | {
            "KUBECONFIG": str(cluster.kubeconfig),
            "KUBIST_URL": cluster.url,
            "KUBIST_TOKEN": cluster.token,
            "KUBIST_CA": str(cluster.ca),
            "PATH": f"{binaries}{os.pathsep}{os.environ['PATH']}",
            "NO_COLOR": "1",
            # Servers without --data-dir. HOME stays, because it has the cache of the Go compiler.
            "XDG_DATA_HOME": str(directory / "data"),
        }
        self.shell = shell.Shell(directory, self.environment)

    def run(self, *command: str, fails: bool = False) -> str:
        done = subprocess.run(
            command,
            cwd=self.directory,
            env=self.environment,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            text=True,
            timeout=280,
            check=False,
        )
        assert fails or done.returncode == 0, f"{command[-1]}\n{done.stdout}"
        return done.stdout

    def play(self, block: Block) -> None:
        named = _FILE.match(block.text)
        if named:
            target = self.directory / named[1]
            target.parent.mkdir(parents=True, exist_ok=True)
            target.write_text(block.text)
        elif play := getattr(self, f"play_{block.language}", None):
            play(block)
        else:
            raise AssertionError(f"{block.page}: nobody runs blocks of {block.language!r}")

    def play_python(self, block: Block) -> None:
        name = f"test_block_{block.number}.py" if "def test_" in block.text else f"block_{block.number}.py"
        (self.directory / name).write_text(block.text)
        if name.startswith("test_"):
            found = len(re.findall(r"^\s*(?:async )?def test_", block.text, re.MULTILINE))
            output = self.run(sys.executable, "-m", "pytest", "-q", "-p", "no:cacheprovider", name)
            passed = re.search(r"(\d+) passed", output)
            assert passed and int(passed[1]) >= found, output
        else:
            self.run(sys.executable, name)

    def play_bash(self, block: Block) -> None:
        self.run("bash", "-euo", "pipefail", "-c", block.text)

    def play_console(self, block: Block) -> None:
        for part in re.split(r"^\$ ", block.text, flags=re.MULTILINE)[1:]:
            command, _, shown = part.partition("\n")
            while command.endswith("\\"):
                more, _, shown = shown.partition("\n")
                command = f"{command}\n{more}"
            fails = "terminated with exit code" in shown
            output = self.run("bash", "-euo", "pipefail", "-c", command, fails=fails)
            assert normalized(output) == normalized(shown), command

    def play_sh(self, block: Block) -> None:
        if shell.is_shown_only(block.text):
            return
        for line in shell.lines(block.text):
            if shell.is_run(line):
                self.shell.run(line)

    def play_yaml(self, block: Block) -> None:
        assert list(yaml.safe_load_all(block.text))

    def play_json(self, block: Block) -> None:
        assert json.loads(block.text)

    def play_(self, block: Block) -> None:
        """A drawing."""

    def play_text(self, block: Block) -> None:
        assert block.text.strip()


def normalized(text: str) -> list[list[str]]:
    """Words of each line, without ages, random suffixes and addresses."""
    text = re.sub(r"\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d(?:\.\d+)?Z", "TIME", text)
    text = re.sub(
        r"\b([a-z-]+?)-(?:[bcdf-hj-np-tv-z2456789]{8,10}-)?[bcdf-hj-np-tv-z2456789]{5}\b", r"\1-XXXXX", text
    )
    text = _AGES.sub("AGE", text)
    return [line.split() for line in text.splitlines() if line.strip()]


def programs_of(block: Block) -> list[str]:
    """Optional programs that a block runs."""
    if block.language == "sh":
        shown_only = shell.is_shown_only(block.text)
        run = [] if shown_only else [line for line in shell.lines(block.text) if shell.is_run(line)]
        return programs.used_in("\n".join(run))
    return programs.used_in(block.text) if block.language in ("bash", "console") else []


@programs.needs("bash")
@pytest.mark.parametrize("path", PAGES, ids=lambda path: path.relative_to(ROOT).as_posix())
def test_blocks_of_a_page_run(path: Path, kubist_host: Host, tmp_path: Path) -> None:
    name = path.relative_to(ROOT).as_posix()
    played = [block for block in blocks(path) if block.language not in ELSEWHERE.get(name, ())]
    programs.require(*(program for block in played for program in programs_of(block)))
    cluster = kubist_host.cluster(workloads=True)
    page = Page(cluster, tmp_path)
    try:
        if name in STARTED:
            page.shell.run(STARTED[name])
        for block in played:
            page.play(block)
    finally:
        page.shell.close()
        cluster.stop()


@pytest.mark.parametrize("path", GUIDES, ids=lambda path: path.relative_to(ROOT).as_posix())
def test_page_starts_with_an_example(path: Path) -> None:
    found = blocks(path)
    assert found, "a guide has code"
    before = path.read_text().partition("```")[0]
    assert len(before.split()) < 120, "the first example comes early"
