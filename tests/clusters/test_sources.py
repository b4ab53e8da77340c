"""Content of new clusters: named snapshots, and files of `kubist backup`."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from kubist.cli.backup import back_up
from kubist.testing import Cluster
from kubist.testing.errors import Refused
from tests.clusters.test_life_cycle import CRD, WIDGET, config_map

SNAPSHOTS = "/kubist/v1/snapshots"


@pytest.mark.parametrize("storage", ["memory", "disk"])
def test_cluster_starts_from_a_snapshot_of_the_host(host: Cluster, storage: str) -> None:
    host.load(CRD, WIDGET, config_map("host", a="1"))
    host.request("POST", SNAPSHOTS, {"name": f"golden-{storage}"})
    host.load(config_map("host", a="2"))
    with host.clusters.create(snapshot=f"golden-{storage}", storage=storage) as cluster:
        assert cluster.get("configmap/host")["data"] == {"a": "1"}
        path = "/apis/example.com/v1/namespaces/default/widgets"
        assert [item["metadata"]["name"] for item in cluster.request("GET", path)["items"]] == ["w"]
        trust = cluster.get("configmap/extension-apiserver-authentication", "kube-system")["data"]
        assert trust["client-ca-file"].count("BEGIN CERTIFICATE") == 1
        assert trust["client-ca-file"] != host.ca.read_text()
        cluster.load(config_map("host", a="3"))
    assert host.get("configmap/host")["data"] == {"a": "2"}


def test_cluster_starts_from_a_snapshot_of_another_cluster(host: Cluster) -> None:
    with host.clusters.create("saved", manifests=[config_map(a="1")]) as saved:
        saved.request("POST", SNAPSHOTS, {"name": "early"})
        saved.load(config_map(a="2"))
        with host.clusters.create(fork=saved, snapshot="early") as early:
            assert early.get("configmap/cm")["data"] == {"a": "1"}
        with pytest.raises(Refused, match='snapshot: Not found: "early"'):
            host.clusters.create("x", snapshot="early")
    assert "x" not in host.clusters


def test_cluster_starts_from_a_backup(host: Cluster, tmp_path: Path) -> None:
    with host.clusters.create("backed-up", storage="disk", manifests=[config_map(a="1")]) as cluster:
        file = tmp_path / "backup.db"
        back_up(Path(host.config.data_dir) / "clusters" / cluster.name, file)
        with host.clusters.create(backup=file) as copy:
            assert copy.get("configmap/cm") == cluster.get("configmap/cm")
            with pytest.raises(Refused, match="Unauthorized"):
                copy.request("GET", "/api", token=cluster.token)


def test_unusable_backup_is_rejected(host: Cluster, tmp_path: Path) -> None:
    (tmp_path / "other").write_text("no database")
    os.mkfifo(tmp_path / "pipe")
    names = ("missing", "other", "pipe", ".", "nul\0")
    for backup in ("relative.db", "/dev/zero", *(f"{tmp_path}/{name}" for name in names)):
        with pytest.raises(Refused) as refused:
            host.request("POST", "/kubist/v1/clusters", {"name": "x", "backup": backup})
        assert refused.value.code == 422
        assert [cause["field"] for cause in refused.value.status["details"]["causes"]] == ["backup"]
    assert "x" not in host.clusters


def test_fork_takes_over_a_moved_clock_but_no_users(host: Cluster) -> None:
    with host.clusters.create() as base:
        base.clock.advance("100h")
        token = base.user("alice", groups=["system:masters"]).token
        with base.fork() as fork:
            assert fork.request("GET", "/kubist/v1/clock")["offset"] == pytest.approx(360_000, abs=10)
            made = fork.load(config_map())[0]["metadata"]["creationTimestamp"]
            assert made > host.load(config_map("here"))[0]["metadata"]["creationTimestamp"]
            with pytest.raises(Refused, match="Unauthorized"):
                fork.request("GET", "/api", token=token)
