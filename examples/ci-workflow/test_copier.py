"""Tests of the operator on a real API server, with the permissions of its manifests."""

from __future__ import annotations

from pathlib import Path

import pytest
from kubernetes import client

from copier import ANNOTATION, reconcile

HERE = Path(__file__).parent


@pytest.fixture
def core(cluster):
    """Client with the operator's own service account, so that a missing permission fails the tests."""
    cluster.load(HERE / "manifests")
    for name in ("shop", "office"):
        cluster.load({"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": name}})
    operator = cluster.service_account("copier", namespace="copier")
    return client.CoreV1Api(operator.clients.kubernetes)


def original(targets, color="green"):
    metadata = {"name": "colors", "annotations": {ANNOTATION: targets}}
    return {"apiVersion": "v1", "kind": "ConfigMap", "metadata": metadata, "data": {"color": color}}


def test_config_map_is_copied_and_updated(cluster, core):
    for color in ("green", "blue"):
        cluster.load(original("shop, office", color))
        reconcile(core)
        assert cluster.get("configmap/colors", "shop")["data"] == {"color": color}
        assert cluster.get("configmap/colors", "office")["data"] == {"color": color}


def test_copy_is_removed_with_its_target(cluster, core):
    cluster.load(original("shop,office"))
    reconcile(core)
    cluster.load(original("shop"))
    reconcile(core)
    assert cluster.get("configmap/colors", "shop")
    assert [each["metadata"]["name"] for each in cluster.list("configmaps", "office")] == ["kube-root-ca.crt"]
