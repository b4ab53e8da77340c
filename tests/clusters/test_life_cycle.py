"""Life cycle of clusters: creation, deletion, time to live, unloading, and restarts of the host."""

from __future__ import annotations

import asyncio
import base64
import dataclasses
import json
import re
import stat
from pathlib import Path
from typing import cast

import pytest

from kubist.api import logs
from kubist.api.settings import Settings
from kubist.model.meta.object import Object
from kubist.model.meta.status import APIError
from kubist.server.clusters.hosting import Hosting
from kubist.server.clusters.spec import Spec
from kubist.testing import Cluster
from kubist.testing.errors import Refused
from kubist.testing.hosted_clusters import PATH
from tests.clusters.talking import open_watch
from tests.storage.test_encrypted_server import key, write
from tests.waiting import wait_for

CRD: Object = {
    "apiVersion": "apiextensions.k8s.io/v1",
    "kind": "CustomResourceDefinition",
    "metadata": {"name": "widgets.example.com"},
    "spec": {
        "group": "example.com",
        "scope": "Namespaced",
        "names": {"plural": "widgets", "kind": "Widget"},
        "versions": [
            {"name": "v1", "served": True, "storage": True, "schema": {"openAPIV3Schema": {"type": "object"}}}
        ],
    },
}
WIDGET: Object = {"apiVersion": "example.com/v1", "kind": "Widget", "metadata": {"name": "w"}}


def config_map(name: str = "cm", **data: str) -> Object:
    return {"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": name}, "data": data}


def hidden(directory: Path) -> list[str]:
    return sorted(path.name for path in directory.glob(".*") if path.name != ".memory")


def memory(directory: Path) -> list[str]:
    return sorted(path.name for path in (directory / ".memory").iterdir())


def test_created_cluster_is_complete(host: Cluster) -> None:
    with host.clusters.create("complete") as cluster:
        assert cluster.get("namespace/kube-system")["status"]["phase"] == "Active"
        assert (
            cluster.wait("serviceaccount/default", lambda found: bool(found))["metadata"]["name"] == "default"
        )
        root = cluster.get("configmap/kube-root-ca.crt")["data"]["ca.crt"]
        shown = cluster.kubeconfig_document()["clusters"][0]["cluster"]
        assert base64.b64decode(shown["certificate-authority-data"]).decode() == root == host.ca.read_text()
        assert shown["server"] == cluster.url == f"{host.url}/clusters/complete"


def test_clusters_share_nothing(host: Cluster) -> None:
    with host.clusters.create("a") as a, host.clusters.create("b") as b:
        a.load(CRD, WIDGET)
        b.load(config_map(only="b"))
        for elsewhere in (b, host):
            with pytest.raises(Refused, match=r"404|not find"):
                elsewhere.request("GET", "/apis/example.com/v1/widgets")
        with pytest.raises(Refused, match="not found"):
            a.get("configmap/cm")
        uids = {each.get("namespace/kube-system")["metadata"]["uid"] for each in (a, b, host)}
        assert len(uids) == 3
        cluster_a = a.get("configmap/extension-apiserver-authentication", "kube-system")["data"]
        cluster_b = b.get("configmap/extension-apiserver-authentication", "kube-system")["data"]
        assert cluster_a["client-ca-file"] != cluster_b["client-ca-file"]


def test_generated_names_differ(host: Cluster) -> None:
    with host.clusters.create() as first, host.clusters.create() as second:
        assert first.name != second.name
        assert first.name.startswith("cluster-")


def test_list_get_and_delete(host: Cluster) -> None:
    made = host.clusters.create("listed", limits={"objects": 1000})
    item = next(item for item in host.clusters.list() if item["name"] == "listed")
    assert item == host.request("GET", f"{PATH}/listed")
    assert (item["state"], item["storage"], item["path"]) == ("Running", "memory", "/clusters/listed")
    assert item["limits"] == {"objects": 1000}
    assert "token" not in json.dumps(host.clusters.list())
    assert host.clusters["listed"].token == made.token
    host.clusters.delete("listed")
    assert "listed" not in host.clusters
    for method in ("GET", "DELETE"):
        with pytest.raises(Refused, match=r'clusters\.kubist\.io "listed" not found'):
            host.request(method, f"{PATH}/listed")
    with pytest.raises(Refused, match=r'clusters\.kubist\.io "listed" not found'):
        made.get("namespace/default")


@pytest.mark.parametrize(
    ("body", "field"),
    [
        ({"name": "Upper"}, "name"),
        ({"name": "a.b"}, "name"),
        ({"name": "a" * 64}, "name"),
        ({"name": "../x"}, "name"),
        ({"name": 3}, "name"),
        ({"storage": "tape"}, "storage"),
        ({"timeToLive": "soon"}, "timeToLive"),
        ({"timeToLive": 0}, "timeToLive"),
        ({"timeToLive": "999999h"}, "timeToLive"),
        ({"controllers": ["no-such-loop"]}, "controllers"),
        ({"workloads": "yes"}, "workloads"),
        ({"limits": {"objects": -1}}, "limits.objects"),
        ({"limits": {"pods": 1}}, "limits.pods"),
        ({"fork": "a", "backup": "b"}, "backup"),
        ({"manifests": 3}, "manifests"),
        ({"manifests": "a: [b"}, "manifests"),
        ({"manifests": ["text"]}, "manifests[0]"),
        ({"manifests": [{"kind": "List", "items": [3]}]}, "manifests[0].items[0]"),
        ({"manifests": [{"apiVersion": "v1", "kind": "Pot", "metadata": {"name": "a"}}]}, "manifests[0]"),
        ({"manifests": [{"apiVersion": "v1", "kind": "Pod", "metadata": {"name": "a"}}]}, "manifests[0]"),
        ({"nmae": "a"}, "nmae"),
    ],
)
def test_invalid_specification_is_rejected(host: Cluster, directory: Path, body: Object, field: str) -> None:
    before = host.clusters.list()
    with pytest.raises(Refused) as refused:
        host.request("POST", PATH, body)
    assert refused.value.code == 422
    assert [cause["field"] for cause in refused.value.status["details"]["causes"]] == [field]
    assert host.clusters.list() == before
    assert memory(directory) == [item["name"] for item in before if item["storage"] == "memory"]
    assert not hidden(directory)


@pytest.mark.parametrize("field", ["fork", "snapshot"])
def test_unknown_source_is_rejected(host: Cluster, field: str) -> None:
    with pytest.raises(Refused, match=f'{field}: Not found: "nowhere"') as refused:
        host.request("POST", PATH, {"name": "x", field: "nowhere"})
    assert (refused.value.code, refused.value.status["details"]["causes"][0]["field"]) == (422, field)
    assert "x" not in host.clusters


def test_taken_name_is_rejected(host: Cluster) -> None:
    with host.clusters.create("taken") as cluster:
        cluster.load(config_map())
        with pytest.raises(Refused) as refused:
            host.clusters.create("taken")
        assert (refused.value.code, refused.value.status["reason"]) == (422, "Invalid")
        [cause] = refused.value.status["details"]["causes"]
        assert (cause["reason"], cause["field"]) == ("FieldValueInvalid", "name")
        assert cluster.get("configmap/cm")


def test_manifests_are_applied_in_order(host: Cluster) -> None:
    text = "\n---\n".join(json.dumps(each) for each in (CRD, WIDGET, config_map("m", a="1")))
    made = host.request("POST", PATH, {"name": "filled", "manifests": f"---\n{text}\n---\n"})
    with host.clusters["filled"] as cluster:
        assert made["name"] == "filled"
        assert cluster.request("GET", "/apis/example.com/v1/namespaces/default/widgets/w")["kind"] == "Widget"
        assert cluster.get("configmap/m")["data"] == {"a": "1"}
    with host.clusters.create(manifests=[{"kind": "List", "items": [config_map("n")]}]) as cluster:
        assert cluster.get("configmap/n")


def test_fork_has_the_content_and_its_own_life(host: Cluster) -> None:
    with host.clusters.create("base", manifests=[CRD, WIDGET, config_map(a="1")]) as base:
        for storage in ("memory", "disk"):
            with host.clusters.create(fork=base, storage=storage) as fork:
                path = "/apis/example.com/v1/namespaces/default/widgets/w"
                assert fork.request("GET", path) == base.request("GET", path)
                fork.load(config_map(a="2"))
                base.load(config_map("later"))
                assert base.get("configmap/cm")["data"] == {"a": "1"}
                with pytest.raises(Refused, match="not found"):
                    fork.get("configmap/later")
                with pytest.raises(Refused, match="Unauthorized"):
                    fork.request("GET", "/api", token=base.token)
                trust = fork.get("configmap/extension-apiserver-authentication", "kube-system")["data"]
                ca = trust["client-ca-file"]
                assert ca.count("BEGIN CERTIFICATE") == 1
            base.delete("configmap/later")


def test_delete_leaves_no_files_and_ends_watches(host: Cluster, directory: Path) -> None:
    for storage in ("memory", "disk"):
        cluster = host.clusters.create("gone", storage=storage)
        with open_watch(cluster, "/api/v1/configmaps") as response:
            host.clusters.delete("gone")
            assert response.read() == b""
        assert not (directory / "gone").exists()
        assert "gone" not in memory(directory)
        assert not hidden(directory)
        host.clusters.create("gone").stop()


def test_time_to_live_deletes(tmp_path: Path) -> None:
    with Cluster(clusters=True, data_dir=str(tmp_path)) as host:
        short = host.clusters.create("short", time_to_live="1h", storage="disk")
        host.clusters.create("long", time_to_live="3h")
        host.clusters.create("endless")
        assert "expires" in host.request("GET", f"{PATH}/short")
        host.clock.advance("59m")
        assert sorted(host.clusters) == ["endless", "long", "short"]
        host.clock.advance("2m")
        wait_for(lambda: sorted(host.clusters) == ["endless", "long"])
        wait_for(lambda: not (tmp_path / "clusters" / "short").exists())
        with pytest.raises(Refused, match="not found"):
            short.get("namespace/default")
        host.clock.advance("2h")
        wait_for(lambda: sorted(host.clusters) == ["endless"])


def state(host: Cluster, name: str) -> str:
    shown: str = host.request("GET", f"{PATH}/{name}")["state"]
    return shown


def test_clusters_on_disk_survive_a_restart(tmp_path: Path) -> None:
    with Cluster(clusters=True, data_dir=str(tmp_path)) as host:
        kept = host.clusters.create("kept", storage="disk", time_to_live="1h", limits={"objects": 500})
        kept.load(config_map(a="1"))
        account = kept.service_account("operator").token
        token, before = kept.token, kept.get("configmap/cm")
        shown = host.request("GET", f"{PATH}/kept")
        host.clusters.create("lost")
    (tmp_path / "clusters" / "broken").mkdir()
    with Cluster(clusters=True, data_dir=str(tmp_path)) as host:
        assert list(host.clusters) == ["kept"]
        assert host.request("GET", f"{PATH}/kept") == shown | {"state": "Unloaded"}
        kept = host.clusters["kept"]
        assert kept.get("configmap/cm") == before
        assert kept.token == token
        review = kept.request("GET", "/apis", token=account)
        assert review["kind"] == "APIGroupList"
        assert not (tmp_path / "clusters" / "broken").exists()
        host.clock.advance("61m")
        wait_for(lambda: not list(host.clusters))


def test_host_without_directory_has_no_clusters_on_disk() -> None:
    with Cluster(clusters=True) as host:
        with pytest.raises(Refused, match="the host has no data directory") as refused:
            host.clusters.create("a", storage="disk")
        assert refused.value.code == 422
        hosting = cast("Hosting", host.inner)
        assert hosting.clusters is not None
        directory = hosting.clusters._memory
        host.clusters.create("a")
        assert (directory / "a").exists()
    assert not directory.exists()


def test_clusters_of_an_encrypted_host_are_encrypted(tmp_path: Path) -> None:
    config = write(tmp_path / "encryption.yaml", key("first"), resources=("configmaps", "secrets"))
    settings: Settings = {
        "clusters": True,
        "encryption_provider_config": str(config),
        "data_dir": str(tmp_path / "data"),
    }
    with Cluster(**settings) as host:
        base = host.clusters.create("base", manifests=[config_map(a="in plain text")])
        base.request("POST", "/kubist/v1/snapshots", {"name": "saved"})
        host.clusters.create("kept", storage="disk", fork=base)
        with host.clusters.create(fork=base, snapshot="saved") as again:
            assert again.get("configmap/cm")["data"] == {"a": "in plain text"}
    files = [path for path in (tmp_path / "data" / "clusters" / "kept").rglob("*") if path.is_file()]
    assert len(files) > 4
    assert not [path for path in files if b"in plain text" in path.read_bytes()]
    with Cluster(**settings) as host:
        assert host.clusters["kept"].get("configmap/cm")["data"] == {"a": "in plain text"}


def test_files_are_private(host: Cluster, directory: Path) -> None:
    with host.clusters.create("private", storage="disk"), host.clusters.create("private-too"):
        found = [*directory.rglob("*")]
        assert {stat.S_IMODE(path.stat().st_mode) for path in found if path.is_file()} == {0o600}
        assert {stat.S_IMODE(path.stat().st_mode) for path in found if path.is_dir()} == {0o700}


def test_requests_are_logged_with_the_path_of_the_cluster(
    host: Cluster, caplog: pytest.LogCaptureFixture
) -> None:
    with host.clusters.create("logged") as cluster:
        cluster.inner.api._logs_all = True
        caplog.set_level("INFO", "kubist.access")
        cluster.request("GET", "/api/v1/nodes")
        records = [logs.request_fields(record) for record in caplog.records if hasattr(record, "request")]
        assert "/clusters/logged/api/v1/nodes" in [fields["path"] for fields in records]


@pytest.mark.parametrize("has_template", [False, True])
def test_creation_that_a_stop_overtakes_leaves_nothing(tmp_path: Path, has_template: bool) -> None:
    with Cluster(clusters=True, data_dir=str(tmp_path)) as host:
        if has_template:
            host.clusters.create("early")
        hosting = cast("Hosting", host.inner)
        clusters = hosting.clusters
        assert clusters is not None

        async def race() -> BaseException | None:
            making = asyncio.ensure_future(clusters.create(Spec("late", storage="disk")))
            await asyncio.sleep(0)
            await clusters.stop()
            await asyncio.wait([making])
            return making.exception()

        error = host.run(race())
        assert isinstance(error, APIError) and error.code == 503
        assert not (tmp_path / "clusters" / "late").exists()


def test_operations_are_described(host: Cluster) -> None:
    document = host.request("GET", "/kubist/v1/openapi.json")
    schemas = document["components"]["schemas"]
    for reference in re.findall(r'"\$ref": "#/components/schemas/(\w+)"', json.dumps(document)):
        assert reference in schemas
    operations = {path: set(found) for path, found in document["paths"].items() if "/clusters" in path}
    assert operations == {
        "/kubist/v1/clusters": {"get", "post"},
        "/kubist/v1/clusters/{name}": {"get", "delete"},
        "/kubist/v1/clusters/{name}/kubeconfig": {"get"},
    }
    body = document["paths"]["/kubist/v1/clusters"]["post"]["requestBody"]["content"]["application/json"]
    assert body["schema"] == {"$ref": "#/components/schemas/ClusterSpec"}
    fields = {"".join(part.title() for part in each.name.split("_")) for each in dataclasses.fields(Spec)}
    assert {name[:1].upper() + name[1:] for name in schemas["ClusterSpec"]["properties"]} == fields
    with host.clusters.create() as cluster:
        shown = host.request("GET", f"{PATH}/{cluster.name}")
        assert set(shown) <= set(schemas["Cluster"]["properties"])
        nested = cluster.request("GET", "/kubist/v1/openapi.json")
        assert not [path for path in nested["paths"] if "/clusters" in path]
