"""Server with an encrypted store: key rotation, reload of the configuration, and undecryptable values."""

from __future__ import annotations

import base64
import os
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
import yaml

from kubist.api import logs
from kubist.cli import main
from kubist.storage.encryption import store as encrypted
from kubist.storage.encryption.store import EncryptedStore
from tests.live import Client, Live, Pki, configmap, seen
from tests.waiting import wait_for

SECRETS = "/api/v1/namespaces/default/secrets"
BAD = b"k8s:enc:aescbc:v1:lost:" + bytes(32)
WHY = "no matching key was found for the provided AES transformer"


def key(name: str, provider: str = "aescbc") -> dict[str, Any]:
    return {provider: {"keys": [{"name": name, "secret": base64.b64encode(name[:1].encode() * 32).decode()}]}}


def write(path: Path, *providers: dict[str, Any], resources: tuple[str, ...] = ("secrets",)) -> Path:
    lists = [{"resources": list(resources), "providers": list(providers)}]
    document = {
        "kind": "EncryptionConfiguration",
        "apiVersion": "apiserver.config.k8s.io/v1",
        "resources": lists,
    }
    path.write_text(yaml.safe_dump(document))
    return path


def secret(name: str, **data: str) -> dict[str, Any]:
    return {"apiVersion": "v1", "kind": "Secret", "metadata": {"name": name}, "stringData": data}


def stored(live: Live, path: str) -> bytes:
    store = live.server.store
    assert isinstance(store, EncryptedStore)
    held = live.run(store.inner.get(f"/registry/{path}"))
    assert held is not None
    return held.value


def put(live: Live, path: str, value: bytes) -> None:
    """Writes to the store directly, without the server."""
    store = live.server.store
    assert isinstance(store, EncryptedStore)

    async def change() -> None:
        held = await store.inner.get(f"/registry/{path}")
        if held is None:
            await store.inner.create(f"/registry/{path}", value)
        else:
            await store.inner.update(f"/registry/{path}", value, held.mod_revision)

    live.run(change())


@pytest.fixture
def file(tmp_path: Path) -> Path:
    return write(tmp_path / "encryption.yaml", key("one"), {"identity": {}})


@pytest.fixture
def sealed(server_pki: Pki, file: Path) -> Iterator[Live]:
    with Live(server_pki, encryption_provider_config=str(file)) as running:
        yield running


def test_only_configured_resources_are_encrypted(sealed: Live) -> None:
    sealed.client.post(SECRETS, secret("a", word="hidden"))
    sealed.client.post("/api/v1/namespaces/default/configmaps", configmap("a", word="plain"))
    assert stored(sealed, "secrets/default/a").startswith(b"k8s:enc:aescbc:v1:one:")
    assert b"plain" in stored(sealed, "configmaps/default/a")
    word = base64.b64encode(b"hidden").decode()
    assert sealed.client.get(f"{SECRETS}/a")["data"] == {"word": word}
    with sealed.client.watch(f"{SECRETS}?resourceVersion=0") as watch:
        assert watch.take(1)[0]["object"]["data"] == {"word": word}
    text = sealed.client.ask("GET", "/metrics").body.decode()
    name = "apiserver_storage_transformation_operations_total"
    labels = 'resource="secrets",status="OK",transformation_type="to_storage",transformer_prefix="k8s:enc:aescbc:v1:"'
    assert f"{name}{{{labels}}} 1" in text


def test_unchanged_update_rotates_the_encryption_key(server_pki: Pki, file: Path, tmp_path: Path) -> None:
    data = str(tmp_path / "data")
    with Live(server_pki, data_dir=data, encryption_provider_config=str(file)) as live:
        live.client.post(SECRETS, secret("a", word="hidden"))
        same = live.client.get(f"{SECRETS}/a")
        assert live.client.put(f"{SECRETS}/a", same) == same, "nothing to do under the same key"
    write(file, key("two"), key("one"))
    with Live(server_pki, data_dir=data, encryption_provider_config=str(file)) as live:
        assert stored(live, "secrets/default/a").startswith(b"k8s:enc:aescbc:v1:one:")
        before = live.client.get(f"{SECRETS}/a")
        after = live.client.put(f"{SECRETS}/a", before)
        assert stored(live, "secrets/default/a").startswith(b"k8s:enc:aescbc:v1:two:")
        assert after["metadata"].pop("resourceVersion") != before["metadata"].pop("resourceVersion")
        assert after == before
        again = live.client.patch(f"{SECRETS}/a", {})
        assert again == live.client.put(f"{SECRETS}/a", again)


def test_undecryptable_value_fails_alone(sealed: Live) -> None:
    client = sealed.client
    client.post(SECRETS, secret("good"))
    client.post("/api/v1/namespaces", {"metadata": {"name": "other"}})
    client.post("/api/v1/namespaces/other/secrets", secret("there"))
    put(sealed, "secrets/default/bad", BAD)
    wait_for(lambda: client.ask("GET", f"{SECRETS}/bad").status != 404)
    for method, path, body in (
        ("GET", f"{SECRETS}/bad", None),
        ("DELETE", f"{SECRETS}/bad", None),
        ("PUT", f"{SECRETS}/bad", secret("bad")),
    ):
        found = client.ask(method, path, body)
        assert (found.status, found.json["reason"]) == (500, "InternalError")
        assert found.json["message"] == f"Internal error occurred: {WHY}"
    for method, path in (("GET", SECRETS), ("GET", "/api/v1/secrets"), ("DELETE", SECRETS)):
        found = client.ask(method, path)
        assert found.status == 500
        shown = f'Internal error occurred: unable to transform key "/registry/secrets/default/bad": {WHY}'
        assert found.json["message"] == shown
    assert client.ask("POST", SECRETS, secret("bad")).json["reason"] == "AlreadyExists"
    assert client.get(f"{SECRETS}/good")["metadata"]["name"] == "good"
    assert [item["metadata"]["name"] for item in client.get("/api/v1/namespaces/other/secrets")["items"]] == [
        "there"
    ]
    known = client.get(f"{SECRETS}?resourceVersion=0")["items"]
    assert [item["metadata"]["name"] for item in known] == ["good"]


def test_unreadable_object_sends_no_deleted_event(sealed: Live) -> None:
    client = sealed.client
    began = client.post(SECRETS, secret("a"))
    plain = stored(sealed, "secrets/default/a")
    with client.watch(f"{SECRETS}?resourceVersion={began['metadata']['resourceVersion']}") as watch:
        put(sealed, "secrets/default/a", BAD)
        wait_for(lambda: client.ask("GET", f"{SECRETS}/a").status == 500)
        put(sealed, "secrets/default/a", plain)
        assert [event[:2] for event in map(seen, watch.take(1))] == [("MODIFIED", "a")]
        client.delete(f"{SECRETS}/a")
        assert [event[:2] for event in map(seen, watch.take(1))] == [("DELETED", "a")]


def test_changed_encryption_configuration_is_reloaded(
    server_pki: Pki, file: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(encrypted.EncryptedStore.follow, "__kwdefaults__", {"every": 0.05})
    reload = {"encryption_provider_config_automatic_reload": True}
    with Live(server_pki, encryption_provider_config=str(file), **reload) as live:
        client = live.client
        client.post(SECRETS, secret("a"))
        file.write_text("nonsense: [")
        wait_for(lambda: 'reloads_total{status="failure"}' in metrics(client))
        client.post(SECRETS, secret("b"))
        assert stored(live, "secrets/default/b").startswith(b"k8s:enc:aescbc:v1:one:")
        write(file, key("two", "secretbox"))
        wait_for(lambda: 'reloads_total{status="success"} 1' in metrics(client))
        client.post(SECRETS, secret("c"))
        assert stored(live, "secrets/default/c").startswith(b"k8s:enc:secretbox:v1:two:")
        put(live, "secrets/default/a", stored(live, "secrets/default/a"))
        wait_for(lambda: client.ask("GET", f"{SECRETS}/a").status == 500)
        write(file, key("two", "secretbox"), key("one"))
        wait_for(lambda: client.ask("GET", f"{SECRETS}/a").status == 200)
        names = [item["metadata"]["name"] for item in client.get(SECRETS)["items"]]
        assert names == ["a", "b", "c"]
        assert "[+]kms-providers ok" in client.ask("GET", "/readyz?verbose").body.decode()


def metrics(client: Client) -> str:
    return client.ask("GET", "/metrics").body.decode()


def test_encrypted_value_is_unreadable_without_configuration(
    server_pki: Pki, file: Path, tmp_path: Path
) -> None:
    data = str(tmp_path / "data")
    with Live(server_pki, data_dir=data, encryption_provider_config=str(file)) as live:
        live.client.post(SECRETS, secret("a"))
    with Live(server_pki, data_dir=data) as live:
        found = live.client.ask("GET", f"{SECRETS}/a")
        assert found.status == 500
        why = "identity transformer tried to read encrypted data"
        assert found.json["message"] == f"Internal error occurred: {why}"


def test_backup_and_doctor_accept_encrypted_values(
    server_pki: Pki, file: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    data, other = str(tmp_path / "data"), str(tmp_path / "other")
    with Live(server_pki, data_dir=data, encryption_provider_config=str(file)) as live:
        live.client.post(SECRETS, secret("a", word="hidden"))
        backup = str(tmp_path / "backup")
        assert main(["backup", "--data-dir", data, "--file", backup]) == 0
    assert b"hidden" not in Path(backup).read_bytes()
    assert main(["restore", "--data-dir", other, "--file", backup]) == 0
    assert main(["doctor", "--data-dir", other]) == 0
    assert "1 values are encrypted" in capsys.readouterr().out
    assert main(["doctor", "--data-dir", other, "--encryption-provider-config", str(file)]) == 0
    write(file, key("two"))
    assert main(["doctor", "--data-dir", other, "--encryption-provider-config", str(file)]) == 4
    assert f"/registry/secrets/default/a cannot be decrypted: {WHY}" in capsys.readouterr().out
    write(file, key("one"))
    with Live(server_pki, data_dir=other, encryption_provider_config=str(file)) as live:
        assert live.client.get(f"{SECRETS}/a")["data"] == {"word": base64.b64encode(b"hidden").decode()}


def test_keys_are_never_logged(
    file: Path, capfd: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    word = base64.b64encode(os.urandom(31)).decode()
    file.write_text(file.read_text().replace(base64.b64encode(b"o" * 32).decode(), word))
    monkeypatch.setattr(logs, "setup", lambda *_: None)
    assert main(["apiserver", "--secure-port=0", f"--encryption-provider-config={file}"]) == 2
    errors = capfd.readouterr().err
    assert "got 31, expected one of [16 24 32]" in errors
    assert word not in errors
    assert len(errors.strip().splitlines()) == 1


def test_namespace_deletion_waits_for_unreadable_content(server_pki: Pki, file: Path) -> None:
    loops = {"controllers": ("namespace",)}
    with Live(server_pki, encryption_provider_config=str(file), **loops) as live:
        client = live.client
        client.post("/api/v1/namespaces", {"metadata": {"name": "doomed"}})
        client.post("/api/v1/namespaces/doomed/secrets", secret("readable"))
        put(live, "secrets/doomed/lost", BAD)
        client.delete("/api/v1/namespaces/doomed")

        def told() -> bool:
            found = client.get("/api/v1/namespaces/doomed")["status"].get("conditions") or []
            return any(WHY in condition.get("message", "") for condition in found)

        wait_for(told)
        assert stored(live, "secrets/doomed/lost") == BAD
