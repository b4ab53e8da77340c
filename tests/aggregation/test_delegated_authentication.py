"""Extension API servers with delegated authentication, on servers that make their own certificates."""

from __future__ import annotations

import base64
import datetime
from collections.abc import Iterator
from pathlib import Path

import pytest
from cryptography import x509

from kubist.base.http.tls import certificates
from kubist.server.runtime import pki
from kubist.server.runtime.pki import prepare
from kubist.testing import Cluster
from kubist.testing.errors import Refused
from kubist.testing.host import Host
from tests.aggregation.extension import GROUP, PATH, TRUST, Extension
from tests.live import Pki
from tests.waiting import wait_for

READ_FLAVOURS = [{"apiGroups": [GROUP], "resources": ["flavours"], "verbs": ["get"]}]


@pytest.fixture(params=["cluster", "fork", "logical"])
def main(request: pytest.FixtureRequest, kubist_host: Host) -> Iterator[Cluster]:
    """Main API server."""
    if request.param == "logical":
        with kubist_host.clusters.create() as logical:
            yield logical
        return
    with kubist_host.cluster() as cluster:
        if request.param == "cluster":
            yield cluster
        else:
            with cluster.fork() as fork:
                yield fork


@pytest.fixture
def extension(main: Cluster, tmp_path: Path) -> Iterator[Extension]:
    made = Extension(main.request, tmp_path)
    made.register()
    yield made
    made.stop()


def test_extension_server_knows_the_user(main: Cluster, extension: Extension) -> None:
    wait_for(extension.is_available)
    reader = main.user("jane", groups=["tasters"], rules=READ_FLAVOURS)
    found = main.request("GET", f"{PATH}/flavours/mint", token=reader.token)
    assert found["metadata"]["name"] == "mint"
    (user,) = extension.users
    assert user["user"] == "jane"
    assert user["groups"] == ["tasters", "system:authenticated"]


def test_extension_server_authorizes_by_review(main: Cluster, extension: Extension) -> None:
    wait_for(extension.is_available)
    stranger = main.user("joe")
    with pytest.raises(Refused) as refused:
        main.request("GET", f"{PATH}/flavours/mint", token=stranger.token)
    assert refused.value.code == 403


def test_discovery_has_the_resources_of_the_extension_server(main: Cluster, extension: Extension) -> None:
    wait_for(extension.is_available)
    assert GROUP in [group["name"] for group in main.request("GET", "/apis")["groups"]]
    assert main.request("GET", PATH)["resources"][0]["name"] == "flavours"


def test_front_proxy_is_trusted_by_its_own_cluster_only(kubist_host: Host, tmp_path: Path) -> None:
    """A tenant must not act as another tenant's front proxy: its aggregator would send any user it likes."""
    with kubist_host.clusters.create() as first, kubist_host.clusters.create() as second:
        bundles = [
            cluster.request("GET", TRUST)["data"]["requestheader-client-ca-file"]
            for cluster in (first, second)
        ]
        assert bundles[0] != bundles[1]
        with first.fork() as fork:
            published = fork.request("GET", TRUST)["data"]["requestheader-client-ca-file"]
            assert published not in bundles and published.count("BEGIN") == 1


def test_front_proxy_has_the_names_of_kubeadm(tmp_path: Path, server_pki: Pki) -> None:
    made = prepare(server_pki.config(), tmp_path, in_memory=True)
    files = sorted(path.name for path in (tmp_path / "pki").glob("front-proxy-*"))
    assert files == [
        "front-proxy-ca.crt",
        "front-proxy-ca.key",
        "front-proxy-client.crt",
        "front-proxy-client.key",
    ]
    assert made.requestheader_allowed_names == ("front-proxy-client",)
    assert all(oct((tmp_path / "pki" / name).stat().st_mode)[-3:] == "600" for name in files)


def test_configured_front_proxy_is_kept(tmp_path: Path, server_pki: Pki) -> None:
    config = server_pki.config(requestheader_client_ca_file=str(server_pki.path("ca.crt")))
    made = prepare(config, tmp_path, in_memory=True)
    assert (made.requestheader_client_ca_file, made.proxy_client_cert_file) == (
        str(server_pki.path("ca.crt")),
        "",
    )


def client_of(pki: Path) -> x509.Certificate:
    return x509.load_pem_x509_certificate((pki / "front-proxy-client.crt").read_bytes())


def test_client_certificate_is_renewed_before_it_expires(tmp_path: Path) -> None:
    assert pki.make_front_proxy(tmp_path)
    assert not pki.make_front_proxy(tmp_path)
    ca = (tmp_path / "front-proxy-ca.crt").read_bytes()
    authority = certificates.load_authority(tmp_path / "front-proxy-ca.crt", tmp_path / "front-proxy-ca.key")
    old = authority.issue_client("front-proxy-client", days=29)
    certificates.save(old, tmp_path / "front-proxy-client.crt", tmp_path / "front-proxy-client.key")
    assert pki.make_front_proxy(tmp_path)
    assert (tmp_path / "front-proxy-ca.crt").read_bytes() == ca
    left = client_of(tmp_path).not_valid_after_utc - datetime.datetime.now(datetime.UTC)
    assert left.days >= 363


def test_damaged_certificate_is_an_error_with_its_path(tmp_path: Path, server_pki: Pki) -> None:
    prepare(server_pki.config(), tmp_path, in_memory=True)
    block = base64.b64encode(b"no certificate").decode()
    damaged = tmp_path / "pki/front-proxy-client.crt"
    damaged.write_text(f"-----BEGIN CERTIFICATE-----\n{block}\n-----END CERTIFICATE-----\n")
    with pytest.raises(ValueError, match=r"front-proxy-client\.crt is damaged"):
        prepare(server_pki.config(), tmp_path, in_memory=True)
