"""The examples: faults find the bugs that ordinary tests miss, and the other projects pass their tests."""

from __future__ import annotations

import importlib.util
import os
import re
import shutil
import subprocess
import sys
from pathlib import Path

import pytest
import yaml

from tests import programs

EXAMPLES = Path(__file__).parents[2] / "examples"
ORDINARY = ("test_site_is_registered_and_has_one_theme", "test_pages_are_counted_and_reported")
UNDER_FAULTS = (
    "test_conflict_loses_no_update",
    "test_stale_read_makes_no_second_theme",
    "test_expired_list_is_counted_whole",
    "test_deletion_during_a_cut_is_not_missed",
)


HAS_KUBERNETES = importlib.util.find_spec("kubernetes") is not None


def start(logic: str) -> subprocess.Popen[str]:
    command = [sys.executable, "-m", "pytest", "-rA", "-q", "-p", "no:cacheprovider", "--tb=short", "."]
    variables = os.environ | {"LOGIC": logic}
    return subprocess.Popen(
        command,
        cwd=EXAMPLES / "kopf-operator",
        env=variables,
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
    )


def outcomes_of(process: subprocess.Popen[str]) -> dict[str, str]:
    """Outcome of every test of a run."""
    output, _ = process.communicate(timeout=280)
    found = re.findall(r"^(PASSED|FAILED|ERROR) \S+::(\w+)", output, re.MULTILINE)
    assert found, output
    return {name: outcome for outcome, name in found}


@pytest.mark.skipif(importlib.util.find_spec("kopf") is None, reason="kopf is not installed")
@pytest.mark.skipif(importlib.util.find_spec("kubernetes") is None, reason="kubernetes is not installed")
def test_faults_find_the_bugs_of_the_operator() -> None:
    with start("buggy") as buggy, start("fixed") as fixed:
        assert outcomes_of(buggy) == dict.fromkeys(ORDINARY, "PASSED") | dict.fromkeys(UNDER_FAULTS, "FAILED")
        assert outcomes_of(fixed) == dict.fromkeys(ORDINARY + UNDER_FAULTS, "PASSED")


@programs.needs("go")
def test_faults_find_the_bugs_of_the_controller_in_go() -> None:
    ordinary = {"TestSiteIsRegisteredAndHasOneTheme", "TestPagesAreCountedAndReported"}
    under_faults = {
        "TestConflictLosesNoUpdate",
        "TestStaleReadMakesNoSecondTheme",
        "TestExpiredListIsCountedWhole",
        "TestDeletionDuringACutIsNotMissed",
    }
    for logic, failing in (("buggy", under_faults), ("fixed", set[str]())):
        done = subprocess.run(
            [sys.executable, "run.py"],
            cwd=EXAMPLES / "go-controller",
            env=os.environ | {"LOGIC": logic},
            capture_output=True,
            text=True,
            check=False,
            timeout=140,
        )
        outcomes = re.findall(r"^--- (\w+): (\w+)", done.stdout, re.MULTILINE)
        found = {name: outcome for outcome, name in outcomes}
        expected = {name: "FAIL" if name in failing else "PASS" for name in ordinary | under_faults}
        assert found == expected, done.stdout + done.stderr


def run(where: Path, command: str) -> str:
    """Output of a command of a project, which must succeed."""
    path = f"{Path(sys.executable).parent}{os.pathsep}{os.environ['PATH']}"
    # The projects run in processes without the options of this test run.
    variables = {name: value for name, value in os.environ.items() if not name.startswith("PYTEST_")}
    done = subprocess.run(
        ["sh", "-euc", command],
        cwd=where,
        env=variables | {"PATH": path, "PYTHONDONTWRITEBYTECODE": "1"},
        capture_output=True,
        text=True,
        check=False,
        timeout=280,
    )
    assert done.returncode == 0, done.stdout + done.stderr
    return done.stdout


def copied(name: str, tmp_path: Path) -> Path:
    """Copy of an example, for runs that write files."""
    return shutil.copytree(EXAMPLES / name, tmp_path / name, ignore=shutil.ignore_patterns("__pycache__"))


def test_rules_of_the_admission_webhook(tmp_path: Path) -> None:
    assert "5 passed" in run(copied("admission-webhook", tmp_path), "pytest -q")


def test_rules_of_the_crd_with_cel(tmp_path: Path) -> None:
    project = copied("crd-with-cel", tmp_path)
    assert "12 passed" in run(project, "pytest -q")
    assert run(project, "kubist validate manifests --crds crds") == "2 objects in 1 file: valid\n"


def workflow_commands(project: Path) -> dict[str, list[str]]:
    """Commands of the workflows, by CI system."""
    github = yaml.safe_load((project / ".github/workflows/test.yml").read_text())
    gitlab = yaml.safe_load((project / ".gitlab-ci.yml").read_text())
    [job] = github["jobs"].values()
    return {
        "GitHub Actions": [step["run"] for step in job["steps"] if "run" in step],
        "GitLab CI": [*gitlab["test"]["before_script"], *gitlab["test"]["script"]],
    }


@pytest.mark.skipif(not HAS_KUBERNETES, reason="kubernetes is not installed")
@pytest.mark.parametrize("system", ["GitHub Actions", "GitLab CI"])
def test_workflows_run_their_commands(system: str, tmp_path: Path) -> None:
    project = copied("ci-workflow", tmp_path)
    commands = workflow_commands(project)[system]
    installed = commands.index("pip install -r requirements.txt ./kubist")  # the packages are installed here
    for command in commands[installed + 1 :]:
        run(project, command)
    # Every report that a workflow uploads exists.
    text = (
        project / (".gitlab-ci.yml" if system == "GitLab CI" else ".github/workflows/test.yml")
    ).read_text()
    reports = set(re.findall(r"\b[a-z]+\.(?:xml|sarif)\b", text))
    assert len(reports) == 2 and all((project / report).stat().st_size for report in reports)
    assert 'tests="2"' in (project / "report.xml").read_text()


def test_examples_do_not_read_the_options_of_our_own_tests() -> None:
    """Options in pyproject.toml need plugins that readers of an example do not install."""
    found = {path.parent for path in EXAMPLES.glob("*/test_*.py")}
    assert len(found) >= 4
    assert [folder.name for folder in found if not (folder / "pytest.ini").exists()] == []
