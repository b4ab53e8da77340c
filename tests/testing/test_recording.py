"""`cluster.recording()`: the requests of a test, with filters, counts and diffs."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from kubist.testing import Cluster
from kubist.testing.cluster import Refused
from kubist.testing.recording import RecordedRequest, Requests
from tests.bench.fault_clients import MAPS, ask, config_map, watching
from tests.waiting import wait_for

DEPLOYMENTS = "/apis/apps/v1/namespaces/default/deployments"
MERGE = "application/merge-patch+json"


def deployment(name: str = "web") -> dict[str, Any]:
    labels = {"app": name}
    pod = {"metadata": {"labels": labels}, "spec": {"containers": [{"name": "c", "image": "i"}]}}
    return {"metadata": {"name": name}, "spec": {"selector": {"matchLabels": labels}, "template": pod}}


def test_requests_are_a_sequence_with_filters_and_counts(cluster: Cluster) -> None:
    alice = cluster.user("alice", rules=[{"apiGroups": [""], "resources": ["configmaps"], "verbs": ["*"]}])
    with cluster.recording() as requests:
        cluster.request("POST", DEPLOYMENTS, deployment())
        cluster.request("PATCH", f"{DEPLOYMENTS}/web", {"spec": {"replicas": 3}}, MERGE)
        cluster.request("PATCH", f"{DEPLOYMENTS}/web/scale", {"spec": {"replicas": 4}}, MERGE)
        alice.request("POST", MAPS, config_map("mine"))
        with pytest.raises(Refused):
            alice.request("GET", DEPLOYMENTS)
        ask(cluster, "GET", f"{MAPS}/none", User_Agent="operator/2.1")
    assert len(requests) == 6
    assert [request.verb for request in requests.writes(to="deployments")] == ["create", "patch"]
    assert [request.verb for request in requests.writes(to=["deployments.apps", "deployments/scale"])] == [
        "create",
        "patch",
        "patch",
    ]
    assert len(requests.writes()) == 4 and len(requests.reads()) == 2
    assert [request.name for request in requests.by(user="alice").writes()] == ["mine"]
    assert [request.status for request in requests.by(agent="operator/")] == [404]
    assert [request.reason for request in requests.failed()] == ["Forbidden", "NotFound"]
    assert requests.count(verb="patch", resource="deployments") == 1
    assert requests.count(status=range(400, 500)) == 2 and requests.count(status=[403]) == 1
    assert requests.count(namespace="default", name="web") == 3 and requests.count(name="w*") == 3
    assert requests.count(namespace="other") == 0
    assert len(requests.reads(of="configmaps", status=404)) == 1
    assert requests[0].body["metadata"]["name"] == "web" and requests[-1].reason == "NotFound"
    assert isinstance(requests[1:3], Requests) and len(requests[1:3]) == 2
    assert requests.dropped == 0


def test_attributes_of_a_request(cluster: Cluster) -> None:
    with cluster.recording() as requests:
        cluster.request("PATCH", f"{MAPS}/kube-root-ca.crt", {"data": {"x": "1"}}, MERGE)
    [request] = requests
    assert (request.user, request.user_agent, request.method) == ("admin", "kubist-testing", "PATCH")
    assert (request.resource, request.group, request.subresource) == ("configmaps", "", "")
    assert request.patch == {"data": {"x": "1"}} and request.patch_type == MERGE and request.body is None
    assert request.before is not None and "x" not in request.before["data"]
    assert request.after is not None and request.after["data"]["x"] == "1"
    assert request.response["kind"] == "ConfigMap" and request.status == 200 and request.reason == ""
    assert request.time.tzinfo is not None and request.duration > 0 and "system:masters" in request.groups
    assert request.path == f"{MAPS}/kube-root-ca.crt" and request.query == ""


def test_diff_of_a_write(cluster: Cluster) -> None:
    cluster.load(config_map("a", x="1", gone="yes"))
    with cluster.recording() as requests:
        cluster.request("PATCH", f"{MAPS}/a", {"data": {"x": "2", "gone": None, "y.z": "3"}}, MERGE)
        cluster.delete("cm/a")
    change, removal = requests
    assert change.diff().splitlines() == ["- data.gone: yes", "~ data.x: 1 -> 2", "+ data[y.z]: 3"]
    assert "- data.x: 2" in removal.diff().splitlines()
    assert requests.diff().startswith("patch configmaps default/a\n  - data.gone: yes\n")


def test_reprs_are_readable(cluster: Cluster) -> None:
    with cluster.recording() as requests:
        assert repr(requests) == "<0 requests>"
        ask(cluster, "GET", f"{MAPS}/none?pretty=1", User_Agent="operator/2.1")
        cluster.request("GET", "/version")
    text = "<get configmaps default/none ?pretty=1 -> 404 NotFound, by admin (operator/2.1)>"
    assert repr(requests[0]) == text
    assert repr(requests[1]) == "<get /version -> 200, by admin (kubist-testing)>"
    assert repr(requests).splitlines()[:2] == ["<2 requests:", f"  {text}"]
    many = Requests([requests[0]] * 30, dropped=2)
    assert "… and 10 more" in repr(many) and "2 more were dropped" in repr(many)


def test_iterating_works_while_the_recording_runs(cluster: Cluster) -> None:
    with cluster.recording(resource="configmaps") as requests:
        cluster.list("cm")
        for number, _ in enumerate(requests):
            assert number == 0
            cluster.list("cm")
        assert len(requests) == 2
        with watching(cluster):
            assert requests[-1].is_open
        wait_for(lambda: not requests[-1].is_open)
        assert requests[-1].verb == "watch" and requests[-1].events >= 1
        cluster.list("secrets")
    assert len(requests) == 3
    cluster.list("cm")
    assert len(requests) == 3


def test_limits_and_filters_of_a_recording(cluster: Cluster) -> None:
    with cluster.recording(verb=("list", "get"), max_entries=1) as requests:
        cluster.load(config_map("a"))
        cluster.list("cm")
        cluster.list("cm")
        assert requests.dropped == 1
    assert [request.verb for request in requests] == ["list"] and requests.dropped == 1


def test_mistakes_are_named(cluster: Cluster) -> None:
    with pytest.raises(Refused, match="verb: Invalid value"):
        cluster.recording(verb="gets")
    with (
        cluster.recording() as requests,
        pytest.raises(ValueError, match="resource 'Pods' must be the lower-case"),
    ):
        requests.writes(to="Pods")


def test_stopped_cluster_and_ended_recording_keep_their_requests(cluster: Cluster) -> None:
    with cluster.recording() as requests:
        cluster.list("cm")
        assert len(requests) == 1
        cluster.request("DELETE", f"/kubist/v1/recordings/{requests.id}")
        assert len(requests) == 1
    with cluster.recording() as requests:
        cluster.list("cm")
        assert len(requests) == 1
        cluster.stop()
        assert len(requests) == 1


def test_saved_file_has_a_line_for_each_request(cluster: Cluster, tmp_path: Path) -> None:
    with cluster.recording(max_entries=1) as requests:
        cluster.list("cm")
        cluster.list("cm")
    requests.save(tmp_path / "r.jsonl")
    first, last = map(json.loads, (tmp_path / "r.jsonl").read_text().splitlines())
    assert RecordedRequest(first).verb == "list" and last["dropped"] == 1
    assert (tmp_path / "r.jsonl").stat().st_mode & 0o777 == 0o600
