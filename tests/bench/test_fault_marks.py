"""Recordings and audit logs name the fault rules that acted on a request."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from kubist.model.meta.object import Object
from kubist.testing import Cluster
from kubist.testing.recording import RecordedRequest
from tests.bench.fault_clients import MAPS, ask, code, config_map, fails, watching
from tests.bench.recording_clients import lines, recording, until
from tests.waiting import wait_for


def faults(cluster: Cluster, path: str) -> list[list[Object]]:
    return [line.get("faults", []) for line in lines(cluster, path)]


@pytest.mark.parametrize(
    "action",
    [
        {"status": 503, "retryAfter": "2s", "message": "away"},
        {"delay": "1ms"},
        {"delayAfter": 0.001},
        {"close": "before"},
        {"close": "after"},
        {"truncate": 3},
        {"staleRead": True},
    ],
)
def test_request_has_the_actions_of_a_rule(cluster: Cluster, action: Object) -> None:
    rule = cluster.request("POST", "/kubist/v1/faults", {"verb": "get", "times": 1, **action})
    with recording(cluster) as path:
        broken = fails if {"close", "truncate"} & set(action) else lambda call: call()
        broken(lambda: code(cluster, "GET", f"{MAPS}/kube-root-ca.crt"))
        code(cluster, "GET", f"{MAPS}/kube-root-ca.crt")
        assert faults(cluster, path) == [[{"id": rule["id"], **action}], []]


@pytest.mark.filterwarnings("ignore::kubist.testing.plugin.UnusedFaultWarning")
def test_request_has_all_rules_that_acted(cluster: Cluster) -> None:
    rules: list[dict[str, Any]] = [{"delay": "1ms"}, {"nth": 2, "status": 500}, {"status": 429}]
    made = [
        cluster.request("POST", "/kubist/v1/faults", {"resource": "configmaps", **rule}) for rule in rules
    ]
    with recording(cluster) as path:
        code(cluster, "GET", MAPS)
        [acted] = faults(cluster, path)
    assert acted == [{"id": made[0]["id"], "delay": "1ms"}, {"id": made[2]["id"], "status": 429}]


def test_watch_has_the_rules_that_acted_on_its_events(cluster: Cluster) -> None:
    with recording(cluster, verb="watch") as path, watching(cluster) as watch:
        until(watch, "kube-root-ca.crt")
        with cluster.faults.add(resource="configmaps", cut_after=1) as fault:
            assert faults(cluster, path) == [[]], "the rule has not acted yet"
            cluster.load(config_map("a"))
            fails(watch.response.read)
        [line] = wait_for(lambda: [line for line in lines(cluster, path) if "open" not in line])
    assert line["faults"] == [{"id": fault.id, "cutAfter": 1}]


def test_recent_requests_have_their_faults(cluster: Cluster) -> None:
    with cluster.faults.add(verb="get", resource="configmaps", delay="1ms") as fault:
        code(cluster, "GET", f"{MAPS}/kube-root-ca.crt")
    [line] = [found for found in lines(cluster, "/kubist/v1/requests") if found["verb"] == "get"]
    assert line["faults"] == [{"id": fault.id, "delay": "1ms"}]
    assert RecordedRequest(line).faults == line["faults"]
    assert repr(RecordedRequest(line)).endswith(f"-> 200, injected by fault rule {fault.id}, by admin>")


def test_response_names_the_rule_that_made_it(cluster: Cluster) -> None:
    fault = cluster.faults.add(verb="get", resource="configmaps", status=500)
    assert ask(cluster, "GET", f"{MAPS}/a")[2]["Kubist-Fault"] == fault.id
    assert "Kubist-Fault" not in ask(cluster, "GET", MAPS)[2]


def test_audit_log_names_the_rules(tmp_path: Path) -> None:
    policy, log = tmp_path / "policy.yaml", tmp_path / "audit.log"
    policy.write_text("{apiVersion: audit.k8s.io/v1, kind: Policy, rules: [{level: Metadata}]}")
    with Cluster(audit_policy_file=str(policy), audit_log_path=str(log)) as cluster:
        fault = cluster.faults.add(verb="get", resource="configmaps", status=500)
        code(cluster, "GET", f"{MAPS}/a")
    [event] = [
        event
        for event in map(json.loads, log.read_text().splitlines())
        if event["stage"] == "ResponseComplete" and event.get("objectRef", {}).get("name") == "a"
    ]
    assert json.loads(event["annotations"]["kubist.io/faults"]) == [{"id": fault.id, "status": 500}]
