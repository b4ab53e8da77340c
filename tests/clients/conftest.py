"""Server for real clients, and their kubeconfig."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from tests.crd.defining import definition, version
from tests.live import Client, Live

_SCHEMA = {
    "type": "object",
    "properties": {
        "spec": {"type": "object", "properties": {"size": {"type": "integer"}}},
        "status": {"type": "object", "x-kubernetes-preserve-unknown-fields": True},
    },
}
_NAMES = {"plural": "widgets", "singular": "widget", "kind": "Widget", "shortNames": ["wd"]}
CRD = definition("Widget", "example.com", version(schema=_SCHEMA, subresources={"status": {}}), names=_NAMES)


@pytest.fixture(scope="session")
def kubeconfig(shared_live: Live, tmp_path_factory: pytest.TempPathFactory) -> Path:
    where = tmp_path_factory.mktemp("clients")
    return shared_live.pki.kubeconfig(shared_live.server.port, where / "kubeconfig")


@pytest.fixture(autouse=True)
def home(kubeconfig: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Makes clients use this kubeconfig, and its directory as home."""
    monkeypatch.setenv("KUBECONFIG", str(kubeconfig))
    monkeypatch.setenv("HOME", str(kubeconfig.parent))
    for name in [name for name in os.environ if name.lower().endswith("_proxy")]:
        monkeypatch.delenv(name)


@pytest.fixture(scope="session")
def widgets(shared_live: Live) -> str:
    """Creates a CRD. Returns the path of its group and version."""
    client: Client = shared_live.client
    client.post("/apis/apiextensions.k8s.io/v1/customresourcedefinitions", CRD)
    for _ in range(300):
        if client.ask("GET", "/apis/example.com/v1/widgets").status == 200:
            break
    return "/apis/example.com/v1"
