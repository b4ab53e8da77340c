"""`cluster.load`: directories, order of the objects, and errors that name the file."""

from __future__ import annotations

from pathlib import Path

import pytest

from kubist.testing import Cluster, Refused
from tests.testing.widgets import CRD

WIDGET = "{apiVersion: example.com/v1, kind: Widget, metadata: {name: w, namespace: team}, spec: {size: 1}}"
NAMESPACE = "{apiVersion: v1, kind: Namespace, metadata: {name: team}}"


def config_map(name: str, where: str = "default") -> str:
    return f"{{apiVersion: v1, kind: ConfigMap, metadata: {{name: {name}, namespace: {where}}}}}\n"


def test_directory_is_loaded_with_its_subdirectories(cluster: Cluster, tmp_path: Path) -> None:
    (tmp_path / "deep" / "er").mkdir(parents=True)
    (tmp_path / "deep" / "er" / "a.yaml").write_text(config_map("a"))
    (tmp_path / "deep" / "b.json").write_text(
        '{"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": "b"}}'
    )
    (tmp_path / "deep" / "README.md").write_text("no manifest")
    (tmp_path / "deep" / ".hidden.yaml").write_text("no: manifest")
    assert [obj["metadata"]["name"] for obj in cluster.load(tmp_path)] == ["b", "a"]
    assert cluster.get("cm/a") and cluster.get("cm/b")


def test_namespaces_and_crds_come_first(cluster: Cluster, tmp_path: Path) -> None:
    (tmp_path / "1-widget.yaml").write_text(WIDGET)
    (tmp_path / "2-crd.yaml").write_text(CRD)
    (tmp_path / "3-namespace.yaml").write_text(NAMESPACE)
    loaded = cluster.load(tmp_path, config_map("later", "team"))
    assert [obj["kind"] for obj in loaded] == ["Widget", "CustomResourceDefinition", "Namespace", "ConfigMap"]
    assert cluster.get("widget/w", "team")["spec"] == {"size": 1}


def test_manifest_may_have_any_character(cluster: Cluster) -> None:
    (loaded,) = cluster.load(config_map("a").replace("}\n", ", data: {k: \U0001f600 ü}}\n"))
    assert loaded["data"] == {"k": "\U0001f600 ü"}
    assert cluster.get("cm/a")["data"] == {"k": "\U0001f600 ü"}


def test_objects_may_be_in_any_order(cluster: Cluster) -> None:
    loaded = cluster.load(f"{WIDGET}\n---\n{NAMESPACE}\n---\n{CRD}")
    assert [obj["kind"] for obj in loaded] == ["Widget", "Namespace", "CustomResourceDefinition"]


@pytest.mark.parametrize("content", [{}, {"sub/note.txt": "x"}, {"sub/empty.yaml": "# nothing\n---\n"}])
def test_directory_without_manifests_is_an_error(
    kubist_server: Cluster, tmp_path: Path, content: dict[str, str]
) -> None:
    for name, text in content.items():
        (tmp_path / name).parent.mkdir(exist_ok=True)
        (tmp_path / name).write_text(text)
    with pytest.raises(ValueError, match=f"the directory {tmp_path} has no ") as caught:
        kubist_server.load(tmp_path)
    assert ("empty.yaml" in str(caught.value)) == ("sub/empty.yaml" in content)


def test_file_without_an_object_is_an_error(kubist_server: Cluster, tmp_path: Path) -> None:
    (tmp_path / "empty.yaml").write_text("\n")
    with pytest.raises(ValueError, match=r"the file .*/empty.yaml has no object"):
        kubist_server.load(tmp_path / "empty.yaml")


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("a: b\n---\nc: [1\n", r"bad.yaml:\d: not a YAML document: "),
        ("- a\n", r"bad.yaml:1: not a Kubernetes object: the document is a list"),
        ("kind: Pod\nmetadata: {name: a}\n", r'bad.yaml:1: Pod "a" has no apiVersion; did you mean "v1"'),
        ("\nkind: Pod\napiVersion: v1\n", r"bad.yaml:2: Pod has no metadata.name"),
        ("apiVersion: v1\nkind: Pood\nmetadata: {name: a}\n", r"bad.yaml:1: v1 Pood is not served"),
    ],
)
def test_errors_name_the_file(kubist_server: Cluster, tmp_path: Path, text: str, message: str) -> None:
    (tmp_path / "bad.yaml").write_text(text)
    with pytest.raises((ValueError, LookupError), match=message):
        kubist_server.load(tmp_path)


def test_nothing_is_applied_if_a_file_is_malformed(cluster: Cluster, tmp_path: Path) -> None:
    (tmp_path / "a.yaml").write_text(config_map("a"))
    (tmp_path / "b.yaml").write_text("c: [1\n")
    with pytest.raises(ValueError, match=r"b\.yaml"):
        cluster.load(tmp_path)
    assert [each["metadata"]["name"] for each in cluster.list("cm")] == ["kube-root-ca.crt"]


def test_rejected_manifest_names_its_file(kubist_server: Cluster, tmp_path: Path) -> None:
    (tmp_path / "bad.yaml").write_text(f"---\n{config_map('UPPER')}")
    with pytest.raises(Refused, match="UPPER") as caught:
        kubist_server.load(tmp_path / "bad.yaml")
    assert caught.value.__notes__ == [f"The manifest is in {tmp_path}/bad.yaml:2."]
