"""Data of the ConfigMap `extension-apiserver-authentication`. Expected values are those of a kube-apiserver."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from kubist.api import bootstrap
from kubist.api.bootstrap.trust import TRUST, Trust
from kubist.api.config import Config
from kubist.base.http.tls.certificates import new_authority
from tests.filters.certs import authority

HEADERS: dict[str, Any] = {
    "requestheader_allowed_names": ("front-proxy-client", "a<b"),
    "requestheader_username_headers": ("X-Remote-User", "X-U"),
    "requestheader_group_headers": ("X-Remote-Group",),
}
LISTS = {
    "requestheader-allowed-names": r'["front-proxy-client","a\u003cb"]',
    "requestheader-extra-headers-prefix": "[]",
    "requestheader-group-headers": '["X-Remote-Group"]',
    "requestheader-username-headers": '["X-Remote-User","X-U"]',
}


class Files:
    def __init__(self, directory: Path) -> None:
        self.clients = new_authority("clients").cert_pem.decode()
        self.proxies = new_authority("proxies").cert_pem.decode()
        (directory / "clients.crt").write_text(self.clients)
        (directory / "proxies.crt").write_text(f"# a comment\n{self.proxies}")
        self.client_ca: dict[str, Any] = {"client_ca_file": str(directory / "clients.crt")}
        self.proxy_ca: dict[str, Any] = {"requestheader_client_ca_file": str(directory / "proxies.crt")}


@pytest.fixture
def files(tmp_path: Path) -> Files:
    return Files(tmp_path)


def data(**settings: Any) -> dict[str, str]:
    return Trust.of_config(Config(**settings)).data()


def test_without_authorities_there_is_no_config_map() -> None:
    assert data(**HEADERS) == {}
    assert TRUST not in [obj["metadata"]["name"] for obj in bootstrap.objects(Config(**HEADERS))]


def test_client_ca_alone(files: Files) -> None:
    assert data(**files.client_ca, **HEADERS) == {"client-ca-file": files.clients}


def test_front_proxy_alone(files: Files) -> None:
    expected = {"requestheader-client-ca-file": files.proxies, **LISTS}
    assert data(**files.proxy_ca, **HEADERS) == expected


def test_keys_are_sorted(files: Files) -> None:
    settings = files.client_ca | files.proxy_ca | HEADERS
    named = {obj["metadata"]["name"]: obj for obj in bootstrap.objects(Config(**settings))}
    keys = list(named[TRUST]["data"])
    assert keys == sorted(keys) and len(keys) == 6


def test_uid_headers_are_published_if_there_are_any(files: Files) -> None:
    uid = {"requestheader_uid_headers": ("X-Remote-Uid",)}
    assert data(**files.proxy_ca, **uid)["requestheader-uid-headers"] == '["X-Remote-Uid"]'
    gate = {"RemoteRequestHeaderUID": False}
    assert "requestheader-uid-headers" not in data(**files.proxy_ca, **uid, feature_gates=gate)


def test_values_of_two_servers_are_combined(files: Files) -> None:
    other = new_authority("other").cert_pem.decode()
    published = {
        "client-ca-file": other + files.clients,
        "requestheader-client-ca-file": other,
        "requestheader-allowed-names": '["other","front-proxy-client"]',
        "unknown": "is removed",
    }
    own = Trust.of_config(Config(**files.client_ca, **files.proxy_ca, **HEADERS))
    assert Trust.of_data(published).combined(own).data() == {
        **LISTS,
        "client-ca-file": other + files.clients,
        "requestheader-allowed-names": r'["other","front-proxy-client","a\u003cb"]',
        "requestheader-client-ca-file": other + files.proxies,
    }


def test_published_front_proxy_is_kept_by_a_server_without_one(files: Files) -> None:
    published = {"requestheader-client-ca-file": files.proxies, **LISTS}
    own = Trust.of_config(Config(**files.client_ca))
    assert Trust.of_data(published).combined(own).data() == {"client-ca-file": files.clients, **published}


YEAR = 365 * 86400.0


@pytest.mark.parametrize(
    ("ends", "is_published"), [(-400, False), (-200, True), (3600, True), (30 * YEAR, True)]
)
def test_expired_certificates_are_removed(
    files: Files, tmp_path: Path, ends: float, is_published: bool
) -> None:
    certificate = authority("short", starts=-YEAR, ends=ends).pem.decode()
    (tmp_path / "clients.crt").write_text(certificate + files.clients)
    expected = (certificate if is_published else "") + files.clients
    assert data(**files.client_ca)["client-ca-file"] == expected


def test_front_proxy_with_an_expired_authority_is_removed(files: Files, tmp_path: Path) -> None:
    (tmp_path / "proxies.crt").write_bytes(authority("old", starts=-YEAR, ends=-400).pem)
    assert data(**files.proxy_ca, **HEADERS) == {}


@pytest.mark.parametrize(
    "published",
    [
        {"client-ca-file": "no certificate"},
        {"requestheader-client-ca-file": "no certificate"},
        {"requestheader-allowed-names": "no list"},
        {"requestheader-group-headers": '{"a":1}'},
        {"requestheader-group-headers": "[1]"},
    ],
)
def test_unreadable_values_are_rejected(published: dict[str, str]) -> None:
    with pytest.raises(ValueError, match=r"no certificate|not a list|Expecting value"):
        Trust.of_data(published)
