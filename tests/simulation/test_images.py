"""Images that cannot be pulled."""

from __future__ import annotations

from typing import Any

import pytest

from kubist.cluster.simulation.container_machine import is_missing, name_problem
from kubist.testing import Cluster
from tests.simulation.pods import SimulatedPod, container


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


DIGEST = "sha256:" + "0a" * 32


@pytest.mark.parametrize(
    ("image", "problem"),
    [
        ("nginx", ""),
        ("team/web_app--x:V1.2_3", ""),
        ("REGISTRY/web", ""),
        ("localhost/web", ""),
        ("[::1]:5000/web", ""),
        (f"registry.example.com:5000/team/nginx:1@{DIGEST}", ""),
        ("Nginx", "invalid reference format: repository name (library/Nginx) must be lowercase"),
        ("example.com/Web:1", "invalid reference format: repository name (Web) must be lowercase"),
        ("web:1:2", "invalid reference format"),
        ("web:", "invalid reference format"),
        ("web@sha256:abc", "invalid reference format"),
        ("https://example.com/web", "invalid reference format"),
        ("web app", "invalid reference format"),
        ("-web", "invalid reference format"),
        ("a" * 256, "repository name must not be more than 255 characters"),
        ("0a" * 32, f"invalid repository name ({'0a' * 32}), cannot specify 64-byte hexadecimal strings"),
    ],
)
def test_names_that_a_kubelet_can_parse(image: str, problem: str) -> None:
    assert name_problem(image) == problem


def test_container_with_a_malformed_image_name_waits() -> None:
    pod = SimulatedPod(container(image="Nginx:1")).settle()
    message = (
        'Failed to apply default image tag "Nginx:1": '
        'couldn\'t parse image name "Nginx:1": '
        "invalid reference format: repository name (library/Nginx) must be lowercase"
    )
    assert pod.held()["state"] == {"waiting": {"reason": "InvalidImageName", "message": message}}
    assert [(event.reason, event.message) for event in pod.events] == [
        ("InspectFailed", message),
        ("Failed", "Error: InvalidImageName"),
    ]
    assert (pod.phase, len(pod.history)) == ("Pending", 1)


def test_missing_image_that_is_never_pulled() -> None:
    pod = SimulatedPod(container(image="web:no-such-tag", imagePullPolicy="Never")).settle()
    message = 'Container image "web:no-such-tag" is not present with pull policy of Never'
    assert [(event.reason, event.message) for event in pod.events] == [
        ("ErrImageNeverPull", message),
        ("Failed", "Error: ErrImageNeverPull"),
    ]


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
