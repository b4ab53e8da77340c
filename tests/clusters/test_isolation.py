"""Isolation: credentials of one cluster are worthless in another cluster and on the host, and the other way round."""

from __future__ import annotations

import base64
import http.client
import json
import ssl
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import cast

import pytest
from cryptography import x509
from cryptography.hazmat.primitives import hashes
from cryptography.hazmat.primitives.asymmetric import ec
from cryptography.hazmat.primitives.serialization import Encoding
from cryptography.x509.oid import NameOID

from kubist.base.http.tls import certificates
from kubist.model.meta.object import Object
from kubist.server.clusters.hosting import Hosting
from kubist.testing import Cluster
from kubist.testing.hosted_clusters import LogicalCluster

PUBLIC = {"/version", "/healthz", "/livez", "/readyz"}
"""Paths that anonymous clients may read in every Kubernetes cluster."""
READS = (
    "/",
    "/api",
    "/api/v1",
    "/api/v1/namespaces",
    "/api/v1/namespaces/default/secrets",
    "/api/v1/namespaces/default/configmaps/kube-root-ca.crt",
    "/api/v1/configmaps?watch=1&timeoutSeconds=1",
    "/api/v1/namespaces/default/pods/p/log",
    "/api/v1/namespaces/default/pods/p/exec?command=ls&stdout=1",
    "/api/v1/namespaces/default/pods/p/portforward",
    "/api/v1/namespaces/default/services/kubernetes/proxy/",
    "/api/v1/nodes/n/proxy/",
    "/apis",
    "/apis/apps/v1/deployments",
    "/apis/example.com/v1/widgets",
    "/apis/metrics.k8s.io/v1beta1/nodes",
    "/openapi/v2",
    "/openapi/v3",
    "/openapi/v3/api/v1",
    "/version",
    "/healthz",
    "/livez",
    "/readyz",
    "/readyz/etcd",
    "/metrics",
    "/metrics/slis",
    "/debug/pprof/",
    "/debug/flags/v",
    "/flagz",
    "/statusz",
    "/.well-known/openid-configuration",
    "/openid/v1/jwks",
    "/kubist/v1/openapi.json",
    "/kubist/v1/clock",
    "/kubist/v1/faults",
    "/kubist/v1/users",
    "/kubist/v1/clusters",
    "/kubist/v1/clusters/a/kubeconfig",
    "/no/such/path",
)
NAMESPACE = json.dumps({"metadata": {"name": "intruder"}})
WRITES = (
    ("POST", "/api/v1/namespaces", NAMESPACE),
    ("PUT", "/api/v1/namespaces/default", NAMESPACE),
    ("PATCH", "/api/v1/namespaces/default", "{}"),
    ("DELETE", "/api/v1/namespaces/default", ""),
    ("DELETE", "/api/v1/namespaces/default/configmaps", ""),
    ("POST", "/api/v1/namespaces/default/serviceaccounts/default/token", "{}"),
    ("POST", "/apis/authentication.k8s.io/v1/tokenreviews", "{}"),
    ("POST", "/apis/authentication.k8s.io/v1/selfsubjectreviews", "{}"),
    ("POST", "/apis/authorization.k8s.io/v1/selfsubjectaccessreviews", "{}"),
    ("PUT", "/kubist/v1/clock", '{"advance": "1h"}'),
    ("POST", "/kubist/v1/faults", '{"status": 500}'),
    ("POST", "/kubist/v1/users", '{"name": "intruder"}'),
    ("POST", "/kubist/v1/clusters", "{}"),
    ("DELETE", "/kubist/v1/clusters/a", ""),
    ("PUT", "/debug/flags/v", "5"),
)


@dataclass
class Certificate:
    """Files of a client certificate and its key."""

    path: Path
    key: Path


@dataclass
class Party:
    """The host or a cluster, with credentials of all kinds."""

    cluster: Cluster
    prefix: str
    tokens: dict[str, str]
    certificate: Certificate


def saved(pair: certificates.Pair, directory: Path, name: str) -> Certificate:
    made = Certificate(directory / f"{name}.crt", directory / f"{name}.key")
    certificates.save(pair, made.path, made.key)
    return made


def files_of(host: Cluster, name: str) -> Path:
    hosting = cast("Hosting", host.inner)
    assert hosting.clusters is not None
    return hosting.clusters.by_name[name].directory / "pki"


def party(cluster: Cluster, pki: Path, directory: Path) -> Party:
    name = cluster.name if isinstance(cluster, LogicalCluster) else "host"
    authority = certificates.load_authority(pki / "ca.crt", pki / "ca.key")
    pair = authority.issue_client("eve", ["system:masters"])
    tokens = {
        "admin": cluster.token,
        "service account": cluster.service_account("operator", rules=[ALL]).token,
        "user": cluster.user("alice", groups=["system:masters"]).token,
    }
    return Party(cluster, cluster._prefix, tokens, saved(pair, directory, name))


ALL = {"apiGroups": ["*"], "resources": ["*"], "verbs": ["*"]}


@pytest.fixture(scope="module")
def parties(host: Cluster, tmp_path_factory: pytest.TempPathFactory) -> Iterator[dict[str, Party]]:
    directory = tmp_path_factory.mktemp("certificates")
    with host.clusters.create("a") as a, host.clusters.create("b", storage="disk") as b:
        yield {
            "host": party(host, Path(host.config.data_dir) / "pki", directory),
            "a": party(a, files_of(host, "a"), directory),
            "b": party(b, files_of(host, "b"), directory),
        }


@contextmanager
def connected(host: Cluster, certificate: Certificate | None = None) -> Iterator[http.client.HTTPSConnection]:
    context = ssl.create_default_context(cafile=str(host.ca))
    if certificate is not None:
        context.load_cert_chain(certificate.path, certificate.key)
    connection = http.client.HTTPSConnection("127.0.0.1", host.port, context=context, timeout=30)
    try:
        yield connection
    finally:
        connection.close()


def ask(
    connection: http.client.HTTPSConnection, method: str, path: str, body: str = "", token: str = ""
) -> tuple[int, bytes]:
    headers = {"Authorization": f"Bearer {token}"} if token else {}
    if body:
        headers["Content-Type"] = "application/merge-patch+json" if method == "PATCH" else "application/json"
    connection.request(method, path, body or None, headers)
    response = connection.getresponse()
    return response.status, response.read()


def every_request() -> list[tuple[str, str, str]]:
    return [("GET", path, "") for path in READS] + list(WRITES)


PAIRS = [(one, other) for one in ("host", "a", "b") for other in ("host", "a", "b") if one != other]


@pytest.mark.parametrize(("owner", "target"), PAIRS)
@pytest.mark.parametrize("kind", ["admin", "service account", "user"])
def test_foreign_tokens_are_rejected_everywhere(
    host: Cluster, parties: dict[str, Party], owner: str, target: str, kind: str
) -> None:
    token, prefix = parties[owner].tokens[kind], parties[target].prefix
    with connected(host) as connection:
        for method, path, body in every_request():
            code, raw = ask(connection, method, prefix + path, body, token)
            assert code == 401, (method, path, raw)


@pytest.mark.parametrize(("owner", "target"), PAIRS)
def test_foreign_certificates_are_rejected_everywhere(
    host: Cluster, parties: dict[str, Party], owner: str, target: str
) -> None:
    with connected(host, parties[owner].certificate) as connection:
        for method, path, body in every_request():
            code, raw = ask(connection, method, parties[target].prefix + path, body)
            assert code == 401, (method, path, raw)
            # The verdict on a certificate is kept with the connection, for each cluster.
            code, raw = ask(connection, "GET", parties[owner].prefix + "/api/v1/namespaces/default")
            assert code == 200, raw


@pytest.mark.parametrize("target", ["a", "b"])
def test_anonymous_clients_read_public_paths_only(
    host: Cluster, parties: dict[str, Party], target: str
) -> None:
    with connected(host) as connection:
        for method, path, body in every_request():
            code, raw = ask(connection, method, parties[target].prefix + path, body)
            assert code == (200 if path in PUBLIC else 403), (method, path, raw)


@pytest.mark.parametrize("kind", ["admin", "service account", "user"])
def test_own_credentials_are_accepted(parties: dict[str, Party], kind: str) -> None:
    for each in parties.values():
        assert each.cluster.request("GET", "/api/v1/namespaces/default", token=each.tokens[kind])


def test_token_in_a_websocket_protocol_is_worthless_elsewhere(
    host: Cluster, parties: dict[str, Party]
) -> None:
    def upgrade(target: str, token: str) -> int:
        encoded = base64.urlsafe_b64encode(token.encode()).rstrip(b"=").decode()
        headers = {
            "Connection": "Upgrade",
            "Upgrade": "websocket",
            "Origin": "https://dashboard.example",
            "Sec-WebSocket-Version": "13",
            "Sec-WebSocket-Key": base64.b64encode(b"0123456789abcdef").decode(),
            "Sec-WebSocket-Protocol": f"base64url.bearer.authorization.k8s.io.{encoded}, base64.binary.k8s.io",
        }
        with connected(host) as connection:
            connection.request("GET", f"{parties[target].prefix}/api/v1/namespaces?watch=1", headers=headers)
            return connection.getresponse().status

    assert upgrade("a", parties["a"].tokens["admin"]) == 101
    assert upgrade("b", parties["a"].tokens["admin"]) == 401
    assert upgrade("host", parties["a"].tokens["admin"]) == 401
    assert upgrade("a", parties["host"].tokens["admin"]) == 401


@pytest.mark.parametrize("kind", ["admin", "service account", "user"])
def test_token_review_knows_no_foreign_token(parties: dict[str, Party], kind: str) -> None:
    for owner, target in PAIRS:
        body = {"spec": {"token": parties[owner].tokens[kind]}}
        path = "/apis/authentication.k8s.io/v1/tokenreviews"
        review = parties[target].cluster.request("POST", path, body)
        assert not review["status"].get("authenticated")


def test_paths_cannot_leave_a_cluster(host: Cluster, parties: dict[str, Party]) -> None:
    token, uid = (
        parties["a"].tokens["admin"],
        parties["b"].cluster.get("namespace/kube-system")["metadata"]["uid"],
    )
    with connected(host) as connection:
        for path in (
            "/clusters/a/../b/api/v1/namespaces/kube-system",
            "/clusters/a/%2e%2e/b/api/v1/namespaces/kube-system",
            "/clusters/a/..%2fb/api/v1/namespaces/kube-system",
            "/clusters/a//clusters/b/api/v1/namespaces/kube-system",
            "/clusters/a/clusters/b/api/v1/namespaces/kube-system",
            "/clusters/%62/api/v1/namespaces/kube-system",
            "/clusters//b/api/v1/namespaces/kube-system",
            "/clusters/B/api/v1/namespaces/kube-system",
            "/%63lusters/b/api/v1/namespaces/kube-system",
            "/api/../clusters/b/api/v1/namespaces/kube-system",
        ):
            code, raw = ask(connection, "GET", path, token=token)
            assert code in (301, 400, 401, 403, 404), (path, raw)
            assert uid not in raw.decode(), path


def test_clusters_have_no_clusters_and_no_profiles(parties: dict[str, Party]) -> None:
    a = parties["a"]
    with connected(a.cluster) as connection:
        for method, path in (
            ("GET", "/kubist/v1/clusters"),
            ("POST", "/kubist/v1/clusters"),
            ("GET", "/debug/pprof/profile"),
            ("PUT", "/debug/flags/v"),
            ("GET", "/clusters/b/api"),
        ):
            code, raw = ask(connection, method, a.prefix + path, token=a.tokens["admin"])
            assert code == 404, (path, raw)


def test_control_api_of_the_host_needs_rights(host: Cluster) -> None:
    with connected(host) as connection:
        for method, path in (
            ("GET", "/kubist/v1/clusters"),
            ("POST", "/kubist/v1/clusters"),
            ("GET", "/kubist/v1/clusters/a"),
            ("GET", "/kubist/v1/clusters/a/kubeconfig"),
            ("DELETE", "/kubist/v1/clusters/a"),
        ):
            assert ask(connection, method, path)[0] == 403
            token = host.service_account(f"weak-{len(path)}-{method.lower()}").token
            assert ask(connection, method, path, token=token)[0] == 403
    rules = [{"nonResourceURLs": ["/kubist/v1/clusters", "/kubist/v1/clusters/*"], "verbs": ["get", "post"]}]
    operator = host.user("cluster-operator", rules=rules)
    made = operator.request("POST", "/kubist/v1/clusters", {"name": "by-rule"})
    assert made["name"] == "by-rule"
    with connected(host) as connection:
        assert ask(connection, "DELETE", "/kubist/v1/clusters/by-rule", token=operator.token)[0] == 403
    host.clusters.delete("by-rule")


def test_certificate_that_a_cluster_signs_is_valid_there_only(
    host: Cluster, parties: dict[str, Party], tmp_path: Path
) -> None:
    key = ec.generate_private_key(ec.SECP256R1())
    name = x509.Name([x509.NameAttribute(NameOID.COMMON_NAME, "signed")])
    csr = x509.CertificateSigningRequestBuilder().subject_name(name).sign(key, hashes.SHA256())
    a = parties["a"].cluster
    path = "/apis/certificates.k8s.io/v1/certificatesigningrequests"
    body: Object = {
        "metadata": {"name": "signed"},
        "spec": {
            "request": base64.b64encode(csr.public_bytes(Encoding.PEM)).decode(),
            "signerName": "kubernetes.io/kube-apiserver-client",
            "usages": ["client auth"],
        },
    }
    made = a.request("POST", path, body)
    condition = {"type": "Approved", "status": "True", "reason": "test", "message": ""}
    a.request("PUT", f"{path}/signed/approval", made | {"status": {"conditions": [condition]}})
    signed = a.wait("csr/signed", lambda found: bool(found["status"].get("certificate")))
    pair = certificates.Pair(base64.b64decode(signed["status"]["certificate"]), certificates.key_pem(key))
    with connected(host, saved(pair, tmp_path, "signed")) as connection:
        code, raw = ask(connection, "GET", "/clusters/a/api/v1/namespaces")
        assert (code, b'User \\"signed\\"' in raw) == (403, True)
        assert ask(connection, "GET", "/clusters/b/api/v1/namespaces")[0] == 401
        assert ask(connection, "GET", "/api/v1/namespaces")[0] == 401
