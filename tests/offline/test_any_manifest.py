"""Damaged manifests give findings, never an exception or a failure of the server."""

from __future__ import annotations

import copy
import random
from pathlib import Path
from typing import Any

import pytest
import yaml

import kubist
from kubist.testing.offline.reports import json_report, junit, sarif, text
from tests.offline.manifests import DEPLOYMENT, POLICY, WIDGETS

MORE = """
{apiVersion: v1, kind: Namespace, metadata: {name: shop, labels: {pod-security.kubernetes.io/enforce: baseline}}}
---
{apiVersion: example.com/v1, kind: Widget, metadata: {name: a}, spec: {size: 3}}
---
{apiVersion: v1, kind: List, items: [{apiVersion: v1, kind: Service, metadata: {name: s}, spec: {ports: [{port: 1}]}}]}
---
apiVersion: rbac.authorization.k8s.io/v1
kind: ClusterRoleBinding
metadata: {name: alice}
roleRef: {apiGroup: rbac.authorization.k8s.io, kind: ClusterRole, name: admin}
subjects: [{apiGroup: rbac.authorization.k8s.io, kind: User, name: alice}]
---
apiVersion: batch/v1
kind: CronJob
metadata: {name: c, namespace: shop}
spec:
  schedule: "* * * * *"
  jobTemplate: {spec: {template: {spec: {restartPolicy: Never, containers: [{name: c, image: i}]}}}}
"""
OBJECTS = [*yaml.safe_load_all("---\n".join((WIDGETS, POLICY, DEPLOYMENT, MORE)))]
ODD: list[Any] = [
    *(None, 0, -1, 1.5, 10**30, float("inf"), True, "", "x", "\x00", "é" * 300),
    *([], {}, [[]], [None], {"": 1}, {"a": {}}),
]


def damaged(obj: Any, chance: random.Random) -> Any:
    """A copy with up to three values removed or replaced by odd ones."""
    obj = copy.deepcopy(obj)
    for _ in range(chance.randint(0, 3)):
        part = obj
        while isinstance(part, dict | list) and part:
            key = chance.choice(list(part) if isinstance(part, dict) else list(range(len(part))))
            if chance.random() < 0.3 or not isinstance(part[key], dict | list) or not part[key]:
                if chance.random() < 0.2:
                    del part[key]
                else:
                    part[key] = copy.deepcopy(chance.choice(ODD))
                break
            part = part[key]
    return obj


@pytest.mark.parametrize("seed", range(20))
def test_damaged_manifests_give_findings(seed: int, tmp_path: Path) -> None:
    chance = random.Random(seed)
    old = tmp_path / "old.yaml"
    for file in (old, tmp_path / "new.yaml"):
        documents = [yaml.safe_dump(damaged(obj, chance)).encode() for obj in OBJECTS]
        file.write_bytes(b"---\n".join(documents))
    spoilt = bytearray((tmp_path / "new.yaml").read_bytes())
    for _ in range(seed % 3):
        spoilt[chance.randrange(len(spoilt))] = chance.randrange(32, 127)
    (tmp_path / "new.yaml").write_bytes(spoilt)
    against, user = old if seed % 2 else "", "alice" if seed % 5 == 0 else ""
    report = kubist.validate(tmp_path / "new.yaml", against=against, user=user)
    assert report.findings and report.is_complete
    for finding in report.findings:
        assert finding.line >= 1 and finding.message
        assert "the request failed unexpectedly" not in finding.message
    assert all((text(report), json_report(report, with_objects=True), junit(report), sarif(report)))
