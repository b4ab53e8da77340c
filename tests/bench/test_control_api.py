"""Control API: access, unknown paths and methods, and where it is served."""

from __future__ import annotations

import pytest

from kubist.testing import Cluster
from kubist.testing.cluster import Refused
from tests.live import Client, Live, Pki


def test_unknown_paths_and_methods_are_errors(cluster: Cluster) -> None:
    for method, path, code in (
        ("GET", "/kubist/v1/nothing", 404),
        ("GET", "/kubist/v1/clock/more", 404),
        ("GET", "/kubist/v1/", 404),
        ("POST", "/kubist/v1/clock", 405),
    ):
        with pytest.raises(Refused) as refused:
            cluster.request(method, path)
        assert refused.value.code == code
        assert refused.value.status["kind"] == "Status"


@pytest.mark.parametrize("content_type", ["application/yaml", "application/vnd.kubernetes.protobuf"])
def test_other_media_types_are_rejected(cluster: Cluster, content_type: str) -> None:
    with pytest.raises(Refused, match="send application/json") as refused:
        cluster.request("PUT", "/kubist/v1/clock", {"advance": "1h"}, content_type)
    assert (refused.value.code, refused.value.status["reason"]) == (415, "UnsupportedMediaType")


def test_field_that_comes_twice_is_rejected(cluster: Cluster) -> None:
    headers = {"Authorization": f"Bearer {cluster.token}", "Content-Type": "application/json"}
    body = '{"verb": "get", "status": 500, "status": 409}'
    code, answer = cluster._connections.send("POST", "/kubist/v1/faults", body, headers)[:2]
    assert code == 400 and b'the body has the field \\"status\\" twice' in answer
    assert len(cluster.faults) == 0


def test_nothing_of_it_is_in_the_index_of_paths_or_in_discovery(cluster: Cluster) -> None:
    assert not [path for path in cluster.request("GET", "/")["paths"] if "kubist" in path]
    assert "kubist" not in str(cluster.request("GET", "/openapi/v3"))


def test_access_needs_a_rule_for_the_path(server_pki: Pki) -> None:
    with Live(server_pki, test_bench=True, authorization_mode=("RBAC",)) as live:
        user = Client(live.server.port, server_pki, "dev-token")
        assert user.ask("GET", "/kubist/v1/clock").status == 403
        role = {
            "metadata": {"name": "clock"},
            "rules": [{"nonResourceURLs": ["/kubist/v1/clock"], "verbs": ["get"]}],
        }
        binding = {
            "metadata": {"name": "clock"},
            "roleRef": {"apiGroup": "rbac.authorization.k8s.io", "kind": "ClusterRole", "name": "clock"},
            "subjects": [{"kind": "User", "apiGroup": "rbac.authorization.k8s.io", "name": "dev"}],
        }
        rbac = "/apis/rbac.authorization.k8s.io/v1"
        live.client.post(f"{rbac}/clusterroles", role)
        live.client.post(f"{rbac}/clusterrolebindings", binding)
        assert user.ask("GET", "/kubist/v1/clock").status == 200
        assert user.ask("PUT", "/kubist/v1/clock", {"advance": "1h"}).status == 403
        user.close()


def test_bare_server_has_none(live: Live) -> None:
    assert live.server.bench is None
    assert live.client.ask("GET", "/kubist/v1/clock").status == 404
