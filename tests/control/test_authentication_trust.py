"""The ConfigMap `extension-apiserver-authentication` while a server runs."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from kubist.api.bootstrap.trust import TRUST
from kubist.base.http.tls.certificates import new_authority
from kubist.cluster.control import authentication_trust
from tests.live import Live, Pki
from tests.waiting import wait_for

PATH = "/api/v1/namespaces/kube-system/configmaps"
BUNDLE = "requestheader-client-ca-file"


class Site:
    def __init__(self, pki: Pki, directory: Path) -> None:
        self.old, self.new = (new_authority(name).cert_pem.decode() for name in ("old", "new"))
        self.file = directory / "proxies.crt"
        self.file.write_text(self.old)
        self.live = Live(
            pki,
            requestheader_client_ca_file=str(self.file),
            requestheader_allowed_names=("front",),
            requestheader_username_headers=("X-Remote-User",),
        )

    def data(self) -> dict[str, str]:
        answer = self.live.client.ask("GET", f"{PATH}/{TRUST}")
        found: dict[str, str] = answer.json.get("data") or {}
        return found

    def edit(self, data: dict[str, str | None]) -> None:
        path = f"{PATH}/{TRUST}"
        self.live.client.patch(path, {"data": data})


@pytest.fixture
def site(server_pki: Pki, tmp_path: Path) -> Iterator[Site]:
    made = Site(server_pki, tmp_path)
    with made.live:
        yield made


def test_new_authority_of_the_file_is_added(site: Site) -> None:
    assert site.data()[BUNDLE] == site.old
    site.file.write_text(site.new)
    wait_for(lambda: site.data()[BUNDLE] == site.old + site.new)
    (fields,) = site.live.client.get(f"{PATH}/{TRUST}")["metadata"]["managedFields"]
    assert fields["manager"] == "kube-apiserver" and f"f:{BUNDLE}" in fields["fieldsV1"]["f:data"]


def test_file_without_certificates_changes_nothing(site: Site) -> None:
    site.file.write_text("none")
    site.live.client.ask("DELETE", f"{PATH}/{TRUST}")
    wait_for(lambda: site.data().get(BUNDLE) == site.old)


def test_deleted_config_map_is_created_again(site: Site) -> None:
    before = site.data()
    assert site.live.client.ask("DELETE", f"{PATH}/{TRUST}").status == 200
    wait_for(lambda: site.data() == before)


def test_changes_by_users_are_undone(site: Site, monkeypatch: pytest.MonkeyPatch) -> None:
    before = site.data()
    monkeypatch.setattr(authentication_trust, "RESYNC", 0.0)
    site.edit({"mine": "x", BUNDLE: None})
    # The first synchronization is still a minute away; a replaced file brings it forward.
    site.file.write_text(site.old)
    wait_for(lambda: site.data() == before)


def test_unreadable_config_map_stays_as_it_is(site: Site, caplog: pytest.LogCaptureFixture) -> None:
    site.edit({"requestheader-allowed-names": "no list"})
    site.file.write_text(site.new)
    wait_for(lambda: "cannot be read" in caplog.text)
    assert site.data()["requestheader-allowed-names"] == "no list"
