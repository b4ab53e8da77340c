"""Fault rules spare the helpers of a test, unless they name the helpers' user agent."""

from __future__ import annotations

from typing import Any

import pytest

from kubist.model.meta.object import Object
from kubist.testing import Cluster, Refused
from tests.bench.fault_clients import MAPS, code, config_map
from tests.testing.widgets import CRD

DEPLOYMENT: Object = {
    "apiVersion": "apps/v1",
    "kind": "Deployment",
    "metadata": {"name": "web"},
    "spec": {
        "selector": {"matchLabels": {"app": "web"}},
        "template": {
            "metadata": {"labels": {"app": "web"}},
            "spec": {"containers": [{"name": "web", "image": "nginx"}]},
        },
    },
}


def test_rules_spare_the_helpers_of_a_test(cluster: Cluster) -> None:
    with cluster.faults.add(status=500) as fault:
        ann = cluster.user("ann", rules=[{"apiGroups": [""], "resources": ["configmaps"], "verbs": ["*"]}])
        made = cluster.create(config_map("a"))
        cluster.update(cluster.get(made) | {"data": {"x": "1"}})
        ann.patch("configmap/a", {"data": {"y": "2"}})
        cluster.load(CRD, DEPLOYMENT)
        cluster.scale("deployment/web", 2)
        cluster.wait("configmap/a", lambda found: found["data"] == {"x": "1", "y": "2"})
        assert [found["metadata"]["name"] for found in cluster.list("configmaps -l ''")] != []
        cluster.delete("configmap/a")
        assert fault.matches == 0
        assert code(cluster, "GET", MAPS) == 500
        assert fault.hits == 1


@pytest.mark.parametrize(
    "criteria",
    [
        {"user_agent": "kubist-testing"},
        {"user_agent": ["operator/", "kubist-"]},
        {"expression": "request.userAgent != 'operator/'"},
    ],
)
def test_rule_about_user_agents_acts_on_helpers(cluster: Cluster, criteria: dict[str, Any]) -> None:
    with cluster.faults.add(verb="get", resource="configmaps", status=503, **criteria) as fault:
        with pytest.raises(Refused) as error:
            cluster.get("configmap/a")
        assert error.value.code == 503 and fault.hits == 1


def test_recordings_have_the_requests_of_helpers(cluster: Cluster) -> None:
    with cluster.recording(resource="configmaps") as requests:
        cluster.list("configmaps")
    assert requests.count(agent="kubist-testing") == 1


def test_injected_failure_says_so(cluster: Cluster) -> None:
    message = "the server is currently unable to handle the request (injected by fault rule 1)"
    rule = cluster.faults.add(user_agent="kubist-testing", resource="configmaps", status=503)
    with rule, pytest.raises(Refused) as error:
        cluster.get("configmap/a")
    assert str(error.value) == message
    assert error.value.status["message"] == "the server is currently unable to handle the request"
    with pytest.raises(Refused) as error:
        cluster.get("configmap/a")
    assert str(error.value) == 'configmaps "a" not found'
