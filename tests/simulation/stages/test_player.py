"""Stages on a running server: every step, and Stages that cannot be used."""

from __future__ import annotations

from textwrap import dedent

import orjson

from kubist.testing import Cluster
from tests.simulation.stages.making import (
    CRD,
    IS_DELETED,
    IS_KEPT,
    IS_NEW,
    RUNNING,
    STAGES,
    config_map,
    events,
    needs,
    new_config_map,
    pod,
    selector,
    stage,
    status_of,
)
from tests.waiting import wait_for


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


VOLUME = """
apiVersion: v1
kind: PersistentVolume
metadata: {name: {{ .metadata.name }}-volume}
spec:
  accessModes: {{ YAML .spec.accessModes 1 }}
  capacity: {{ YAML .spec.resources.requests 2 }}
  storageClassName: {{ .spec.storageClassName }}
  persistentVolumeReclaimPolicy: Delete
  claimRef: {apiVersion: v1, kind: PersistentVolumeClaim, namespace: {{ .metadata.namespace }},
    name: {{ .metadata.name }}, uid: {{ .metadata.uid }}}
  hostPath: {path: /staged}
"""


def test_stages_bind_a_claim_that_the_volume_controller_leaves_alone(server: Cluster) -> None:
    name = "staged-claim"
    is_unbound = {"cel": {"expression": "!has(self.spec.volumeName) && self.status.phase != 'Bound'"}}
    done = "annotations: {pv.kubernetes.io/bind-completed: 'yes'}"
    server.load(
        stage(
            name,
            "PersistentVolumeClaim",
            selector=selector(name, is_unbound),
            steps=[
                {"apply": {"template": VOLUME}},
                {"patch": {"root": "metadata", "template": done}},
                {"patch": {"root": "spec", "template": "volumeName: {{ .metadata.name }}-volume"}},
                {"patch": {"root": "status", "subresource": "status", "template": "phase: Bound"}},
            ],
        )
    )
    spec = {
        "storageClassName": "staged",
        "accessModes": ["ReadWriteOnce"],
        "resources": {"requests": {"storage": "1Gi"}},
    }
    metadata = {"name": name, "labels": {"test": name}}
    server.load({"apiVersion": "v1", "kind": "PersistentVolumeClaim", "metadata": metadata, "spec": spec})
    server.wait(f"persistentvolumeclaim/{name}", lambda held: held["status"].get("phase") == "Bound")
    volumes = [
        volume
        for volume in server.list("persistentvolumes")
        if (volume["spec"].get("claimRef") or {}).get("name") == name
    ]
    assert [volume["spec"]["hostPath"]["path"] for volume in volumes] == ["/staged"]
    assert not {reason for _, reason, _ in events(server, name)} & {"ClaimLost", "ProvisioningSucceeded"}
    assert "FailedStage" not in {reason for _, reason, _ in events(server, name)}


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
        "supported: run kwok itself against this server for Stages that use it"
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


def test_rejected_patch_gets_one_line(server: Cluster) -> None:
    name = "rejected"
    patch = {"root": "metadata", "template": "labels: {a: 'not\\nvalid!', b: '&'}"}
    server.load(stage(name, "ConfigMap", selector=selector(name), next={"patches": [patch]}))
    server.load(new_config_map(f"{name}-target", labels={"test": name}))
    wait_for(lambda: events(server, name))
    ((type_, reason, message),) = events(server, name)
    assert (type_, reason) == ("Warning", "FailedStage")
    assert message.startswith(f'ConfigMap default/{name}-target: ConfigMap "{name}-target" is invalid: ')
    assert "\n" not in message


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


def test_stage_without_delay_that_never_ends_is_slowed_down(server: Cluster) -> None:
    """Such a Stage would use a whole core. Each pass adds a letter."""
    name = "endless"
    template = 'count: {{ printf "%si" (or .data.count "") | Quote }}'
    counting = {"patches": [{"root": "data", "template": template}]}
    server.load(stage(name, "ConfigMap", selector=selector(name), next=counting, immediateNextStage=True))
    server.load(new_config_map(name, labels={"test": name}))

    def count() -> int:
        return len((config_map(server, name).get("data") or {}).get("count", ""))

    wait_for(lambda: count() >= 11)
    assert count() < 40
    server.request("DELETE", f"{STAGES}/{name}")
