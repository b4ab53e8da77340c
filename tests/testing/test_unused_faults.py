"""The plugin reports fault rules that never acted in a test."""

from __future__ import annotations

from pathlib import Path

import pytest

from kubist.testing import plugin
from tests.testing.test_plugin import run_pytest

TESTS = """
def test_used(cluster):
    cluster.faults.add(resource="configmaps", delay="1ms", user_agent="kubist-testing")
    cluster.list("configmaps")

def test_unused(cluster):
    with cluster.faults.add(verb="update", resource="deployment", status=409, nth=3):
        pass
    cluster.request("POST", "/kubist/v1/faults", {"verb": "list", "resource": "pods", "status": 500, "nth": 2})
    cluster.list("pods")

def test_stopped(cluster):
    cluster.faults.add(resource="secrets", status=500)
    cluster.stop()
"""
RULES = (
    "fault rule never acted: verb='update', resource='deployment', nth=3, status=409; 0 requests matched; "
    'there is no resource "deployment"; did you mean "deployments"?',
    "fault rule never acted: verb='list', resource='pods', status=500, nth=2; 0 requests matched; "
    "it spared 1 requests of the test's own helpers",
    "fault rule never acted: resource='secrets', status=500; 0 requests matched",
)


def run(directory: Path, how: str) -> str:
    (directory / "test_it.py").write_text(TESTS)
    (directory / "pytest.ini").write_text(f"[pytest]\n{how}\n")
    return run_pytest(directory)


def test_unused_rule_is_a_warning(tmp_path: Path) -> None:
    report = run(tmp_path, "")
    assert "3 passed, 2 warnings" in report
    assert all(rule in report for rule in RULES) and "UnusedFaultWarning" in report


def test_unused_rule_is_an_error_on_request(tmp_path: Path) -> None:
    report = run(tmp_path, "kubist_unused_faults = error")
    assert "3 passed, 2 errors" in report
    assert "ERROR test_it.py::test_unused" in report and all(rule in report for rule in RULES)


def test_unused_rule_is_ignored_on_request(recwarn: pytest.WarningsRecorder) -> None:
    plugin.report_unused("ignore", list(RULES))
    assert not recwarn.list


def test_unknown_choice_is_an_error(tmp_path: Path) -> None:
    assert "kubist_unused_faults must be warn, error or ignore" in run(
        tmp_path, "kubist_unused_faults = nothing"
    )
