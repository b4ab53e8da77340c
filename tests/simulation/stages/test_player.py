"""Stages on a running server: every step, and the border between Stages and the simulated kubelet."""

from __future__ import annotations

from collections.abc import Iterator
from textwrap import dedent
from typing import Any

import orjson
import pytest

from kubist.testing import Cluster
from kubist.testing.host import Host
from tests.simulation.stages.making import CRD, needs, stage
from tests.waiting import wait_for

STAGES = "/apis/kwok.x-k8s.io/v1alpha1/stages"
Object = dict[str, Any]

IS_NEW = needs(".status.podIP", "DoesNotExist")
IS_KEPT = needs(".metadata.deletionTimestamp", "DoesNotExist")
IS_DELETED = needs(".metadata.deletionTimestamp", "Exists")
RUNNING = """
{{ $now := Now }}
conditions:
- {type: Ready, status: "True", lastTransitionTime: {{ $now | Quote }}}
containerStatuses:
{{ range .spec.containers }}
- name: {{ .name | Quote }}
  image: {{ .image | Quote }}
  imageID: ""
  ready: true
  restartCount: 0
  state: {running: {startedAt: {{ $now | Quote }}}}
{{ end }}
podIP: {{ PodIPWith .spec.nodeName false .metadata.uid .metadata.name .metadata.namespace | Quote }}
phase: Running
reason: Staged
"""


@pytest.fixture(scope="module")
def server(kubist_host: Host) -> Iterator[Cluster]:
    """One server with the CRD of Stages. Tests use labels and names of their own."""
    made = kubist_host.cluster(workloads=True)
    made.load(CRD)
    yield made
    made.stop()


def pod(name: str, **metadata: Any) -> Object:
    made = {"name": name, "labels": {"test": name}, **metadata}
    spec = {"containers": [{"name": "c", "image": "i"}]}
    return {"apiVersion": "v1", "kind": "Pod", "metadata": made, "spec": spec}


def selector(name: str, *expressions: Object) -> Object:
    return {"matchLabels": {"test": name}, "matchExpressions": list(expressions)}


def status_of(cluster: Cluster, name: str) -> Object:
    """Status of a pod; empty if it does not exist."""
    found = [held["status"] for held in cluster.list("pods") if held["metadata"]["name"] == name]
    return found[0] if found else {}


def events(cluster: Cluster, name: str) -> list[tuple[str, str, str]]:
    found = [event for event in cluster.list("events") if event["involvedObject"]["name"] == name]
    return [(event["type"], event["reason"], event["message"]) for event in found]


def config_map(cluster: Cluster, name: str) -> Object:
    found: Object = cluster.request("GET", f"/api/v1/namespaces/default/configmaps/{name}")
    return found


def new_config_map(name: str, **metadata: Any) -> Object:
    return {
        "apiVersion": "v1",
        "kind": "ConfigMap",
        "metadata": {"name": name, "labels": {"test": name}, **metadata},
    }


def test_stages_drive_a_pod_from_pending_to_its_end(server: Cluster) -> None:
    name = "whole-life"
    server.load(
        stage(f"{name}-run", selector=selector(name, IS_NEW, IS_KEPT), next={"statusTemplate": RUNNING}),
        stage(
            f"{name}-fail",
            selector=selector(name, needs(".status.phase", "In", "Running"), IS_KEPT),
            delay={"durationMilliseconds": 20, "jitterDurationMilliseconds": 50},
            next={
                "event": {"type": "Warning", "reason": "Broken", "message": "it broke"},
                "statusTemplate": "phase: Failed",
            },
        ),
        stage(f"{name}-delete", selector=selector(name, IS_DELETED), next={"delete": True}),
    )
    server.load(pod(name))
    wait_for(lambda: status_of(server, name).get("phase") == "Failed")
    status = status_of(server, name)
    assert status["reason"] == "Staged"
    assert status["podIP"].startswith("10.")
    assert status["containerStatuses"][0]["state"]["running"]["startedAt"].endswith("Z")
    assert "PodScheduled" in [condition["type"] for condition in status["conditions"]]
    wait_for(lambda: ("Warning", "Broken", "it broke") in events(server, name))
    server.request("DELETE", f"/api/v1/namespaces/default/pods/{name}")
    server.wait(f"pod/{name}", "delete")


def test_kubelet_runs_pods_that_no_stage_selects(server: Cluster) -> None:
    server.load(stage("others", selector=selector("nobody"), next={"statusTemplate": "phase: Failed"}))
    server.load(pod("unselected"))
    server.wait("pod/unselected", "Ready")
    assert "reason" not in status_of(server, "unselected")


def test_stage_that_selects_running_pods_leaves_the_rest_to_the_kubelet(server: Cluster) -> None:
    """A Stage for failures is added to the default behaviour: the kubelet starts the pod and removes it."""
    name = "chaos"
    running = needs(".status.phase", "In", "Running")
    failed = "phase: Failed\nreason: Chaos"
    server.load(stage(name, selector=selector(name, running, IS_KEPT), next={"statusTemplate": failed}))
    server.load(pod(name))
    wait_for(lambda: status_of(server, name).get("reason") == "Chaos")
    assert status_of(server, name)["containerStatuses"][0]["name"] == "c"
    server.request("DELETE", f"/api/v1/namespaces/default/pods/{name}")
    server.wait(f"pod/{name}", "delete")


def test_deleted_pod_that_no_stage_removes_is_removed_by_the_kubelet(server: Cluster) -> None:
    name = "abandoned"
    server.load(stage(name, selector=selector(name, IS_NEW, IS_KEPT), next={"statusTemplate": RUNNING}))
    server.load(pod(name))
    wait_for(lambda: status_of(server, name).get("reason") == "Staged")
    server.request("DELETE", f"/api/v1/namespaces/default/pods/{name}")
    server.wait(f"pod/{name}", "delete")


def test_pods_get_different_addresses(server: Cluster) -> None:
    ready = selector("address", IS_NEW)
    server.load(stage("address", selector=ready, next={"statusTemplate": RUNNING}))
    for number in range(5):
        server.load(pod(f"address-{number}", labels={"test": "address"}))
    wait_for(lambda: all(status_of(server, f"address-{number}").get("podIP") for number in range(5)))
    assert len({status_of(server, f"address-{number}")["podIP"] for number in range(5)}) == 5


def test_node_of_a_user_becomes_ready(server: Cluster) -> None:
    template = """
    {{ $now := Now }}
    conditions:
    {{ range NodeConditions }}
    - type: {{ .type | Quote }}
      status: {{ .status | Quote }}
      reason: {{ .reason | Quote }}
      lastHeartbeatTime: {{ $now | Quote }}
      lastTransitionTime: {{ or $.metadata.creationTimestamp $now | Quote }}
    {{ end }}
    addresses:
    - {type: Hostname, address: {{ NodeName | Quote }}}
    {{ with NodePort }}
    daemonEndpoints: {kubeletEndpoint: {Port: {{ . }}}}
    {{ end }}
    capacity:
    {{ with .status.capacity }}
    {{ YAML . 1 }}
    {{ else }}
      cpu: "4"
      pods: "10"
    {{ end }}
    """
    not_ready = needs('.status.conditions.[] | select(.type == "Ready") | .status', "NotIn", "True")
    made = stage(
        "node", "Node", selector=selector("staged-node", not_ready), next={"statusTemplate": template}
    )
    server.load(made)
    labels = {"test": "staged-node"}
    server.load({"apiVersion": "v1", "kind": "Node", "metadata": {"name": "staged-node", "labels": labels}})
    node = server.wait("node/staged-node", "Ready")
    assert len(node["status"]["conditions"]) == 5
    assert node["status"]["addresses"] == [{"type": "Hostname", "address": "staged-node"}]
    assert node["status"]["capacity"]["cpu"] == "4"
    lease = "/apis/coordination.k8s.io/v1/namespaces/kube-node-lease/leases"
    wait_for(
        lambda: "staged-node" in [held["metadata"]["name"] for held in server.request("GET", lease)["items"]]
    )
    wait_for(lambda: not server.get("node/staged-node")["spec"].get("taints"))
    made = pod("on-staged-node")
    made["spec"]["nodeName"] = "staged-node"
    server.load(made)
    server.wait("pod/on-staged-node", "Ready")


def test_patches_of_every_type(server: Cluster) -> None:
    name = "patched"
    server.load(
        stage(
            name,
            "ConfigMap",
            selector=selector(name, needs('.data["done"]', "DoesNotExist")),
            next={
                "patches": [
                    {"type": "json", "template": "- {op: add, path: /data, value: {json: '1'}}"},
                    {"type": "json", "root": "data", "template": "- {op: add, path: /root, value: '1'}"},
                    {"type": "merge", "root": "data", "template": "merge: {{ .metadata.name | Quote }}"},
                    {"type": "strategic", "template": "data: {strategic: '1'}"},
                    {"root": "data", "template": "done: '1'"},
                ]
            },
        )
    )
    server.load(new_config_map(name))
    wait_for(lambda: "done" in (config_map(server, name).get("data") or {}))
    found = config_map(server, name)
    assert found["data"] == {"json": "1", "root": "1", "merge": name, "strategic": "1", "done": "1"}
    assert "kwok" in [entry["manager"] for entry in found["metadata"]["managedFields"]]


def test_finalizers_and_deletion(server: Cluster) -> None:
    name = "finalized"
    held = needs('.metadata.finalizers.[] | select(. == "test/b")', "Exists")
    server.load(
        stage(
            f"{name}-add",
            "ConfigMap",
            selector=selector(name, needs(".metadata.finalizers.[]", "NotIn", "test/b"), IS_KEPT),
            next={"finalizers": {"add": [{"value": "test/b"}], "remove": [{"value": "test/a"}]}},
        ),
        stage(
            f"{name}-empty",
            "ConfigMap",
            selector=selector(name, held, IS_DELETED),
            next={"finalizers": {"empty": True}},
        ),
    )
    server.load(new_config_map(name, finalizers=["test/a"]))
    wait_for(lambda: config_map(server, name)["metadata"].get("finalizers") == ["test/b"])
    server.request("DELETE", f"/api/v1/namespaces/default/configmaps/{name}")
    wait_for(lambda: name not in [found["metadata"]["name"] for found in server.list("configmaps")])


def test_steps_apply_other_objects(server: Cluster) -> None:
    name = "applying"
    made = """
    apiVersion: v1
    kind: ConfigMap
    metadata:
      name: {{ .metadata.name }}-copy
    data:
      count: {{ default "1" .metadata.missing | Quote }}
    """
    made = dedent(made)
    server.load(
        stage(
            name,
            "ConfigMap",
            selector=selector(name, {"cel": {"expression": "!has(self.data) || !has(self.data.done)"}}),
            steps=[
                {"apply": {"template": made}},
                {"apply": {"template": made.replace('"1"', '"2"'), "type": "merge"}},
                {"apply": {"template": made.replace("-copy", "-merged"), "type": "merge"}},
                {"patch": {"root": "data", "template": "done: '1'"}},
                {"event": {"type": "Normal", "reason": "Applied", "message": "done"}},
            ],
        )
    )
    server.load(new_config_map(name))
    wait_for(lambda: "data" in config_map(server, name))
    assert config_map(server, f"{name}-copy")["data"] == {"count": "2"}
    assert config_map(server, f"{name}-merged")["data"] == {"count": "1"}
    wait_for(lambda: ("Normal", "Applied", "done") in events(server, name))


def test_impersonated_patch_needs_the_permission_of_that_user(server: Cluster) -> None:
    name = "impersonated"
    patch = {"root": "data", "template": "by: '1'", "impersonation": {"username": "jane"}}
    not_done = needs(".data.by", "DoesNotExist")
    server.load(stage(name, "ConfigMap", selector=selector(name, not_done), next={"patches": [patch]}))
    server.load(new_config_map(name))
    wait_for(lambda: [event for event in events(server, name) if event[1] == "FailedStage"])
    ((_, _, message),) = [event for event in events(server, name) if event[1] == "FailedStage"]
    assert message.startswith(f"ConfigMap default/{name}: ")
    assert 'User "jane" cannot patch resource "configmaps"' in message
    rule = {"apiGroups": [""], "resources": ["configmaps"], "verbs": ["patch"]}
    role = {
        "apiVersion": "rbac.authorization.k8s.io/v1",
        "kind": "Role",
        "metadata": {"name": name},
        "rules": [rule],
    }
    binding = {
        "apiVersion": "rbac.authorization.k8s.io/v1",
        "kind": "RoleBinding",
        "metadata": {"name": name},
        "roleRef": {"apiGroup": "rbac.authorization.k8s.io", "kind": "Role", "name": name},
        "subjects": [{"apiGroup": "rbac.authorization.k8s.io", "kind": "User", "name": "jane"}],
    }
    server.load(role, binding)
    other = new_config_map(f"{name}-allowed", labels={"test": name})
    server.load(other)
    wait_for(lambda: (config_map(server, f"{name}-allowed").get("data") or {}).get("by") == "1")


def test_custom_resource_may_come_after_its_stage(server: Cluster) -> None:
    template = "phase: Blooming\nsince: {{ Now | Quote }}"
    made = stage(
        "flower",
        "Flower",
        "garden.example/v1",
        selector={"matchExpressions": [needs(".status.phase", "DoesNotExist")]},
        next={"statusTemplate": template},
    )
    server.load(made)
    wait_for(lambda: [event for event in events(server, "flower") if event[1] == "UnknownResource"])
    crd = orjson.loads(orjson.dumps(CRD))
    crd["metadata"]["name"] = "flowers.garden.example"
    names = {"kind": "Flower", "plural": "flowers", "singular": "flower", "listKind": "FlowerList"}
    crd["spec"] |= {"group": "garden.example", "names": names}
    crd["spec"]["versions"][0] |= {"name": "v1", "subresources": {"status": {}}}
    flower = {"apiVersion": "garden.example/v1", "kind": "Flower", "metadata": {"name": "rose"}}
    server.load(crd, flower)
    path = "/apis/garden.example/v1/flowers/rose"
    wait_for(lambda: server.request("GET", path).get("status", {}).get("phase") == "Blooming")


def test_unusable_stage_gets_a_warning_event_until_it_is_corrected(server: Cluster) -> None:
    name = "unusable"
    bad = stage(
        name, "ConfigMap", selector=selector(name), next={"patches": [{"template": "{{ nonsense }}"}]}
    )
    server.load(bad)
    wait_for(lambda: events(server, name))
    message = (
        "The Stage is not used: spec.next.patches[0].template: template: line 1: the function 'nonsense' is not "
        "defined or not supported"
    )
    assert events(server, name) == [("Warning", "InvalidStage", message)]
    server.load(new_config_map(f"{name}-target", labels={"test": name}))
    patch = {"spec": {"next": {"patches": [{"root": "data", "template": "a: '1'"}]}}}
    server.request("PATCH", f"{STAGES}/{name}", patch, content_type="application/merge-patch+json")
    wait_for(lambda: config_map(server, f"{name}-target").get("data") == {"a": "1"})


def test_failed_template_gets_a_warning_event(server: Cluster) -> None:
    name = "failing"
    patch = {"template": "{{ index .spec.list 3 }}"}
    server.load(stage(name, "ConfigMap", selector=selector(name), next={"patches": [patch]}))
    server.load(new_config_map(f"{name}-target", labels={"test": name}))
    wait_for(lambda: events(server, name))
    ((_, reason, message),) = events(server, name)
    assert reason == "FailedStage"
    assert message == f"ConfigMap default/{name}-target: template: line 1: index: cannot index nil"


def test_deleted_stage_is_played_no_more(server: Cluster) -> None:
    name = "removed"
    patch = {"root": "data", "template": "a: '1'"}
    not_done = needs(".data.a", "DoesNotExist")
    server.load(stage(name, "ConfigMap", selector=selector(name, not_done), next={"patches": [patch]}))
    server.load(new_config_map(f"{name}-1", labels={"test": name}))
    wait_for(lambda: "data" in config_map(server, f"{name}-1"))
    server.request("DELETE", f"{STAGES}/{name}")
    marker = "removed-marker"
    server.load(stage(marker, "ConfigMap", selector=selector(marker, not_done), next={"patches": [patch]}))
    server.load(new_config_map(f"{name}-2", labels={"test": name}), new_config_map(marker))
    wait_for(lambda: "data" in config_map(server, marker))
    assert "data" not in config_map(server, f"{name}-2")


def test_kubelet_takes_over_when_the_stages_are_deleted(server: Cluster) -> None:
    name = "handed-over"
    held = {"statusTemplate": "reason: Held"}
    not_held = needs(".status.reason", "NotIn", "Held")
    server.load(stage(name, selector=selector(name, not_held), next=held), pod(name))
    wait_for(lambda: status_of(server, name).get("reason") == "Held")
    assert status_of(server, name)["phase"] == "Pending"
    server.request("DELETE", f"{STAGES}/{name}")
    server.wait(f"pod/{name}", "Ready")


def test_pod_may_come_before_its_node(server: Cluster) -> None:
    name = "homeless"
    server.load(stage(name, selector=selector(name, IS_NEW), next={"statusTemplate": RUNNING}))
    made = pod(name)
    made["spec"]["nodeName"] = "late-node"
    server.load(made)
    server.load({"apiVersion": "v1", "kind": "Node", "metadata": {"name": "late-node"}})
    wait_for(lambda: status_of(server, name).get("reason") == "Staged")


def test_stage_without_delay_that_never_ends_is_slowed_down(server: Cluster) -> None:
    """Such a Stage would use a whole core. Each pass counts one up."""
    name = "endless"
    template = "count: {{ add1 (or .data.count 0) | toString | Quote }}"
    counting = {"patches": [{"root": "data", "template": template}]}
    server.load(stage(name, "ConfigMap", selector=selector(name), next=counting, immediateNextStage=True))
    server.load(new_config_map(name, labels={"test": name}))

    def count() -> int:
        return int((config_map(server, name).get("data") or {}).get("count", 0))

    wait_for(lambda: count() >= 11)
    assert count() < 40
    server.request("DELETE", f"{STAGES}/{name}")
