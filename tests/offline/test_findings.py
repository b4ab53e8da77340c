"""Findings of `kubist.validate`: a table of manifests and the server's messages about them."""

from __future__ import annotations

from pathlib import Path

import pytest

import kubist
from kubist.testing.offline.findings import Report
from tests.offline.cases import CASES, Case, Expected
from tests.offline.manifests import WIDGETS
from tests.offline.updates import OLD, UPDATES


def compare(report: Report, expected: list[Expected]) -> None:
    found = [(each.line, each.severity, each.reason, each.field) for each in report.findings]
    assert found == [each[:4] for each in expected], str(report)
    for finding, wanted in zip(report.findings, expected, strict=True):
        assert wanted.message in finding.message


@pytest.mark.parametrize("case", CASES, ids=lambda case: case.name)
def test_findings(case: Case) -> None:
    crds, policies = [case.crds] if case.crds else [], [case.policies] if case.policies else []
    report = kubist.validate(case.manifests, crds=crds, policies=policies, user=case.user)
    compare(report, case.findings)


@pytest.fixture(scope="module")
def old(tmp_path_factory: pytest.TempPathFactory) -> str:
    directory = tmp_path_factory.mktemp("old")
    (directory / "old.yaml").write_text(OLD)
    return str(directory)


def test_crds_of_the_new_state_count_for_the_old_state(tmp_path: Path) -> None:
    widget = "{apiVersion: example.com/v1, kind: Widget, metadata: {name: a}, spec: {size: %d}}"
    (tmp_path / "old.yaml").write_text(widget % 3)
    for crds, manifests in (([WIDGETS], [widget % 2]), ([], [widget % 2, WIDGETS])):
        [finding] = kubist.validate(*manifests, crds=crds, against=tmp_path).findings
        assert "widgets never shrink" in finding.message


@pytest.mark.parametrize("case", UPDATES, ids=lambda case: case.name)
def test_findings_against_an_old_state(case: Case, old: str) -> None:
    policies = [case.policies] if case.policies else []
    compare(kubist.validate(case.manifests, against=old, policies=policies), case.findings)


def test_mutating_policy_changes_the_stored_object() -> None:
    policy = """
apiVersion: admissionregistration.k8s.io/v1
kind: MutatingAdmissionPolicy
metadata: {name: label}
spec:
  matchConstraints:
    resourceRules: [{apiGroups: [""], apiVersions: [v1], operations: [CREATE], resources: [configmaps]}]
  failurePolicy: Fail
  reinvocationPolicy: Never
  mutations:
  - patchType: ApplyConfiguration
    applyConfiguration: {expression: "Object{metadata: Object.metadata{labels: {'team': 'x'}}}"}
---
apiVersion: admissionregistration.k8s.io/v1
kind: MutatingAdmissionPolicyBinding
metadata: {name: label}
spec: {policyName: label}
"""
    report = kubist.validate(
        {"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": "a"}}, policies=[policy]
    )
    [checked] = report.objects
    assert report and checked.stored is not None
    assert checked.stored["metadata"]["labels"] == {"team": "x"}


def test_report_shows_its_findings() -> None:
    report = kubist.validate("{apiVersion: v1, kind: ConfigMap, metadata: {name: a}, date: {}}\n")
    assert not report and not report.ok
    assert str(report) == '<text>:1: error: ConfigMap default/a: date: unknown field "date"'
    assert repr(report) == "<Report: 1 objects, 1 errors, 0 warnings>"
    with pytest.raises(ValueError, match="groups need a user"):
        kubist.validate("{}", groups=["g"])
