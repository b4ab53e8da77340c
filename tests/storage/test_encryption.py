"""Encrypted store: storage formats, several keys, undecryptable values, and validation of the configuration
file."""

from __future__ import annotations

import base64
import os
import sys
from pathlib import Path
from typing import Any

import pytest

from kubist.storage.encryption import config
from kubist.storage.encryption.config import GroupResource
from kubist.storage.encryption.store import EncryptedStore, Values
from kubist.storage.encryption.unreadable import Undecrypted
from kubist.storage.memory import MemoryStore
from kubist.storage.store import Conflict, KeyValue

RESOURCES = {
    "/registry/secrets/": GroupResource("", "secrets"),
    "/registry/configmaps/": GroupResource("", "configmaps"),
    "/registry/services/specs/": GroupResource("", "services"),
    "/registry/deployments/": GroupResource("apps", "deployments"),
}
ONE = base64.b64encode(bytes(range(32))).decode()
TWO = base64.b64encode(bytes(range(32, 64))).decode()

STORED_BY_KUBE_APISERVER = {
    "aescbc": (
        "azhzOmVuYzphZXNjYmM6djE6b25lOgGKNXlhYeuLWIk633e4nKHE1LYb0xN8cnMMV8jsLM8T42/ykD9NrdFUSlcyY0ApFUzN"
        "n6KvCCTKg/ONxirNn1baGWF+JB34ARoTzEimDev3sP6hsbO0CqRvyITsCMKEb+SXml/1zV9yfLQ1U7MBO5Lsta1h9a9u54V7"
        "bURcuu6i0lRFXImmSIj7ToIHYmS6pJaat11Knk3x3OKWcAS8xATe7ZexbGWPnIIyKYR40Kewd/kvpAeOEmiboYHOsV2QsjST"
        "vlRK6pqtceKAjLSYJk4="
    ),
    "aesgcm": (
        "azhzOmVuYzphZXNnY206djE6b25lOkK/D3pIPHnt+U5aRfy3wjkvW078kUKYc3Kr2YBnCNFrO79x49yCU2a3toQXDIV/rOCe"
        "hXLBAZ2DlwvblIJj5IChE1G184E6Tyql4vobR1lAsruOX1XbWu38KpjzzCDgvmLmwowgpvEE37tPyf1aIo0jhD9cG8Kf/WPF"
        "CHiQKBNXrOErh5YoAcQey49RgxAgLVjocEM+uZmis0GSWxN3nXnMa3znMpacbl9l2s3huaDjPzRslRckhEV1PQTbBM6Z5JNm"
        "FvePjFgil8r8AeByDOJPyi8s"
    ),
    "secretbox": (
        "azhzOmVuYzpzZWNyZXRib3g6djE6b25lOuAaSdicqRhLbzUqSYY77SXAcS6mpvxFc111MFgEvcuG9uTV0WvKeck3RpHcqffF"
        "MqPyIQ89SS4qvzGo5NGUF9ByaFEOUxLD7Wp4UOPEnRyWEBL8WGIE6L/f+9K3Z1U0U9drgpg1dNNrEf9JMwfIjusUOKFXiQsC"
        "7+OaxJ52Mk+Z8Aw/Y8woFg+Ia4f59jPVawArpf+cdXD4IwVbIK+pYFKzBpVvDn0l6b8CfRtK4/DJm1XHrTgF7CgNORlHeg4v"
        "45XX0bs1fM7sE76cayKGD+b5ierM7tzIIUNZgk4n1pR+z4wA"
    ),
}
"""A ConfigMap default/NAME-OF-THE-PROVIDER with the data a=b, under the key ONE, which it calls "one"."""


def keys(provider: str, **named: str) -> dict[str, Any]:
    return {provider: {"keys": [{"name": name, "secret": secret} for name, secret in named.items()]}}


def document(*lists: tuple[list[str], list[dict[str, Any]]]) -> dict[str, Any]:
    return {
        "kind": "EncryptionConfiguration",
        "apiVersion": "apiserver.config.k8s.io/v1",
        "resources": [{"resources": names, "providers": providers} for names, providers in lists],
    }


def values(*providers: dict[str, Any], resources: str = "*.*", prefix: str = "/registry") -> Values:
    return Values(config.parse(document(([resources], list(providers)))), RESOURCES, prefix=prefix)


def kv(key: str, value: bytes) -> KeyValue:
    return KeyValue(key, value, 1, 1)


@pytest.mark.parametrize("provider", STORED_BY_KUBE_APISERVER)
def test_values_stored_by_kube_apiserver_are_readable(provider: str) -> None:
    stored = base64.b64decode(STORED_BY_KUBE_APISERVER[provider])
    opened = values(keys(provider, one=ONE)).open(kv(f"/registry/configmaps/default/{provider}", stored))
    assert opened.value.startswith(b"k8s\0")
    assert b"\n\x01a\x12\x01b" in opened.value


@pytest.mark.parametrize("provider", ["aescbc", "aesgcm", "secretbox"])
@pytest.mark.parametrize("size", [0, 1, 15, 16, 17, 5000])
def test_encrypted_value_names_its_key_and_decrypts(provider: str, size: int) -> None:
    there, plain = values(keys(provider, one=ONE)), os.urandom(size)
    stored = there.seal("/registry/secrets/a/b", plain)
    assert stored.startswith(f"k8s:enc:{provider}:v1:one:".encode())
    assert size < 15 or plain not in stored
    assert there.seal("/registry/secrets/a/b", plain) != stored, "nonces differ"
    assert there.open(kv("/registry/secrets/a/b", stored)).value == plain


def test_value_copied_to_another_storage_key_does_not_decrypt() -> None:
    there = values(keys("aesgcm", one=ONE))
    stored = there.seal("/registry/secrets/a/b", b"plain")
    moved = there.open(kv("/registry/secrets/a/c", stored)).value
    assert isinstance(moved, Undecrypted)
    assert moved.reason == "cipher: message authentication failed"
    elsewhere = values(keys("aesgcm", one=ONE), prefix="/mine")
    assert isinstance(elsewhere.open(kv("/registry/secrets/a/b", stored)).value, Undecrypted)


@pytest.mark.parametrize(
    ("providers", "stale"),
    [
        ([keys("aescbc", one=ONE)], False),
        ([keys("aescbc", one=ONE, two=TWO)], False),
        ([keys("aescbc", two=TWO, one=ONE)], True),
        ([keys("aesgcm", one=ONE), keys("aescbc", one=ONE)], True),
        ([keys("aescbc", two=TWO), keys("aescbc", one=ONE)], True),
        ([{"identity": {}}, keys("aescbc", one=ONE)], True),
    ],
)
def test_first_encryption_key_writes_and_all_keys_read(providers: list[dict[str, Any]], stale: bool) -> None:
    stored = kv("/registry/secrets/a/b", values(keys("aescbc", one=ONE)).seal("/registry/secrets/a/b", b"{}"))
    there = values(*providers)
    assert there.open(stored).value == b"{}"
    assert there.stale(stored) is stale
    assert there.stale(kv(stored.key, there.seal(stored.key, b"{}"))) is False


def test_identity_provider_reads_plain_values() -> None:
    there = values(keys("aescbc", one=ONE), {"identity": {}})
    assert there.open(kv("/registry/secrets/a/b", b"{}")).value == b"{}"
    assert there.stale(kv("/registry/secrets/a/b", b"{}"))
    without = values(keys("aescbc", one=ONE)).open(kv("/registry/secrets/a/b", b"{}")).value
    assert isinstance(without, Undecrypted)
    assert without.reason == "no matching prefix found"


@pytest.mark.parametrize(
    ("providers", "stored", "reason"),
    [
        ([keys("aescbc", one=ONE)], b"k8s:enc:aescbc:v1:x:" + bytes(32), "no matching key was found for the "
         "provided AES transformer"),
        ([keys("secretbox", one=ONE)], b"k8s:enc:secretbox:v1:x:" + bytes(64), "no matching key was found for "
         "the provided Secretbox transformer"),
        ([keys("secretbox", one=ONE)], b"k8s:enc:secretbox:v1:one:" + bytes(64), "output array was not large "
         "enough for encryption"),
        ([keys("secretbox", one=ONE)], b"k8s:enc:secretbox:v1:one:", "the stored data was shorter than the "
         "required size"),
        ([keys("aescbc", one=ONE)], b"k8s:enc:aescbc:v1:one:short", "the stored data was shorter than the "
         "required size"),
        ([keys("aescbc", one=ONE)], b"k8s:enc:aescbc:v1:one:" + bytes(17), "the stored data is not a multiple of "
         "the block size"),
        ([keys("aescbc", one=ONE)], b"k8s:enc:aescbc:v1:one:" + bytes(16), "invalid PKCS7 data (empty or not "
         "padded)"),
        ([keys("aesgcm", one=ONE)], b"k8s:enc:aesgcm:v1:one:" + bytes(40), "cipher: message authentication "
         "failed"),
        ([keys("aescbc", one=ONE)], b"k8s:enc:aesgcm:v1:one:" + bytes(40), "no matching prefix found"),
        ([{"identity": {}}], b"k8s:enc:aesgcm:v1:one:" + bytes(40), "no matching prefix found"),
        ([keys("aescbc", two=TWO), keys("aescbc", three=TWO)], b"k8s:enc:aescbc:v1:one:" + bytes(32), "no "
         "matching key was found for the provided AES transformer"),
    ],
)  # fmt: skip
def test_undecryptable_value_reports_the_reason(
    providers: list[dict[str, Any]], stored: bytes, reason: str
) -> None:
    found = values(*providers).open(kv("/registry/secrets/a/b", stored)).value
    assert isinstance(found, Undecrypted)
    assert found.reason == reason
    assert found == stored


@pytest.mark.parametrize(
    ("names", "key", "sealed"),
    [
        ("secrets", "/registry/secrets/a/b", True),
        ("secrets", "/registry/configmaps/a/b", False),
        ("*.", "/registry/configmaps/a/b", True),
        ("*.", "/registry/services/specs/a/b", True),
        ("*.", "/registry/deployments/a/b", False),
        ("services", "/registry/services/specs/a/b", True),
        ("*.apps", "/registry/deployments/a/b", True),
        ("deployments.apps", "/registry/deployments/a/b", True),
        ("deployments", "/registry/deployments/a/b", False),
        ("*.*", "/registry/deployments/a/b", True),
        ("*.*", "/registry/example.com/widgets/a/b", True),
        ("widgets.example.com", "/registry/example.com/widgets/a/b", True),
        ("*.example.com", "/registry/example.com/widgets/b", True),
        ("*.*", "/registry/ranges/servicenodeports/30080", False),
        ("*.*", "/registry/masterleases/10.0.0.1", False),
    ],
)
def test_resource_names_and_wildcards_select_resources(names: str, key: str, sealed: bool) -> None:
    there = values(keys("aesgcm", one=ONE), resources=names)
    assert there.seal(key, b"{}").startswith(b"k8s:enc:") is sealed


def test_specific_resource_name_wins_over_a_later_wildcard() -> None:
    rules = config.parse(document((["secrets"], [{"identity": {}}]), (["*.*"], [keys("aesgcm", one=ONE)])))
    there = Values(rules, RESOURCES)
    assert there.seal("/registry/secrets/a/b", b"{}") == b"{}"
    assert there.seal("/registry/configmaps/a/b", b"{}").startswith(b"k8s:enc:aesgcm:v1:one:")


async def test_encrypted_store_returns_plain_values_only() -> None:
    inner = MemoryStore()
    store = EncryptedStore(inner, values(keys("aesgcm", one=ONE)))
    await store.open()
    key = "/registry/secrets/a/b"
    first = await store.create(key, b"1")
    second = await store.update(key, b"2", first)
    with pytest.raises(Conflict) as lost:
        await store.update(key, b"3", first)
    assert lost.value.current is not None and lost.value.current.value == b"2"
    with pytest.raises(Conflict) as there:
        await store.create(key, b"3")
    assert there.value.current is not None and there.value.current.value == b"2"
    raw = await inner.get(key)
    assert raw is not None and raw.value.startswith(b"k8s:enc:aesgcm:v1:one:")
    found = await store.get(key)
    assert found is not None and found.value == b"2"
    assert [item.value for item in (await store.scan("/registry/")).items] == [b"2"]
    await store.delete(key, second)
    seen: list[tuple[bytes | None, bytes | None]] = []
    async for batch in store.watch("/registry/", first - 1):
        seen += [(event.kv and event.kv.value, event.prev and event.prev.value) for event in batch.events]
        if len(seen) == 3:
            break
    assert seen == [(b"1", None), (b"2", b"1"), (None, b"2")]
    await store.close()


def problem(found: dict[str, Any]) -> str:
    with pytest.raises(ValueError, match=r"\w") as error:
        config.parse(found)
    return str(error.value)


def test_configuration_of_another_kind_or_shape_is_rejected() -> None:
    assert problem({"kind": "Policy"}) == "its kind is not EncryptionConfiguration"
    other = {"kind": "EncryptionConfiguration", "apiVersion": "v1"}
    assert problem(other) == "its apiVersion is not apiserver.config.k8s.io/v1"
    assert "at least one resources is required" in problem(document())


@pytest.mark.parametrize(
    ("names", "expected"),
    [
        ([], "resources[0].resources: Required value: at least one resources[0].resources is required"),
        (["Secrets"], "resource name should not contain capital letters"),
        (["*"], "use '*.' to encrypt all the resources from core API group or *.* to encrypt all resources"),
        (["serviceipallocations"], "resources which do not have REST API/s cannot be encrypted"),
        (["events.events.k8s.io"], "Use 'events' instead in the config file"),
        (["ingresses.extensions"], "'extensions' group has been removed"),
        (["secrets.*"], "encrypting the same resource across groups is not supported"),
        (["secrets", "secrets"], "the same resource cannot be specified multiple times"),
        (["secrets", "*."], "using overlapping resources such as"),
        (["secrets", "*.*"], "using overlapping resources such as"),
    ],
)
def test_resource_names_follow_the_reference(names: list[str], expected: str) -> None:
    assert expected in problem(document((names, [{"identity": {}}])))


def test_resource_masked_by_an_earlier_wildcard_is_rejected() -> None:
    both = document((["*.apps"], [{"identity": {}}]), (["deployments.apps"], [{"identity": {}}]))
    assert problem(both) == 'resource "deployments.apps" is masked by earlier rule "*.apps"'


@pytest.mark.parametrize(
    ("provider", "expected"),
    [
        ({}, "provider does not contain any of the expected providers"),
        ({"identity": None}, "provider does not contain any of the expected providers"),
        ({"identity": {}, **keys("aescbc", one=ONE)}, "more than one provider specified in a single element"),
        (keys("aescbc"), "providers[0].aescbc.keys: Required value: at least one keys is required"),
        (keys("aescbc", **{"": ONE}), "name is a mandatory field for a key"),
        (keys("aesgcm", one=""), "secret is a mandatory field for a key"),
        (keys("aesgcm", one="?"), 'Invalid value: "REDACTED": secrets must be base64 encoded'),
        (keys("aesgcm", one="MTIz"), "got 3, expected one of [16 24 32]"),
        (keys("secretbox", one="MDEyMzQ1Njc4OWFiY2RlZg=="), "got 16, expected one of [32]"),
        ({"kms": {"name": "a"}}, "the provider kms is not supported here"),
        ({"aesctr": {}}, "unknown field"),
    ],
)
def test_providers_follow_the_reference(provider: dict[str, Any], expected: str) -> None:
    found = problem(document((["secrets"], [provider])))
    assert expected in found
    assert ONE not in found and "\n" not in found


def test_invalid_configuration_file_is_a_one_line_error(tmp_path: Path) -> None:
    path = tmp_path / "config.yaml"
    for content in ("", "a: [", "secret: {", "- a"):
        path.write_text(content)
        with pytest.raises(ValueError, match=r"config\.yaml") as error:
            config.read(str(path))
        assert "\n" not in str(error.value)


def test_secretbox_without_pynacl_names_the_package_to_install(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "nacl.secret", None)
    assert "install kubist[secretbox]" in problem(document((["secrets"], [keys("secretbox", one=ONE)])))
