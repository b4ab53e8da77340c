"""Ownership: Stages and the simulated kubelet never drive the same pod."""

from __future__ import annotations

from typing import Any
from unittest.mock import MagicMock

from kubist.api.object_client import ObjectClient
from kubist.cluster.control.staging import claim, governs, release

POD: dict[str, Any] = {"metadata": {"name": "web", "labels": {"app": "web"}}}


def client() -> ObjectClient:
    """Client of a server of its own."""
    services = MagicMock(spec=["clock", "config", "registry", "resources"])
    return ObjectClient(services)


def test_nothing_is_governed_without_stages() -> None:
    assert not governs(client(), "pods", POD)


def test_rule_decides_for_its_own_server_only() -> None:
    first, second = client(), client()
    claim(first, lambda resource, obj: resource == "pods" and obj["metadata"]["labels"]["app"] == "web")
    assert governs(first, "pods", POD)
    assert not governs(first, "nodes", POD)
    assert not governs(second, "pods", POD)


def test_released_rule_decides_no_more() -> None:
    server = client()
    claim(server, lambda _resource, _obj: True)
    release(server)
    assert not governs(server, "pods", POD)
