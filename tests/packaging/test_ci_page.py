"""docs/ci.md shows the files of examples/ci-workflow, whose commands tests/testing/test_examples.py runs."""

from __future__ import annotations

from typing import Any

import yaml

from tests.cli.processes import ROOT
from tests.docs.pages import blocks

EXAMPLE = ROOT / "examples/ci-workflow"


def load(name: str) -> Any:
    return yaml.safe_load((EXAMPLE / name).read_text())


def test_page_shows_the_commands_of_the_files() -> None:
    shown = [yaml.safe_load(block.text) for block in blocks(ROOT / "docs/ci.md") if block.language == "yaml"]
    github, gitlab = load(".github/workflows/test.yml")["jobs"]["test"], load(".gitlab-ci.yml")["test"]
    assert shown == [
        {"steps": github["steps"]},
        {key: gitlab[key] for key in ("before_script", "script", "artifacts")},
    ]


def test_jobs_install_a_checkout_of_kubist() -> None:
    install = "pip install -r requirements.txt ./kubist"
    steps = load(".github/workflows/test.yml")["jobs"]["test"]["steps"]
    checkouts = [
        step.get("with", {}).get("path") for step in steps if step.get("uses") == "actions/checkout@v4"
    ]
    assert checkouts == [None, "kubist"]
    assert install in [step.get("run") for step in steps]
    clone, second = load(".gitlab-ci.yml")["test"]["before_script"]
    assert (clone, second) == ('git clone --quiet --depth 1 "$KUBIST_REPOSITORY" kubist', install)
    assert "kubist" not in (EXAMPLE / "requirements.txt").read_text()
