"""Authorization modes Node, ABAC, AlwaysAllow and AlwaysDeny, and the order of modes."""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from kubist.api.filters.from_config import authorization
from tests.filters.askers import Person, ask, body_of
from tests.live import Client, Live, Pki


@pytest.fixture(scope="module")
def nodes(server_pki: Pki) -> Iterator[Live]:
    """Cluster of two nodes. The first runs a pod that refers to several objects."""
    with Live(server_pki, authorization_mode=("Node", "RBAC")) as live:
        admin = live.client
        for name in ("one", "two"):
            admin.post("/api/v1/nodes", {"metadata": {"name": name}})
        for kind in ("secrets", "configmaps", "serviceaccounts"):
            for name in ("needed", "other"):
                admin.post(f"/api/v1/namespaces/default/{kind}", {"metadata": {"name": name}})
        env = [{"name": "A", "valueFrom": {"configMapKeyRef": {"name": "needed", "key": "k"}}}]
        spec = {
            "nodeName": "one",
            "serviceAccountName": "needed",
            "containers": [{"name": "c", "image": "i", "env": env}],
            "volumes": [
                {"name": "s", "secret": {"secretName": "needed"}},
                {"name": "p", "persistentVolumeClaim": {"claimName": "needed"}},
            ],
        }
        admin.post("/api/v1/namespaces/default/pods", {"metadata": {"name": "p"}, "spec": spec})
        yield live
        admin.close()


def node(live: Live, name: str) -> Person:
    return Person(
        live, "admin-token", Impersonate_User=f"system:node:{name}", Impersonate_Group="system:nodes"
    )


DEFAULT = "/api/v1/namespaces/default"


@pytest.mark.parametrize(
    ("who", "method", "path", "allowed"),
    [
        ("one", "GET", f"{DEFAULT}/secrets/needed", True),
        ("one", "GET", f"{DEFAULT}/secrets?fieldSelector=metadata.name%3Dneeded", True),
        ("one", "GET", f"{DEFAULT}/secrets/other", False),
        ("one", "GET", f"{DEFAULT}/secrets", False),
        ("one", "DELETE", f"{DEFAULT}/secrets/needed", False),
        ("two", "GET", f"{DEFAULT}/secrets/needed", False),
        ("one", "GET", f"{DEFAULT}/configmaps/needed", True),
        ("one", "GET", f"{DEFAULT}/configmaps/other", False),
        ("one", "GET", f"{DEFAULT}/persistentvolumeclaims/needed", True),
        ("one", "GET", f"{DEFAULT}/serviceaccounts/needed", True),
        ("one", "POST", f"{DEFAULT}/serviceaccounts/needed/token", True),
        ("one", "POST", f"{DEFAULT}/serviceaccounts/other/token", False),
        ("one", "GET", f"{DEFAULT}/pods/p", True),
        ("two", "GET", f"{DEFAULT}/pods/p", False),
        ("one", "GET", "/api/v1/pods?fieldSelector=spec.nodeName%3Done", True),
        ("one", "GET", "/api/v1/pods?fieldSelector=spec.nodeName%3Dtwo", False),
        ("one", "GET", "/api/v1/pods", False),
        ("one", "GET", "/api/v1/nodes/one", True),
        ("one", "GET", "/api/v1/nodes/two", False),
        ("one", "GET", "/api/v1/nodes", False),
        ("one", "GET", "/apis/coordination.k8s.io/v1/namespaces/kube-node-lease/leases/one", True),
        ("one", "GET", "/apis/coordination.k8s.io/v1/namespaces/kube-node-lease/leases/two", False),
        ("one", "GET", "/apis/coordination.k8s.io/v1/namespaces/default/leases/one", False),
        ("one", "GET", "/apis/storage.k8s.io/v1/csinodes/one", True),
        ("one", "GET", "/apis/storage.k8s.io/v1/csinodes/two", False),
        ("one", "GET", "/api/v1/services", True),
        ("one", "GET", "/apis/apps/v1/deployments", False),
    ],
)
def test_node_may_read_objects_of_its_pods(
    nodes: Live, who: str, method: str, path: str, allowed: bool
) -> None:
    answer = node(nodes, who).ask(method, path, {} if method == "POST" else None)
    assert (answer.status != 403) is allowed, answer


def test_node_loses_access_when_the_pod_is_deleted(nodes: Live) -> None:
    admin = nodes.client
    spec: Any = {
        "nodeName": "two",
        "containers": [{"name": "c", "image": "i", "envFrom": [{"secretRef": {"name": "other"}}]}],
    }
    two = node(nodes, "two")
    assert two.ask("GET", f"{DEFAULT}/secrets/other").status == 403
    admin.post(f"{DEFAULT}/pods", {"metadata": {"name": "q"}, "spec": spec})
    assert two.ask("GET", f"{DEFAULT}/secrets/other").status == 200
    admin.delete(f"{DEFAULT}/pods/q", {"gracePeriodSeconds": 0})
    refused = two.ask("GET", f"{DEFAULT}/secrets/other")
    assert "no relationship found between node 'two' and this object" in refused.json["message"]


def test_node_may_read_secrets_of_mounted_volumes(nodes: Live) -> None:
    admin: Client = nodes.client
    driver = {
        "driver": "d",
        "volumeHandle": "h",
        "nodeStageSecretRef": {"name": "vol", "namespace": "kube-system"},
    }
    volume = {
        "metadata": {"name": "v"},
        "spec": {
            "capacity": {"storage": "1Gi"},
            "accessModes": ["ReadWriteOnce"],
            "csi": driver,
            "claimRef": {"namespace": "default", "name": "needed"},
        },
    }
    admin.post("/api/v1/persistentvolumes", volume)
    admin.post("/api/v1/namespaces/kube-system/secrets", {"metadata": {"name": "vol"}})
    path = "/api/v1/namespaces/kube-system/secrets/vol"
    assert node(nodes, "one").ask("GET", path).status == 200
    assert node(nodes, "two").ask("GET", path).status == 403
    assert node(nodes, "one").ask("GET", "/api/v1/persistentvolumes/v").status == 200


POLICIES = """
# comment
{"apiVersion":"abac.authorization.kubernetes.io/v1beta1","kind":"Policy","spec":{"user":"dev","namespace":"*","resource":"pods","apiGroup":"*","readonly":true}}
{"apiVersion":"abac.authorization.kubernetes.io/v1beta1","kind":"Policy","spec":{"group":"devs","namespace":"default","resource":"*","apiGroup":""}}
{"apiVersion":"abac.authorization.kubernetes.io/v1beta1","kind":"Policy","spec":{"user":"*","nonResourcePath":"/api*","readonly":true}}
"""


def test_abac_policies(server_pki: Pki, tmp_path: Path) -> None:
    (tmp_path / "abac").write_text(POLICIES)
    flags = {"authorization_mode": ("ABAC",), "authorization_policy_file": str(tmp_path / "abac")}
    with Live(server_pki, **flags) as live:
        expected = {
            ("GET", "/api/v1/pods"): 200,
            ("DELETE", f"{DEFAULT.replace('default', 'other')}/pods"): 403,
            ("GET", f"{DEFAULT}/configmaps"): 200,
            ("DELETE", f"{DEFAULT}/configmaps"): 200,
            ("GET", "/apis/apps/v1/namespaces/default/deployments"): 403,
            ("GET", "/apis"): 200,
            ("GET", "/version"): 403,
        }
        for (method, path), status in expected.items():
            assert ask(live, method, path, "dev-token").status == status, path
        refused = ask(live, "GET", "/version", "dev-token")
        assert b"No policy matched." in body_of(refused)


def test_broken_abac_policy_file_is_rejected(tmp_path: Path) -> None:
    from kubist.api.filters.authorization.abac import ABAC

    (tmp_path / "abac").write_text(json.dumps({"apiVersion": "v1", "kind": "Pod"}))
    with pytest.raises(ValueError, match="line 1"):
        ABAC(str(tmp_path / "abac"))


@pytest.mark.parametrize(
    ("modes", "status"),
    [
        (("AlwaysAllow",), 200),
        (("AlwaysDeny",), 403),
        (("AlwaysDeny", "AlwaysAllow"), 200),
        (("RBAC", "AlwaysAllow"), 200),
    ],
)
def test_first_mode_with_an_opinion_decides(server_pki: Pki, modes: tuple[str, ...], status: int) -> None:
    with Live(server_pki, authorization_mode=modes) as live:
        assert ask(live, "GET", "/api/v1/secrets", "dev-token").status == status
        assert ask(live, "GET", "/api/v1/secrets", "admin-token").status == 200
        assert ask(live, "GET", "/api/v1/secrets").status == (401 if "AlwaysAllow" in modes else 403)


def test_unknown_mode_is_rejected(server_pki: Pki, shared_live: Live) -> None:
    config = server_pki.config(authorization_mode=("Sometimes",))
    with pytest.raises(ValueError, match="Sometimes"):
        authorization(config, shared_live.server.registry)
