"""The rules of the webhook, behind a real API server."""

import base64
import json

import pytest
import webhook

from kubist.testing import Refused


def deployment(image: str) -> dict:
    template = {
        "metadata": {"labels": {"app": "web"}},
        "spec": {"containers": [{"name": "web", "image": image}]},
    }
    spec = {"selector": {"matchLabels": {"app": "web"}}, "template": template}
    return {"apiVersion": "apps/v1", "kind": "Deployment", "metadata": {"name": "web"}, "spec": spec}


@pytest.fixture
def hooks(cluster):
    cluster.mutating_webhook("deployments.apps")(webhook.add_team)
    return cluster.validating_webhook("deployments.apps")(webhook.require_versions)


def test_deployment_gets_a_team(cluster, hooks):
    cluster.load(deployment("nginx:1.29"))
    assert cluster.get("deployment/web")["metadata"]["labels"] == {"team": "platform"}


@pytest.mark.parametrize("image", ["nginx", "nginx:latest"])
def test_image_without_a_version_is_rejected(cluster, hooks, image):
    with pytest.raises(Refused, match=f"image {image} of container web needs a version"):
        cluster.load(deployment(image))
    assert cluster.list("deployments") == []


def test_update_is_checked_as_well(cluster, hooks):
    cluster.load(deployment("nginx:1.29"))
    with pytest.raises(Refused, match="needs a version"):
        cluster.load(deployment("nginx"))
    assert [call.operation for call in hooks.calls] == ["CREATE", "UPDATE"]


def test_response_of_the_server():
    """The form in which a real cluster gets the same rules."""
    answer = webhook.review("/mutate", {"uid": "1", "object": deployment("nginx:1.29")})["response"]
    patch = json.loads(base64.b64decode(answer["patch"]))
    assert patch == [{"op": "add", "path": "/metadata/labels", "value": {"team": "platform"}}]
    assert (
        webhook.review("/validate", {"uid": "1", "object": deployment("nginx")})["response"]["allowed"]
        is False
    )
