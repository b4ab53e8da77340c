"""Images that cannot be pulled."""

from __future__ import annotations

from typing import Any

import pytest

from kubist.simulation.images import is_missing
from kubist.testing import Cluster


@pytest.mark.parametrize(
    ("image", "missing"),
    [
        ("nginx", False),
        ("nginx:1.2", False),
        ("registry.example.com:5000/team/nginx@sha256:abc", False),
        ("webserver:404", True),
        ("errors/404:1", False),
        ("foo:non-existent", True),
        ("foo:nonexistent", True),
        ("registry:5000/foo:does-not-exist", True),
        ("foo:v1-does-not-exist-yet", True),
        ("example.com/no-such-image:1", True),
        ("nonexistent.example.com/app:1", False),
        ("existent", False),
    ],
)
def test_name_or_tag_says_that_an_image_does_not_exist(image: str, missing: bool) -> None:
    assert is_missing(image) is missing


def pod(name: str, **annotations: str) -> dict[str, Any]:
    metadata = {"name": name, "annotations": annotations}
    spec = {"containers": [{"name": "c", "image": "foo:non-existent"}]}
    return {"apiVersion": "v1", "kind": "Pod", "metadata": metadata, "spec": spec}


@pytest.mark.kubist(workloads=True)
def test_pod_of_a_missing_image_waits_until_its_image_changes(cluster: Cluster) -> None:
    cluster.load(pod("p"), pod("scripted", **{"kubist.io/outcome": "run"}))
    cluster.wait("pod/scripted", "Ready")

    def reason(held: dict[str, Any]) -> str:
        statuses = held["status"].get("containerStatuses") or [{"state": {}}]
        return str((statuses[0]["state"].get("waiting") or {}).get("reason"))

    cluster.wait("pod/p", lambda held: reason(held) in ("ErrImagePull", "ImagePullBackOff"))
    body = [{"op": "replace", "path": "/spec/containers/0/image", "value": "foo:1"}]
    path = "/api/v1/namespaces/default/pods/p"
    cluster.request("PATCH", path, body, content_type="application/json-patch+json")
    cluster.wait("pod/p", "Ready")
