"""Rules of the CRD, without a running server: one row for each rule."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

import kubist

HERE = Path(__file__).parent
CRDS = [HERE / "crds"]


def backup(**spec: Any) -> dict[str, Any]:
    """A valid Backup with some fields changed. None removes a field."""
    fields = {"source": "orders", "schedule": "0 3 * * *", "keep": {"daily": 1}} | spec
    return {
        "apiVersion": "example.com/v1",
        "kind": "Backup",
        "metadata": {"name": "b"},
        "spec": {name: value for name, value in fields.items() if value is not None},
    }


def test_manifests_are_valid():
    report = kubist.validate(HERE / "manifests", crds=CRDS)
    assert report.ok, report
    assert len(report.objects) == 2


def test_defaults():
    [checked] = kubist.validate(backup(keep={}), crds=CRDS).objects
    assert checked.stored["spec"]["keep"] == {"daily": 7, "weekly": 0}


@pytest.mark.parametrize(
    ("changed", "field", "message"),
    [
        ({"source": None}, "spec.source", "Required value"),
        ({"source": "x" * 64}, "spec.source", "Too long: may not be more than 63 bytes"),
        ({"once": True}, "spec", "a backup runs either by schedule or once"),
        ({"schedule": None}, "spec", "a backup runs either by schedule or once"),
        ({"keep": {"daily": 0}}, "spec.keep", "a backup that keeps nothing is useless"),
        ({"keep": {"daily": -1, "weekly": 2}}, "spec.keep.daily", "should be greater than or equal to 0"),
        ({"shedule": "@daily"}, "spec.shedule", 'unknown field "spec.shedule"'),
    ],
)
def test_invalid_backups_are_rejected(changed, field, message):
    found = [(each.field, each.message) for each in kubist.validate(backup(**changed), crds=CRDS).errors]
    assert any(where == field and message in said for where, said in found), found


def test_source_cannot_change(tmp_path):
    old = tmp_path / "old.yaml"
    old.write_text(str(backup()))
    [finding] = kubist.validate(backup(source="customers"), crds=CRDS, against=old).errors
    assert finding.field == "spec.source"
    assert "the source of a backup cannot change" in finding.message
    assert kubist.validate(backup(keep={"daily": 3}), crds=CRDS, against=old).ok
