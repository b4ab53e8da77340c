"""The report of a failed test has the last requests, Events and changed objects of its cluster."""

from __future__ import annotations

from pathlib import Path

from kubist.testing import Cluster, failure_report
from kubist.testing.running_test import Section
from tests.testing.test_plugin import run_pytest

TESTS = """
import pytest

MAPS = "/api/v1/namespaces/default/configmaps"
MERGE = "application/merge-patch+json"

def test_fails(cluster):
    cluster.request("POST", MAPS, {"metadata": {"name": "new"}})
    cluster.request("PATCH", MAPS + "/kube-root-ca.crt", {"data": {"x": "1"}}, MERGE)
    secret = {"metadata": {"name": "s"}, "stringData": {"p": "hid" "den-1"}}
    cluster.request("POST", "/api/v1/namespaces/default/secrets", secret)
    cluster.request("POST", "/api/v1/namespaces/default/events", {
        "metadata": {"name": "e"}, "involvedObject": {"kind": "Pod", "namespace": "default", "name": "p"},
        "type": "Warning", "reason": "BackOff", "message": "restarting", "count": 3})
    with pytest.raises(Exception):
        cluster.get("cm/none")
    assert 1 == 2

def test_passes(cluster):
    cluster.list("cm")

@pytest.fixture
def prepared(cluster):
    cluster.list("pods")
    raise ValueError("setup failed")

def test_setup_fails(prepared):
    pass

def test_stopped(cluster):
    cluster.stop()
    assert 1 == 3

@pytest.mark.xfail
def test_expected(cluster):
    assert 1 == 4

def test_without_cluster():
    assert 1 == 5
"""


def run(directory: Path, setting: str = "", *options: str) -> str:
    (directory / "test_it.py").write_text(TESTS)
    (directory / "pytest.ini").write_text(f"[pytest]\n{setting}\n")
    return run_pytest(directory, *options)


def test_failed_test_reports_its_cluster(tmp_path: Path) -> None:
    report = run(tmp_path)
    assert "3 failed, 1 passed, 1 xfailed, 1 error" in report
    assert report.count("kubist: last requests") == 2
    assert "create configmaps default/new -> 201  [admin kubist-testing]" in report
    assert "get configmaps default/none -> 404 NotFound" in report and 'configmaps "none" not found' in report
    assert "Warning BackOff Pod default/p: restarting (3 times)" in report
    assert "ConfigMap default/new: created" in report and "Secret default/s: created" in report
    assert "list pods default -> 200" in report
    assert "hidden-1" not in report


def test_report_can_be_disabled(tmp_path: Path) -> None:
    assert "kubist: last" not in run(tmp_path, "kubist_failure_report = false")
    assert "kubist: last" not in run(tmp_path, "", "--no-kubist-failure-report")


def test_changes_are_short_and_without_secrets(cluster: Cluster) -> None:
    secrets = "/api/v1/namespaces/default/secrets"
    cluster.request("POST", secrets, {"metadata": {"name": "s"}, "stringData": {"p": "one"}})
    cluster.run(_restart(cluster))
    merge = "application/merge-patch+json"
    for number in range(2):
        cluster.request("PATCH", f"{secrets}/s", {"stringData": {"p": f"{number}"}}, merge)
    labels = {f"l{number}": "x" for number in range(20)}
    cluster.request("PATCH", "/api/v1/namespaces/default", {"metadata": {"labels": labels}}, merge)
    for number in range(20):
        cluster.request("POST", "/api/v1/namespaces", {"metadata": {"name": f"n{number}"}})
        cluster.list("pods")
    found = dict(cluster.run(_report(cluster)))
    requests = found["kubist: last requests"].splitlines()
    assert len(requests) == failure_report.REQUESTS + 1 and "earlier requests" in requests[0]
    assert "earlier objects" in found["kubist: changed objects"]
    cluster.run(_restart(cluster))
    cluster.request("PATCH", f"{secrets}/s", {"stringData": {"p": "two"}}, merge)
    cluster.request(
        "PATCH", "/api/v1/namespaces/default", {"metadata": {"labels": dict.fromkeys(labels, "y")}}, merge
    )
    changes = dict(cluster.run(_report(cluster)))["kubist: changed objects"]
    assert "Secret default/s: changed\n    ~ data.p: <redacted> -> <redacted, changed>" in changes
    assert (
        "Namespace default: changed\n    ~ metadata.labels.l0: x -> y" in changes
        and "    … 14 more" in changes
    )


async def _report(cluster: Cluster) -> list[Section]:
    return failure_report.collect(cluster.inner)


async def _restart(cluster: Cluster) -> None:
    """Lets the report begin here."""
    bench = cluster.inner.bench
    assert bench is not None
    bench.keep_requests()
