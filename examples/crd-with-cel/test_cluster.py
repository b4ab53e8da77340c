"""The same CRD on a running server, with the status subresource that a controller writes."""

from __future__ import annotations

from pathlib import Path

import pytest

from kubist.testing import Refused

HERE = Path(__file__).parent


def test_status_is_written_apart_from_the_spec(cluster):
    cluster.load(HERE / "crds", HERE / "manifests")
    path = "/apis/example.com/v1/namespaces/default/backups/nightly"
    patch = {"spec": {"source": "other"}, "status": {"last": "2026-01-01T03:00:00Z"}}
    cluster.request("PATCH", f"{path}/status", patch, "application/merge-patch+json")
    stored = cluster.get("backup/nightly")
    assert stored["status"] == {"last": "2026-01-01T03:00:00Z"}
    assert stored["spec"]["source"] == "orders"


def test_rule_for_updates(cluster):
    cluster.load(HERE / "crds", HERE / "manifests")
    path = "/apis/example.com/v1/namespaces/default/backups/nightly"
    with pytest.raises(Refused, match="the source of a backup cannot change"):
        cluster.request("PATCH", path, {"spec": {"source": "other"}}, "application/merge-patch+json")
