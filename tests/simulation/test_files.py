"""Files that simulated commands leave on volumes."""

from __future__ import annotations

from typing import Any

import pytest

from kubist.cluster.simulation import kubelet
from kubist.cluster.simulation.kubelet import Files


def pod(uid: str = "u") -> dict[str, Any]:
    volumes = [{"name": "v", "emptyDir": {}}, {"name": "w", "hostPath": {"path": "/host"}}]
    return {"metadata": {"name": "p", "uid": uid}, "spec": {"nodeName": "n", "volumes": volumes}}


def container(**mounts: str) -> dict[str, Any]:
    return {"volumeMounts": [{"name": name[0], "mountPath": path} for name, path in mounts.items()]}


def test_longest_mount_has_the_file() -> None:
    files, mounted = Files(), container(v="/data", w="/data/host")
    files.keep(pod(), mounted, {"/data/a", "/data/d/", "/data/host/b", "/other", "/database/c"})
    assert files.seen_by(pod(), mounted) == {"/data/a", "/data/d/", "/data/host/b"}
    assert files.seen_by(pod("other"), mounted) == {"/data/host/b"}
    files.forget("u")
    assert files.seen_by(pod(), mounted) == {"/data/host/b"}


def test_remembered_paths_are_limited(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(kubelet, "MAX_SIZE", 10_000)
    files, mounted = Files(), container(v="/data")
    for number in range(1_000):
        files.keep(pod(), mounted, {f"/data/{number}"})
    assert 0 < len(files.seen_by(pod(), mounted)) < 100
    files.keep(pod(), mounted, {"/data/" + "x" * 5_000})
    assert all(len(path) < 100 for path in files.seen_by(pod(), mounted))


def test_volume_that_is_mounted_very_often_shows_a_limited_number_of_paths() -> None:
    files = Files()
    files.keep(pod(), container(v="/m"), {f"/m/{number}" for number in range(2_000)})
    often = container(**{f"v{number}": f"/m{number}" for number in range(2_000)})
    assert sum(map(len, files.seen_by(pod(), often))) <= kubelet.MAX_SEEN
