"""Helm with a small chart: hooks, CRDs, waiting for simulated workloads, three-way merge."""

from __future__ import annotations

import json
import shutil
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from tests.ecosystem.installation import CACHE, build, require
from tests.ecosystem.servers import Server, unique
from tests.ecosystem.table import exercises

VERSION = "v4.3.1"
CHART = Path(__file__).with_name("helm") / "chart"


@pytest.fixture(scope="module")
def program() -> Path:
    """Helm, built from source by the Go toolchain."""
    require("go", "kubectl")
    where = CACHE / f"helm-{VERSION}"
    if not (where / "helm").exists():
        where.mkdir(parents=True, exist_ok=True)
        build(["go", "install", f"helm.sh/helm/v4/cmd/helm@{VERSION}"], where, {"GOBIN": str(where)})
    return where / "helm"


class Release:
    """Release of the chart in a namespace of its own."""

    def __init__(self, program: Path, server: Server, chart: Path) -> None:
        self.chart = chart
        self.name = unique("shop")
        self._program = program
        self._server = server

    def helm(self, command: str, *arguments: str | Path) -> str:
        namespace = ("--namespace", self.name)
        return self._server.run(self._program, command, self.name, *arguments, *namespace, seconds=300)

    def install(self, *arguments: str | Path) -> None:
        self.helm("install", self.chart, "--create-namespace", "--wait", "--timeout=120s", *arguments)

    def upgrade(self, *arguments: str | Path) -> None:
        self.helm("upgrade", self.chart, "--wait", "--timeout=120s", *arguments)

    def status(self) -> tuple[int, str]:
        """Revision and status of the release."""
        shown = json.loads(self.helm("status", "--output=json"))
        return shown["version"], shown["info"]["status"]

    def kubectl(self, *arguments: str) -> str:
        return self._server.run("kubectl", "--namespace", self.name, *arguments)

    def get(self, kind: str, name: str = "") -> Any:
        return json.loads(self.kubectl("get", kind, name or self.name, "--output=json"))

    def names(self, kind: str) -> set[str]:
        return set(self.kubectl("get", kind, "--output=name").split())


@pytest.fixture
def release(program: Path, server: Server, tmp_path: Path) -> Iterator[Release]:
    chart = tmp_path / "chart"
    shutil.copytree(CHART, chart)
    yield Release(program, server, chart)
    server.run("kubectl", "delete", "crd", "gizmos.shop.example.com", "--ignore-not-found")


@exercises("Helm", VERSION, "install --wait: CRDs of the chart, hooks, simulated Deployment ready")
def test_install_waits_for_workloads_and_runs_hooks(release: Release) -> None:
    release.install()
    assert release.status() == (1, "deployed")
    assert release.get("deployment")["status"]["readyReplicas"] == 2
    assert release.get("gizmo")["spec"] == {"color": "red"}
    assert release.get("pvc")["status"]["phase"] == "Bound"
    hook = f"job.batch/{release.name}-post-install"
    assert release.names("jobs") == {hook}, "Helm deletes hooks by their policy"
    assert release.get("job", f"{release.name}-post-install")["status"]["succeeded"] == 1
    secrets = release.kubectl("get", "secrets", "--selector=owner=helm", "--output=name").split()
    assert secrets == [f"secret/sh.helm.release.v1.{release.name}.v1"]


@exercises("Helm", VERSION, "upgrade --wait, history, rollback --wait")
def test_upgrade_and_rollback(release: Release) -> None:
    release.install()
    release.upgrade("--set=image=shop:2,replicas=3,color=green")
    deployment = release.get("deployment")
    assert deployment["status"]["updatedReplicas"] == deployment["status"]["readyReplicas"] == 3
    assert deployment["spec"]["template"]["spec"]["containers"][0]["image"] == "shop:2"
    assert release.get("configmap")["data"] == {"COLOR": "green"}
    release.helm("rollback", "1", "--wait", "--timeout=120s")
    deployment = release.get("deployment")
    assert deployment["status"]["updatedReplicas"] == deployment["status"]["readyReplicas"] == 2
    assert deployment["spec"]["template"]["spec"]["containers"][0]["image"] == "shop:1"
    assert release.get("configmap")["data"] == {"COLOR": "red", "ONLY_RED": "yes"}
    history = json.loads(release.helm("history", "--output=json"))
    assert [revision["status"] for revision in history] == ["superseded", "superseded", "deployed"]


@exercises("Helm", VERSION, "upgrade --rollback-on-failure after a hook that times out")
def test_failed_upgrade_rolls_back(release: Release) -> None:
    release.install()
    with pytest.raises(pytest.fail.Exception, match=r"timed out|deadline|not ready"):
        release.helm(
            "upgrade",
            release.chart,
            "--rollback-on-failure",
            "--timeout=5s",
            "--set=failUpgrade=true,image=shop:2",
        )
    assert release.status() == (3, "deployed")
    assert release.get("deployment")["spec"]["template"]["spec"]["containers"][0]["image"] == "shop:1"


@exercises("Helm", VERSION, "upgrade with a three-way merge by the client keeps changes of others")
def test_three_way_merge_keeps_changes_of_others(release: Release) -> None:
    upgrade_keeps_changes_of_others(release, "false")


@exercises("Helm", VERSION, "upgrade with server-side apply keeps changes of others")
def test_server_side_apply_keeps_changes_of_others(release: Release) -> None:
    upgrade_keeps_changes_of_others(release, "true")


def upgrade_keeps_changes_of_others(release: Release, server_side: str) -> None:
    release.install(f"--server-side={server_side}")
    release.kubectl("label", "configmap", release.name, "mine=kept")
    release.kubectl("patch", "configmap", release.name, "--type=merge", '--patch={"data":{"MINE":"kept"}}')
    release.upgrade(f"--server-side={server_side}", "--set=color=blue")
    held = release.get("configmap")
    assert held["data"] == {"COLOR": "blue", "MINE": "kept"}
    assert held["metadata"]["labels"]["mine"] == "kept"
    assert release.get("gizmo")["spec"] == {"color": "blue"}


@exercises("Helm", VERSION, "test")
def test_release_tests_run(release: Release) -> None:
    release.install()
    assert "Succeeded" in release.helm("test")


@exercises("Helm", VERSION, "upgrade with a value that the CRD rejects, --dry-run=server")
def test_invalid_values_are_rejected(release: Release) -> None:
    release.install()
    with pytest.raises(pytest.fail.Exception, match="Unsupported value"):
        release.upgrade("--set=color=pink")
    assert release.status()[1] == "failed"
    assert release.get("gizmo")["spec"] == {"color": "red"}
    release.helm("upgrade", release.chart, "--dry-run=server", "--set=color=green")
    assert release.get("gizmo")["spec"] == {"color": "red"}


@exercises("Helm", VERSION, "uninstall --wait with cascade")
def test_uninstall_removes_everything_but_crds(release: Release) -> None:
    release.install()
    release.helm("uninstall", "--wait", "--cascade=foreground", "--timeout=120s")
    for kind in ("deployments", "replicasets", "services", "roles", "pvc", "gizmos"):
        assert release.names(kind) == set(), kind
    assert release.kubectl("get", "pods", f"--selector=app={release.name}", "--output=name") == ""
    release.kubectl("get", "crd", "gizmos.shop.example.com")
