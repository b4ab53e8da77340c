"""Examples of docs/workloads.md about logs, exec and usage: they run and have the output that the page shows."""

from __future__ import annotations

import os
import re
import subprocess
import sys
from pathlib import Path

from kubist.testing import Cluster
from tests import programs
from tests.simulation.streams.conftest import Kubectl

PAGE = (Path(__file__).parents[3] / "docs/workloads.md").read_text()
SECTIONS = {
    name: PAGE.partition(f"\n## {name}\n")[2].partition("\n## ")[0]
    for name in ("Logs", "Exec, attach, cp, port-forward", "Usage")
}


def blocks(language: str) -> list[str]:
    found = re.compile(rf"^```{language}\n(.*?)^```", re.DOTALL | re.MULTILINE)
    return [block for section in SECTIONS.values() for block in found.findall(section)]


def masked(text: str) -> str:
    """Text without times and without spaces at the ends of lines."""
    text = re.sub(r"\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d", "TIME", text)
    return re.sub(r" +$", "", text, flags=re.MULTILINE)


@programs.needs("kubectl", "bash")
def test_console_examples_have_the_output_of_the_page(tmp_path: Path) -> None:
    assert len(blocks("console")) == 3
    with Cluster(workloads=True) as cluster:
        environment = Kubectl(cluster).environment
        for block in blocks("console"):
            for part in re.split(r"^\$ ", block, flags=re.MULTILINE)[1:]:
                command, _, shown = part.partition("\n")
                done = subprocess.run(
                    ["bash", "-c", command],
                    cwd=tmp_path,
                    env=environment,
                    stdout=subprocess.PIPE,
                    stderr=subprocess.STDOUT,
                    text=True,
                    timeout=120,
                    check=False,
                )
                assert masked(done.stdout) == masked(shown), command


def test_python_example_passes(tmp_path: Path) -> None:
    (example,) = blocks("python")
    (tmp_path / "test_example.py").write_text(example)
    command = [sys.executable, "-m", "pytest", "-q", "-p", "no:cacheprovider", "."]
    environment = {name: value for name, value in os.environ.items() if not name.lower().endswith("_proxy")}
    done = subprocess.run(
        command, cwd=tmp_path, env=environment, capture_output=True, text=True, check=False, timeout=280
    )
    assert "1 passed" in done.stdout, done.stdout + done.stderr
