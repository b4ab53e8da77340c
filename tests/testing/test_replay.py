"""Replay of recordings and audit logs on a new cluster."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from kubist.testbench.replay import replay as engine
from kubist.testbench.replay.source import MalformedRecording
from kubist.testing import Cluster, replay
from kubist.testing.cluster import Refused
from tests.bench.fault_clients import MAPS, code, config_map
from tests.testing.widgets import CRD, WIDGET

MERGE = "application/merge-patch+json"
SECRETS = "/api/v1/namespaces/default/secrets"


def test_recording_gives_the_same_statuses_on_a_new_cluster(cluster: Cluster, kubist_server: Cluster) -> None:
    """Generated names, uids, resource versions and redacted Secrets are those of the new cluster."""
    with cluster.recording() as requests:
        cluster.load(CRD, WIDGET)
        made = cluster.request(
            "POST", SECRETS, {"metadata": {"generateName": "s-"}, "stringData": {"p": "x"}}
        )
        name = made["metadata"]["name"]
        made["metadata"]["labels"] = {"a": "b"}
        cluster.request("PUT", f"{SECRETS}/{name}", made)
        with pytest.raises(Refused, match="modified"):
            cluster.request("PUT", f"{SECRETS}/{name}", made)
        owner = {"apiVersion": "v1", "kind": "Secret", "name": name, "uid": made["metadata"]["uid"]}
        owned = config_map("owned") | {"metadata": {"name": "owned", "ownerReferences": [owner]}}
        cluster.request("POST", MAPS, owned)
        account = cluster.get("sa/default")
        account["metadata"]["labels"] = {"c": "d"}
        cluster.request("PUT", "/api/v1/namespaces/default/serviceaccounts/default", account)
        cluster.request("DELETE", f"{SECRETS}/{name}", {"preconditions": {"uid": made["metadata"]["uid"]}})
        with pytest.raises(Refused):
            cluster.get("cm/none")
    report = cluster_report(kubist_server, requests)
    assert str(report) == f"{len(requests)} requests sent, 0 differ, {report.skipped} skipped" and report.same
    assert report.sent == len(requests)


def cluster_report(cluster: Cluster, source: Any) -> engine.Report:
    taken = cluster.snapshot()
    try:
        return cluster.replay(source)
    finally:
        cluster.restore(taken)


def test_difference_is_reported(cluster: Cluster, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(engine, "PATIENCE_IN_ALL", 0.1)
    cluster.load(config_map("there"))
    with cluster.recording() as requests:
        cluster.get("cm/there")
        with pytest.raises(Refused):
            cluster.request("POST", MAPS, config_map("there"))
    requests.save(tmp_path / "r.jsonl")
    report = replay(tmp_path / "r.jsonl")
    assert not report.same and report.differing == 2
    missing, created = report.differences
    assert (missing.line, missing.recorded, missing.status) == (1, 200, 404)
    assert str(missing) == f'line 1: GET {MAPS}/there: recorded 200, now 404: configmaps "there" not found'
    assert (created.line, created.recorded, created.status) == (2, 409, 201)
    assert str(report).startswith("2 requests sent, 2 differ, 0 skipped\n  line 1: GET")


@pytest.mark.parametrize(
    "action", [{"status": 404}, {"close": "before"}, {"stale_read": True}, {"expire_history": True}]
)
def test_responses_that_a_fault_made_are_not_compared(
    cluster: Cluster, kubist_server: Cluster, action: dict[str, Any]
) -> None:
    with cluster.recording() as requests:
        with cluster.faults.add(verb="list", **action):
            try:
                code(cluster, "GET", MAPS)
            except OSError:
                assert action == {"close": "before"}
        with cluster.faults.add(verb="list", delay="1ms"):
            code(cluster, "GET", MAPS)
    report = kubist_server.replay(requests)
    assert (report.sent, report.differing) == (1, 0)
    assert [(skip.line, skip.reason) for skip in report.skips] == [(1, "a fault rule made its response")]


def test_users_are_impersonated_on_request(cluster: Cluster, kubist_server: Cluster) -> None:
    alice = cluster.user("alice")
    with cluster.recording() as requests, pytest.raises(Refused, match="forbidden"):
        alice.request("GET", MAPS)
    report = kubist_server.replay(requests)
    assert report.sent == 0 and report.skips[0].reason.startswith("the recorded user was rejected (403)")
    report = kubist_server.replay(requests, impersonate=True)
    assert report.sent == 1 and report.same


def test_control_loops_get_time(cluster: Cluster, kubist_server: Cluster) -> None:
    with cluster.recording() as requests:
        cluster.request("POST", "/api/v1/namespaces", {"metadata": {"name": "later"}})
        cluster.wait("sa/default", lambda account: True, namespace="later")
        account = cluster.get("sa/default", "later")
        account["metadata"]["labels"] = {"a": "b"}
        cluster.request("PUT", "/api/v1/namespaces/later/serviceaccounts/default", account)
    report = cluster_report(kubist_server, requests)
    assert report.same, str(report)


def event(verb: str, uri: str, code: int, level: str = "RequestResponse", **more: Any) -> dict[str, Any]:
    return {
        "kind": "Event",
        "apiVersion": "audit.k8s.io/v1",
        "level": level,
        "auditID": "x",
        "stage": "ResponseComplete",
        "requestURI": uri,
        "verb": verb,
        "user": {"username": "dev", "groups": ["devs", "system:authenticated"]},
        "responseStatus": {"metadata": {}, "code": code},
        **more,
    }


def write(path: Path, events: list[Any]) -> Path:
    path.write_text("".join(f"{json.dumps(found)}\n" for found in events))
    return path


def test_audit_log_is_replayed(kubist_server: Cluster, tmp_path: Path) -> None:
    uid = "11111111-2222-3333-4444-555555555555"
    metadata = {"name": "a-old12", "generateName": "a-", "uid": uid, "resourceVersion": "77"}
    made = config_map("a") | {"metadata": metadata}
    changed = made | {"metadata": metadata | {"resourceVersion": "78", "labels": {"x": "y"}}}
    current = made | {"metadata": metadata | {"resourceVersion": "900"}}
    events = [
        event("create", MAPS, 201, stage="RequestReceived"),
        event("create", MAPS, 201, requestObject={"metadata": {"generateName": "a-"}}, responseObject=made),
        event("update", f"{MAPS}/a-old12", 200, requestObject=made, responseObject=changed),
        event("patch", f"{MAPS}/a-old12", 200, "Request", requestObject={"data": {"k": "v"}}),
        event("patch", f"{MAPS}/a-old12", 200, "Request", requestObject=[{"op": "remove", "path": "/data"}]),
        event("update", f"{MAPS}/a-old12", 200, "Request", requestObject=current),
        event(
            "patch",
            f"{MAPS}/applied?fieldManager=me",
            201,
            "Request",
            requestObject=config_map("applied", x="1"),
        ),
        event("get", f"{MAPS}/a-old12", 200),
        event("list", f"{MAPS}?resourceVersion=900&resourceVersionMatch=NotOlderThan", 200),
        event("watch", f"{MAPS}?watch=1", 200),
        event("create", MAPS, 201, "Metadata"),
        event("get", MAPS, 200, "Metadata"),
        event("create", MAPS, 403, requestObject=config_map("no")),
        event("create", "/api/v1/namespaces/default/pods/p/exec?command=ls", 101, requestObject={}),
        event("delete", f"{MAPS}/a-old12", 200, requestObject={"preconditions": {"uid": uid}}),
        event("get", f"{MAPS}/a-old12", 404),
    ]
    report = cluster_report(kubist_server, write(tmp_path / "audit.log", events))
    assert str(report) == "10 requests sent, 0 differ, 5 skipped"
    assert report.reasons() == {
        "watches are not replayed": 1,
        "audit level Metadata has no bodies": 2,
        "the recorded user was rejected (403); impersonate to compare it": 1,
        "it needs a kubelet or another server": 1,
    }
    assert json.loads(json.dumps(report.state()))["sent"] == 10


@pytest.mark.parametrize(
    "options",
    [
        {"kind": "DeleteOptions", "apiVersion": "meta.k8s.io/__internal", "propagationPolicy": "Background"},
        {"kind": "DeleteOptions", "apiVersion": "meta.k8s.io/v1", "gracePeriodSeconds": 0},
        {"propagationPolicy": "Orphan"},
    ],
)
def test_deletes_of_an_audit_log_are_replayed(
    kubist_server: Cluster, tmp_path: Path, options: dict[str, Any]
) -> None:
    events = [
        event("create", MAPS, 201, requestObject=config_map("gone")),
        event("delete", f"{MAPS}/gone", 200, requestObject=options),
        event("get", f"{MAPS}/gone", 404),
    ]
    report = cluster_report(kubist_server, write(tmp_path / "audit.log", events))
    assert report.same, str(report)


def test_conditional_requests_count_as_read(kubist_server: Cluster, tmp_path: Path) -> None:
    report = cluster_report(kubist_server, write(tmp_path / "audit.log", [event("get", "/openapi/v3", 304)]))
    assert (report.sent, report.same) == (1, True)


def test_names_of_pods_are_mapped_by_lists(kubist_server: Cluster, tmp_path: Path) -> None:
    """A recorded list of objects with generated names says which names the new cluster has."""
    old = [
        {"metadata": {"name": f"web-old{n}", "namespace": "default", "generateName": "web-"}}
        for n in range(2)
    ]
    taken = kubist_server.snapshot()
    try:
        for _ in old:
            kubist_server.request("POST", MAPS, {"metadata": {"generateName": "web-"}})
        events = [
            event("list", MAPS, 200, responseObject={"kind": "ConfigMapList", "metadata": {}, "items": old}),
            event("get", f"{MAPS}/web-old0", 200),
            event("delete", f"{MAPS}/web-old1", 200),
        ]
        report = kubist_server.replay(write(tmp_path / "audit.log", events))
        assert report.same, str(report)
        assert len([item for item in kubist_server.list("cm") if "web-" in item["metadata"]["name"]]) == 1
    finally:
        kubist_server.restore(taken)


@pytest.mark.parametrize(
    ("line", "why"),
    [
        ("{", "not JSON"),
        ("[]", "must be a JSON object"),
        ("{}", "method: is missing"),
        ('{"method": "GET"}', "path: is missing"),
        ('{"method": "FETCH", "path": "/"}', "method: must be one of GET"),
        ('{"method": "GET", "path": "api"}', "path: must start with /"),
        ('{"method": "GET", "path": "/a b"}', "path: must start with / and have no blanks"),
        ('{"method": "GET", "path": "/", "status": "200"}', "status: must be a whole number"),
        ('{"method": "GET", "path": "/", "groups": [1]}', "groups: must be a list of strings"),
        ('{"method": "GET", "path": "/", "faults": [1]}', "faults: must be a list of objects"),
        ('{"method": "GET", "path": "/", "query": 1}', "query: must be a string"),
        ('{"kind": "EventList", "apiVersion": "audit.k8s.io/v1"}', "kind: must be Event"),
        ('{"kind": "Event", "apiVersion": "audit.k8s.io/v1"}', "stage: must be"),
        (json.dumps(event("get", "api", 200)), "requestURI: must start with /"),
        (json.dumps(event("get", "/api", 200, responseStatus=5)), "responseStatus: must be an object"),
    ],
)
def test_malformed_line_is_named_and_nothing_is_sent(
    kubist_server: Cluster, tmp_path: Path, line: str, why: str
) -> None:
    good = {"method": "POST", "path": MAPS, "status": 201, "requestObject": config_map("sent")}
    path = tmp_path / "r.jsonl"
    path.write_text(f"{json.dumps(good)}\n\n{line}\n")
    with pytest.raises(MalformedRecording) as error:
        kubist_server.replay(path)
    [(number, found)] = error.value.problems
    assert number == 3 and found.startswith(why)
    assert str(error.value) == f"{path}:3: {found}"
    with pytest.raises(Refused):
        kubist_server.get("cm/sent")
