"""Clients of a cluster in an environment with a proxy."""

from __future__ import annotations

import pytest

from kubist.testing import Cluster


@pytest.mark.parametrize("library", ["kubernetes", "lightkube"])
def test_clients_do_not_use_the_proxy_of_the_user(library: str, monkeypatch: pytest.MonkeyPatch) -> None:
    pytest.importorskip(f"{library}.config")
    for name in ("http_proxy", "https_proxy", "HTTPS_PROXY", "all_proxy"):
        monkeypatch.setenv(name, "http://127.0.0.1:9")
    for name in ("no_proxy", "NO_PROXY"):
        monkeypatch.delenv(name, raising=False)
    with Cluster() as cluster:
        made = getattr(cluster.clients, library)
        if library == "kubernetes":
            from kubernetes import client

            assert client.CoreV1Api(made).list_namespace().items
        else:
            from lightkube.resources.core_v1 import Namespace  # type: ignore[import-not-found, unused-ignore]

            assert made.get(Namespace, "default").metadata.name == "default"
