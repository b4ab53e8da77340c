"""Named snapshots over HTTP and from Python, and starting from snapshot and backup files."""

from __future__ import annotations

import contextlib
import sqlite3
import stat
from pathlib import Path
from typing import Any

import pytest

from kubist.cli.backup import back_up
from kubist.cli.backup import restore as restore_backup
from kubist.storage.store import OpenFailed
from kubist.testbench.snapshots import snapshots
from kubist.testing import Cluster, Host
from kubist.testing.cluster import Refused
from tests.testing.test_fork import config_map, events_since

PATH = "/kubist/v1/snapshots"


def names(cluster: Cluster) -> set[str]:
    return {found["metadata"]["name"] for found in cluster.list("configmaps")} - {"kube-root-ca.crt"}


def refusal(cluster: Cluster, method: str, path: str, body: Any = None) -> tuple[int, str]:
    with pytest.raises(Refused) as refused:
        cluster.request(method, path, body)
    assert refused.value.status["kind"] == "Status"
    return refused.value.code, str(refused.value.status["message"])


def test_snapshot_is_saved_listed_restored_and_deleted(cluster: Cluster) -> None:
    assert cluster.snapshots.list() == []
    old = cluster.load(config_map("kept", "old"), config_map("deleted"))[0]
    saved = cluster.snapshots.save("before")
    assert saved["name"] == "before" and saved["objects"] > 2 and saved["bytes"] > 0
    assert cluster.snapshots.list() == [saved] and cluster.snapshots.get("before") == saved
    cluster.load(config_map("kept", "new"), config_map("later"))
    newest = int(cluster.get("configmap/later")["metadata"]["resourceVersion"])
    cluster.delete("configmap/deleted")
    assert cluster.snapshots.restore("before") == saved
    assert names(cluster) == {"kept", "deleted"}
    kept = cluster.get("configmap/kept")
    assert kept["data"] == {"value": "old"}
    assert kept["metadata"]["uid"] == old["metadata"]["uid"]
    assert int(kept["metadata"]["resourceVersion"]) > newest
    assert cluster.snapshots.delete("before") == saved
    assert cluster.snapshots.list() == []


def test_watchers_see_a_restoration_as_changes(cluster: Cluster) -> None:
    cluster.load(config_map("kept", "old"), config_map("deleted"))
    cluster.snapshots.save("before")
    cluster.load(config_map("kept", "new"), config_map("later"))
    cluster.delete("configmap/deleted")
    listed = cluster.request("GET", "/api/v1/namespaces/default/configmaps")
    cluster.snapshots.restore("before")
    events = events_since(cluster, listed["metadata"]["resourceVersion"])
    assert sorted(events) == [("ADDED", "deleted"), ("DELETED", "later"), ("MODIFIED", "kept")]


def test_restoration_is_one_step_for_readers(cluster: Cluster) -> None:
    cluster.load(*(config_map(f"old-{number}") for number in range(50)))
    cluster.snapshots.save("before")
    for number in range(50):
        cluster.delete(f"configmap/old-{number}")
    cluster.load(config_map("new"))
    before = int(cluster.request("GET", "/api/v1/configmaps")["metadata"]["resourceVersion"])
    seen: list[int] = []
    token = object()
    collection = cluster.inner.registry.cache.collections["/registry/configmaps/"]
    collection.subscribe(token, lambda changes: seen.append(len(changes)))
    cluster.snapshots.restore("before")
    collection.unsubscribe(token)
    assert seen == [51]
    assert int(cluster.request("GET", "/api/v1/configmaps")["metadata"]["resourceVersion"]) == before + 51


def test_custom_resources_are_restored_with_their_crd(cluster: Cluster) -> None:
    group = "apiextensions.k8s.io/v1"
    names = {"plural": "widgets", "singular": "widget", "kind": "Widget"}
    schema = {"openAPIV3Schema": {"type": "object", "x-kubernetes-preserve-unknown-fields": True}}
    version = {"name": "v1", "served": True, "storage": True, "schema": schema}
    spec = {"group": "example.com", "scope": "Namespaced", "names": names, "versions": [version]}
    crd = {"apiVersion": group, "kind": "CustomResourceDefinition", "spec": spec}
    widget = {"apiVersion": "example.com/v1", "kind": "Widget", "metadata": {"name": "one"}, "size": 3}
    cluster.load({**crd, "metadata": {"name": "widgets.example.com"}}, widget)
    cluster.snapshots.save("before")
    cluster.delete("crd/widgets.example.com")
    cluster.wait("crd/widgets.example.com", "delete")
    cluster.snapshots.restore("before")
    cluster.wait("crd/widgets.example.com", "Established")
    assert cluster.get("widget/one")["size"] == 3


@pytest.mark.parametrize(
    "name", ["../up", "a/b", "..", ".", ".hidden", "Upper", "a b", "x" * 201, "a\0b", "ü", "-a"]
)
def test_invalid_names_are_rejected_and_create_nothing(kubist_server: Cluster, name: str) -> None:
    code, message = refusal(kubist_server, "POST", PATH, {"name": name})
    assert code == 422 and "name: Invalid value" in message
    assert kubist_server.snapshots.list() == []
    for call in (
        kubist_server.snapshots.get,
        kubist_server.snapshots.delete,
        kubist_server.snapshots.restore,
    ):
        with pytest.raises(Refused) as refused:
            call(name)
        assert refused.value.code == 404


@pytest.mark.parametrize(
    ("body", "code", "text"),
    [
        ({}, 422, "name: Required value"),
        ({"name": 3}, 422, "name: Invalid value: 3: must be a string"),
        ({"name": "a", "nmae": "b"}, 422, 'unknown field; did you mean "name"?'),
        ([], 400, "the body must be a JSON object"),
    ],
)
def test_invalid_bodies_name_the_field(kubist_server: Cluster, body: Any, code: int, text: str) -> None:
    found = refusal(kubist_server, "POST", PATH, body)
    assert found[0] == code and text in found[1]


def test_taken_and_unknown_names(cluster: Cluster) -> None:
    cluster.snapshots.save("taken")
    assert refusal(cluster, "POST", PATH, {"name": "taken"})[0] == 409
    for method, path in (("GET", "/none"), ("DELETE", "/none"), ("POST", "/none/restore")):
        assert refusal(cluster, method, PATH + path) == (404, 'snapshots.kubist.io "none" not found')
    assert refusal(cluster, "PUT", f"{PATH}/taken")[0] == 405


def test_number_and_size_are_bounded(cluster: Cluster, monkeypatch: pytest.MonkeyPatch) -> None:
    cluster.snapshots.save("first")
    monkeypatch.setattr(snapshots, "MOST_SNAPSHOTS", 1)
    assert refusal(cluster, "POST", PATH, {"name": "second"}) == (
        409,
        "there are 1 snapshots, the most that a server keeps: delete one",
    )
    monkeypatch.setattr(snapshots, "MOST_SNAPSHOTS", 9)
    monkeypatch.setattr(snapshots, "MOST_BYTES", 1 << 20)
    cluster.load(config_map("large", "x" * 900_000))
    code, message = refusal(cluster, "POST", PATH, {"name": "second"})
    assert code == 409 and message == "the snapshots of a server take at most 1 MiB: delete one"
    assert [found["name"] for found in cluster.snapshots.list()] == ["first"]


def test_files_are_private_and_stay_in_the_data_directory(tmp_path: Path) -> None:
    data = tmp_path / "data"
    with Cluster(data_dir=str(data)) as cluster:
        cluster.load(config_map("kept"))
        cluster.snapshots.save("before")
        cluster.delete("configmap/kept")
    directory = data / "snapshots"
    assert stat.S_IMODE(directory.stat().st_mode) == 0o700
    assert [path.name for path in directory.iterdir()] == ["before.snapshot"]
    assert stat.S_IMODE((directory / "before.snapshot").stat().st_mode) == 0o600
    with Cluster(data_dir=str(data)) as cluster:
        assert cluster.snapshots.restore("before")["name"] == "before"
        assert names(cluster) == {"kept"}


def test_files_of_a_server_in_memory_go_with_it() -> None:
    with Cluster() as cluster:
        cluster.snapshots.save("before")
        assert cluster.inner.bench is not None
        directory = cluster.inner.bench.snapshots._directory
        assert stat.S_IMODE(directory.stat().st_mode) == 0o700
        assert stat.S_IMODE((directory / "before.snapshot").stat().st_mode) == 0o600
    assert not directory.exists()


def test_damaged_snapshot_is_refused_and_can_be_deleted(tmp_path: Path) -> None:
    with Cluster(data_dir=str(tmp_path)) as cluster:
        cluster.load(config_map("kept"))
        cluster.snapshots.save("bad")
        (tmp_path / "snapshots" / "bad.snapshot").write_bytes(b"no database at all, of any size" * 100)
        for method, path in (("GET", "/bad"), ("POST", "/bad/restore")):
            code, message = refusal(cluster, method, PATH + path)
            assert code == 409 and "snapshot bad cannot be read" in message
        assert cluster.snapshots.list() == []
        assert names(cluster) == {"kept"}
        assert cluster.snapshots.delete("bad") == {"name": "bad"}


def test_backup_is_restored_and_started_from(tmp_path: Path) -> None:
    with Cluster(data_dir=str(tmp_path / "data")) as cluster:
        cluster.load(config_map("saved", "1"))
        found = cluster.get("configmap/saved")
    backup = tmp_path / "backup"
    back_up(tmp_path / "data", backup)
    content = backup.read_bytes()
    with Cluster(snapshot=str(backup)) as cluster:
        assert cluster.get("configmap/saved") == found
        cluster.load(config_map("later"))
        cluster.restore(backup)
        assert names(cluster) == {"saved"}
    host = Host()
    other = host.cluster(snapshot=str(backup))
    assert other.get("configmap/saved")["metadata"]["uid"] == found["metadata"]["uid"]
    other.stop()
    host.stop()
    assert backup.read_bytes() == content


def test_snapshot_file_is_a_backup(tmp_path: Path) -> None:
    with Cluster(data_dir=str(tmp_path)) as cluster:
        cluster.load(config_map("saved"))
        cluster.snapshots.save("before")
    with Cluster() as cluster:
        cluster.load(config_map("other"))
        cluster.restore(str(tmp_path / "snapshots" / "before.snapshot"))
        assert names(cluster) == {"saved"}
    restored = tmp_path / "restored"
    restore_backup(tmp_path / "snapshots" / "before.snapshot", restored, lambda _: None)
    with contextlib.closing(sqlite3.connect(restored / "kubist.db")) as store:
        tables = {name for (name,) in store.execute("SELECT name FROM sqlite_master WHERE type = 'table'")}
    assert tables == {"changes", "expiries", "compaction"}
    with Cluster(data_dir=str(restored)) as cluster:
        assert names(cluster) == {"saved"}


def test_unusable_files_are_errors_that_name_the_file(cluster: Cluster, tmp_path: Path) -> None:
    cluster.load(config_map("kept"))
    (tmp_path / "text").write_text("no database")
    (tmp_path / "empty").touch()
    with contextlib.closing(sqlite3.connect(tmp_path / "foreign")) as foreign:
        foreign.execute("CREATE TABLE other (a)")
    for name, text in (
        ("missing", "does not exist"),
        ("text", "is not a usable backup"),
        ("empty", "is empty"),
        ("foreign", "database of another application"),
    ):
        with pytest.raises(OpenFailed, match=text) as failed:
            cluster.restore(tmp_path / name)
        assert str(tmp_path / name) in str(failed.value)
        with pytest.raises(OpenFailed, match=text):
            Cluster(snapshot=str(tmp_path / name)).start()
    assert names(cluster) == {"kept"}


def test_server_on_disk_does_not_start_from_a_snapshot(tmp_path: Path) -> None:
    with pytest.raises(ValueError, match="only in memory"):
        Cluster(snapshot="file", data_dir=str(tmp_path)).start()


def test_encrypted_values_stay_encrypted(tmp_path: Path) -> None:
    config = tmp_path / "encryption.yaml"
    config.write_text(
        "kind: EncryptionConfiguration\napiVersion: apiserver.config.k8s.io/v1\nresources:\n"
        "- resources: [configmaps]\n  providers:\n  - aescbc:\n      keys:\n      - name: key1\n"
        f"        secret: {'MDEyMzQ1Njc4OTAxMjM0NTY3ODkwMTIzNDU2Nzg5MDE='}\n  - identity: {{}}\n"
    )
    data = tmp_path / "data"
    with Cluster(data_dir=str(data), encryption_provider_config=str(config)) as cluster:
        cluster.load(config_map("hidden", "confidential"))
        cluster.snapshots.save("before")
        cluster.delete("configmap/hidden")
        cluster.snapshots.restore("before")
        assert cluster.get("configmap/hidden")["data"] == {"value": "confidential"}
        with cluster.fork() as other:
            assert other.get("configmap/hidden")["data"] == {"value": "confidential"}
            kept = other.inner.store.inner._values["/registry/configmaps/default/hidden"]  # type: ignore[attr-defined]
            assert b"confidential" not in kept.value
    file = data / "snapshots" / "before.snapshot"
    assert b"confidential" not in file.read_bytes()
    with Cluster() as cluster:
        with pytest.raises(OpenFailed, match="values are encrypted"):
            cluster.restore(file)
        plain = cluster.snapshot()
    with Cluster(encryption_provider_config=str(config)) as cluster:
        cluster.restore(plain)
        cluster.restore(file)
        assert cluster.get("configmap/hidden")["data"] == {"value": "confidential"}


def test_restored_events_expire(cluster: Cluster) -> None:
    event = {
        "metadata": {"name": "old", "namespace": "default"},
        "involvedObject": {"kind": "Pod", "name": "a", "namespace": "default"},
    }
    cluster.request("POST", "/api/v1/namespaces/default/events", event)
    cluster.snapshots.save("before")
    cluster.delete("event/old")
    cluster.snapshots.restore("before")
    assert cluster.get("event/old")
    cluster.clock.advance("2h")
    cluster.wait("event/old", "delete")


def test_snapshots_of_the_parent_do_not_belong_to_the_fork(cluster: Cluster) -> None:
    cluster.snapshots.save("parent")
    other = cluster.fork()
    assert other.snapshots.list() == []
    other.snapshots.save("parent")
    other.snapshots.delete("parent")
    assert [found["name"] for found in cluster.snapshots.list()] == ["parent"]


def test_unwritable_directory_is_not_a_traceback(tmp_path: Path) -> None:
    with Cluster(data_dir=str(tmp_path)) as cluster:
        (tmp_path / "snapshots").write_text("a file in the way")
        code, message = refusal(cluster, "POST", PATH, {"name": "a"})
        assert code == 409 and "snapshots" in message


def test_store_shared_with_other_servers_is_refused(
    cluster: Cluster, monkeypatch: pytest.MonkeyPatch
) -> None:
    cluster.snapshots.save("before")
    monkeypatch.setattr(cluster.inner.store, "local", False)
    for path, body in (("", {"name": "after"}), ("/before/restore", None)):
        code, message = refusal(cluster, "POST", PATH + path, body)
        assert (code, message) == (409, "there are no snapshots: the store is shared with other servers")


def test_access_needs_a_rule_for_the_path(cluster: Cluster) -> None:
    cluster.snapshots.save("before")
    rules = [{"nonResourceURLs": ["/kubist/v1/snapshots"], "verbs": ["get"]}]
    alice = cluster.user("alice", rules=rules)
    assert cluster.request("GET", PATH, token=alice.token)["items"]
    for method, path in (
        ("POST", ""),
        ("GET", "/before"),
        ("DELETE", "/before"),
        ("POST", "/before/restore"),
    ):
        with pytest.raises(Refused) as refused:
            cluster.request(method, PATH + path, {"name": "x"}, token=alice.token)
        assert refused.value.code == 403
