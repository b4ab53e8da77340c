"""Client certificates and tokens on a server whose clock is moved: dates follow the clock, in both directions."""

from __future__ import annotations

import http.client
import json
import ssl
from pathlib import Path
from typing import Any

import pytest

from kubist.base.http.tls import certificates
from kubist.testing import Cluster

SELF = "/apis/authentication.k8s.io/v1/selfsubjectreviews"


class Client:
    """Kept-alive connection with a client certificate."""

    def __init__(self, cluster: Cluster, certificate: Path, key: Path) -> None:
        context = ssl.create_default_context(cafile=cluster.ca)
        context.load_cert_chain(certificate, key)
        self._connection = http.client.HTTPSConnection("127.0.0.1", cluster.port, context=context, timeout=20)
        cluster.close_later(self._connection.close)

    def ask(self, method: str, path: str, body: object = None) -> tuple[int, Any]:
        sent = None if body is None else json.dumps(body)
        self._connection.request(method, path, sent, {"Content-Type": "application/json"})
        answer = self._connection.getresponse()
        return answer.status, json.loads(answer.read())

    def whoami(self) -> str:
        code, body = self.ask("POST", SELF, {})
        return str(body["status"]["userInfo"]["username"]) if code == 201 else str(code)


def pki(cluster: Cluster) -> Path:
    return Path(cluster.inner.config.cert_dir)


@pytest.fixture
def jane(cluster: Cluster, tmp_path: Path) -> Client:
    """User whose certificate is valid for two days."""
    authority = certificates.load_authority(pki(cluster) / "ca.crt", pki(cluster) / "ca.key")
    files = tmp_path / "jane.crt", tmp_path / "jane.key"
    certificates.save(authority.issue_client("jane", days=2), *files)
    return Client(cluster, *files)


def test_certificate_is_valid_between_its_dates(cluster: Cluster, jane: Client) -> None:
    assert jane.whoami() == "jane"
    cluster.clock.advance("72h")
    assert jane.whoami() == "401"
    cluster.clock.reset()
    assert jane.whoami() == "jane"
    cluster.clock.set("2020-01-01T00:00:00Z")
    assert jane.whoami() == "401"
    cluster.clock.reset()
    assert jane.whoami() == "jane"


def test_token_is_not_valid_before_it_was_issued(cluster: Cluster) -> None:
    account = cluster.service_account("operator")
    review = {"spec": {"token": account.token}}
    path = "/apis/authentication.k8s.io/v1/tokenreviews"
    assert cluster.request("POST", path, review)["status"]["authenticated"]
    cluster.clock.set("2020-01-01T00:00:00Z")
    assert "not valid yet" in cluster.request("POST", path, review)["status"]["error"]
    cluster.clock.reset()
    assert cluster.request("POST", path, review)["status"]["authenticated"]


def test_administrator_of_the_server_is_never_locked_out(cluster: Cluster) -> None:
    admin = Client(cluster, pki(cluster) / "admin.crt", pki(cluster) / "admin.key")
    for moment in ("2090-01-01T00:00:00Z", "1990-01-01T00:00:00Z"):
        assert admin.ask("PUT", "/kubist/v1/clock", {"now": moment})[0] == 200
        assert admin.whoami() == "kubernetes-admin"
    assert admin.ask("DELETE", "/kubist/v1/clock")[0] == 200


def test_control_api_checks_certificates_by_real_time(cluster: Cluster, tmp_path: Path) -> None:
    authority = certificates.load_authority(pki(cluster) / "ca.crt", pki(cluster) / "ca.key")
    files = tmp_path / "root.crt", tmp_path / "root.key"
    certificates.save(authority.issue_client("root", ["system:masters"], days=2), *files)
    root = Client(cluster, *files)
    assert root.ask("PUT", "/kubist/v1/clock", {"advance": "72h"})[0] == 200
    assert root.whoami() == "401"
    assert root.ask("GET", "/kubist/v1/clock")[0] == 200
    assert root.whoami() == "401"
    assert root.ask("DELETE", "/kubist/v1/clock")[0] == 200
    assert root.whoami() == "root"


def test_fork_with_a_moved_clock_checks_certificates_by_it(cluster: Cluster, tmp_path: Path) -> None:
    cluster.clock.set("2090-01-01T00:00:00Z")
    with cluster.fork() as fork:
        admin = Client(fork, pki(cluster) / "admin.crt", pki(cluster) / "admin.key")
        assert admin.whoami() == "kubernetes-admin"
        assert admin.ask("DELETE", "/kubist/v1/clock")[0] == 200
    assert cluster.clock.now.year == 2090
