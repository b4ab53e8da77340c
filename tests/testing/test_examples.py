"""The examples: faults find the bugs that ordinary tests miss."""

from __future__ import annotations

import importlib.util
import os
import re
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

EXAMPLES = Path(__file__).parents[2] / "examples"
ORDINARY = ("test_site_is_registered_and_has_one_theme", "test_pages_are_counted_and_reported")
UNDER_FAULTS = (
    "test_conflict_loses_no_update",
    "test_stale_read_makes_no_second_theme",
    "test_expired_list_is_counted_whole",
    "test_deletion_during_a_cut_is_not_missed",
)


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


@pytest.mark.skipif(shutil.which("go") is None, reason="no Go")
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
