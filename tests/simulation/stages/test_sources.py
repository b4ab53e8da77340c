"""Stages of files: `--stages` takes files and directories, and names the place of an error."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path
from typing import Any

import orjson
import pytest

from kubist.cluster.simulation.stages import sources
from kubist.cluster.simulation.stages.limits import StageError
from kubist.testing import Cluster
from kubist.testing.host import Host
from tests.simulation.stages.making import CRD, needs, stage
from tests.waiting import wait_for


def yaml_of(*stages: dict[str, Any]) -> bytes:
    return b"\n---\n".join(orjson.dumps(one) for one in stages)


def test_files_and_directories_are_loaded(tmp_path: Path) -> None:
    (tmp_path / "many.yaml").write_bytes(b"# comment\n---\n" + yaml_of(stage("a"), stage("b")) + b"\n---\n")
    (tmp_path / "list.json").write_bytes(orjson.dumps({"kind": "List", "items": [stage("c")]}))
    (tmp_path / "kustomization.yaml").write_text("kind: Kustomization")
    (tmp_path / "README.md").write_text("no Stage")
    assert sorted(made.name for made in sources.load([str(tmp_path)])) == ["a", "b", "c"]
    assert [made.name for made in sources.load([str(tmp_path / "many.yaml")])] == ["a", "b"]


@pytest.mark.parametrize(
    ("content", "part"),
    [
        (b"kind: [", "f.yaml: "),
        (
            b"kind: Pod\napiVersion: v1",
            "f.yaml: document 1: expected a Stage of kwok.x-k8s.io/v1alpha1 but found v1 Pod",
        ),
        (
            b"text",
            "f.yaml: document 1: expected a Stage of kwok.x-k8s.io/v1alpha1 but found no Kubernetes object",
        ),
        (
            yaml_of(stage("a"), stage("b", surprise=1)),
            "f.yaml: document 2: Stage b: spec.surprise: unknown field",
        ),
        (yaml_of(stage("a"), stage("a")), "the Stage a is also in "),
        (b"\xff", "the file is not UTF-8 text"),
    ],
)
def test_unusable_file_gets_one_line(tmp_path: Path, content: bytes, part: str) -> None:
    (tmp_path / "f.yaml").write_bytes(content)
    with pytest.raises(StageError) as caught:
        sources.load([str(tmp_path / "f.yaml")])
    assert part in str(caught.value)
    assert "\n" not in str(caught.value)


def test_missing_file_is_named(tmp_path: Path) -> None:
    with pytest.raises(StageError, match=r"absent\.yaml: No such file or directory"):
        sources.load([str(tmp_path / "absent.yaml")])


def test_stages_of_files_need_no_crd(kubist_host: Host, tmp_path: Path) -> None:
    is_new = needs(".status.reason", "NotIn", "Staged")
    made = stage("file", selector={"matchExpressions": [is_new]}, next={"statusTemplate": "reason: Staged"})
    (tmp_path / "stages.yaml").write_bytes(orjson.dumps(made))
    cluster = kubist_host.cluster(workloads=True, stages=(str(tmp_path),))
    try:
        spec = {"containers": [{"name": "c", "image": "i"}]}
        cluster.load({"apiVersion": "v1", "kind": "Pod", "metadata": {"name": "web"}, "spec": spec})
        wait_for(lambda: cluster.get("pod/web")["status"].get("reason") == "Staged")
        groups = [group["name"] for group in cluster.request("GET", "/apis")["groups"]]
        assert "kwok.x-k8s.io" not in groups
    finally:
        cluster.stop()


def test_unusable_file_prevents_the_start(kubist_host: Host, tmp_path: Path) -> None:
    (tmp_path / "stages.yaml").write_bytes(orjson.dumps(stage("bad", surprise=1)))
    with pytest.raises(
        ValueError, match=r"stages\.yaml: document 1: Stage bad: spec\.surprise: unknown field"
    ):
        kubist_host.cluster(workloads=True, stages=(str(tmp_path),))


def test_objects_of_custom_resources_from_before_the_start_are_played(
    kubist_host: Host, tmp_path: Path
) -> None:
    crd = orjson.loads(orjson.dumps(CRD))
    made = stage("bloom", "Flower", "garden.example/v1", next={"patches": [{"template": "phase: Blooming"}]})
    crd["metadata"]["name"] = "flowers.garden.example"
    names = {"kind": "Flower", "plural": "flowers", "singular": "flower", "listKind": "FlowerList"}
    crd["spec"] |= {"group": "garden.example", "names": names}
    crd["spec"]["versions"][0]["name"] = "v1"
    flower = {"apiVersion": "garden.example/v1", "kind": "Flower", "metadata": {"name": "rose"}}
    (tmp_path / "stages.yaml").write_bytes(orjson.dumps(made))
    data = str(tmp_path / "data")
    with Cluster(data_dir=data) as cluster:
        cluster.load(crd, flower)
    with Cluster(data_dir=data, workloads=True, stages=(str(tmp_path / "stages.yaml"),)) as cluster:
        path = "/apis/garden.example/v1/flowers/rose"
        wait_for(lambda: cluster.request("GET", path).get("phase") == "Blooming")


def test_server_without_stages_does_not_load_the_interpreters() -> None:
    start = "kubist.cluster.simulation.loops(kubist.api.config.Config(workloads=True))"
    code = f"import sys, kubist.api.config, kubist.cluster.simulation; {start}; print(*sys.modules)"
    loaded = subprocess.run(
        [sys.executable, "-c", code], capture_output=True, text=True, check=True
    ).stdout.split()
    assert "kubist.cluster.simulation.stages.watcher" in loaded
    assert "kubist.cluster.simulation.stages.player" not in loaded
    assert "kubist.cluster.simulation.stages.stage" not in loaded
