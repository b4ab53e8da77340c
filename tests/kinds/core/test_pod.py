"""Pod: defaults, updates, and the grace period of a delete."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest

from kubist.model.meta.object import Object


@pytest.fixture
def pods(kind_of: Any) -> Any:
    return kind_of("v1", "Pod")


def pod(**fields: Any) -> Object:
    return {"spec": {"containers": [{"name": "a", "image": "i:1"}], **fields}}


def with_resources(*resources: Object, **fields: Any) -> Object:
    containers = [{"name": f"c{i}", "image": "i", "resources": r} for i, r in enumerate(resources)]
    return {"spec": {"containers": containers, **fields}}


def test_new_pod_is_pending_and_sent_status_is_dropped(pods: Any) -> None:
    created = pods.create({**pod(), "status": {"phase": "Running", "message": "x"}})
    assert created["status"] == {"phase": "Pending", "qosClass": "BestEffort"}


def test_gated_pod_has_pod_scheduled_condition(pods: Any) -> None:
    conditions = pods.create(pod(schedulingGates=[{"name": "example.com/x"}]))["status"]["conditions"]
    assert [(c["type"], c["status"], c["reason"]) for c in conditions] == [
        ("PodScheduled", "False", "SchedulingGated")
    ]


FULL = {"cpu": "1", "memory": "1Gi"}
QUALITIES: list[tuple[list[Object], Object, str]] = [
    ([{}], {}, "BestEffort"),
    ([{"requests": {"cpu": "0"}}], {}, "BestEffort"),
    ([{"requests": {"cpu": "1"}}], {}, "Burstable"),
    ([{"limits": FULL}], {}, "Guaranteed"),
    ([{"limits": FULL, "requests": {"cpu": "500m"}}], {}, "Burstable"),
    ([{"limits": FULL}, {}], {}, "Burstable"),
    ([{"limits": FULL}, {"limits": {"cpu": "1"}}], {}, "Burstable"),
    ([{}], {"resources": {"limits": FULL}}, "Guaranteed"),
    ([{"requests": {"cpu": "1"}}], {"resources": {"limits": {"cpu": "2"}}}, "Burstable"),
    ([{"requests": {"example.com/gpu": "1"}, "limits": {"example.com/gpu": "1"}}], {}, "BestEffort"),
]


@pytest.mark.parametrize(("resources", "fields", "quality"), QUALITIES)
def test_qos_class(pods: Any, resources: list[Object], fields: Object, quality: str) -> None:
    assert pods.stored(with_resources(*resources, **fields))["status"]["qosClass"] == quality


def test_requests_follow_limits(pods: Any) -> None:
    given = with_resources({"limits": {"cpu": "1", "memory": "1Gi"}, "requests": {"cpu": "500m"}})
    resources = pods.decode(given)["spec"]["containers"][0]["resources"]
    assert resources["requests"] == {"cpu": "500m", "memory": "1Gi"}


def test_pod_level_requests_default_to_the_container_total(pods: Any) -> None:
    given = with_resources(
        {"requests": {"cpu": "500m"}},
        {"requests": {"cpu": "1"}},
        resources={"limits": {"cpu": "4", "memory": "1Gi"}},
    )
    given["spec"]["initContainers"] = [
        {"name": "side", "image": "i", "restartPolicy": "Always", "resources": {"requests": {"cpu": "250m"}}},
        {"name": "once", "image": "i", "resources": {"requests": {"cpu": "3"}}},
    ]
    assert pods.stored(given)["spec"]["resources"]["requests"] == {"cpu": "3250m", "memory": "1Gi"}


def test_host_network_sets_host_ports(pods: Any) -> None:
    given = pod(hostNetwork=True, containers=[{"name": "a", "image": "i", "ports": [{"containerPort": 80}]}])
    assert pods.decode(given)["spec"]["containers"][0]["ports"][0]["hostPort"] == 80


def test_deprecated_fields_mirror_newer_fields(pods: Any) -> None:
    spec = pods.decode(pod(serviceAccount="old"))["spec"]
    assert (spec["serviceAccountName"], spec["serviceAccount"]) == ("old", "old")
    spec = pods.decode(pod(serviceAccount="old", serviceAccountName="new"))["spec"]
    assert (spec["serviceAccountName"], spec["serviceAccount"]) == ("new", "new")


def test_disabled_fields_are_dropped(pods: Any) -> None:
    bundle = {"clusterTrustBundle": {"name": "x", "path": "p"}}
    given = pod(
        schedulingGroup={"podGroupName": "g"},
        volumes=[{"name": "v", "projected": {"sources": [bundle]}}],
        containers=[{"name": "a", "image": "i", "lifecycle": {"stopSignal": "SIGTERM"}}],
    )
    spec = pods.stored(given)["spec"]
    assert "schedulingGroup" not in spec
    assert spec["volumes"][0]["projected"]["sources"] == [{}]
    assert "lifecycle" not in spec["containers"][0]


def test_app_armor_annotations_are_copied_to_fields(pods: Any) -> None:
    warnings: list[str] = []
    pods.context.warn = warnings.append
    key = "container.apparmor.security.beta.kubernetes.io/a"
    created = pods.create({"metadata": {"annotations": {key: "localhost/x"}}, **pod()})
    profile = {"type": "Localhost", "localhostProfile": "x"}
    assert created["spec"]["containers"][0]["securityContext"] == {"appArmorProfile": profile}
    assert len(warnings) == 1


GRACE: list[tuple[Object, str, int | None, int]] = [
    ({"nodeName": "n"}, "Running", None, 30),
    ({"nodeName": "n", "terminationGracePeriodSeconds": 5}, "Running", None, 5),
    ({"nodeName": "n"}, "Running", 7, 7),
    ({"nodeName": "n"}, "Running", -7, 1),
    ({"nodeName": "n"}, "Succeeded", 7, 0),
    ({}, "Pending", 7, 0),
]


@pytest.mark.parametrize(("fields", "phase", "asked", "seconds"), GRACE)
def test_grace_period(pods: Any, fields: Object, phase: str, asked: int | None, seconds: int) -> None:
    given = pods.decode({**pod(**fields), "status": {"phase": phase}})
    assert pods.strategy.grace_period(given, asked) == seconds


def set_spec(**fields: Any) -> Any:
    return lambda obj: obj["spec"].update(fields)


TOLERATION = {"key": "k", "operator": "Exists"}
CHANGES: list[tuple[Object, Any, list[tuple[str, str]]]] = [
    ({}, lambda obj: obj["spec"]["containers"][0].update(image="new"), []),
    (
        {},
        lambda obj: obj["spec"]["containers"][0].update(image=""),
        [("spec.containers[0].image", "Required")] * 2,
    ),
    ({}, lambda obj: obj["spec"]["containers"][0].update(args=["x"]), [("spec", "Forbidden")]),
    (
        {},
        lambda obj: obj["spec"]["containers"].append({"name": "b", "image": "i"}),
        [("spec.containers", "Forbidden")],
    ),
    ({}, set_spec(activeDeadlineSeconds=5), []),
    (
        {"activeDeadlineSeconds": 5},
        set_spec(activeDeadlineSeconds=6),
        [("spec.activeDeadlineSeconds", "Invalid")],
    ),
    (
        {"activeDeadlineSeconds": 5},
        set_spec(activeDeadlineSeconds=None),
        [("spec.activeDeadlineSeconds", "Invalid")],
    ),
    ({}, set_spec(tolerations=[TOLERATION]), []),
    ({"tolerations": [TOLERATION]}, set_spec(tolerations=None), [("spec.tolerations", "Forbidden")]),
    ({}, set_spec(schedulingGates=[{"name": "g"}]), [("spec.schedulingGates[0].name", "Forbidden")]),
    (
        {},
        set_spec(schedulingGates=[{"name": "g"}] * 2),
        [("spec.schedulingGates[1]", "Duplicate"), ("spec.schedulingGates[1].name", "Forbidden")],
    ),
    ({"schedulingGates": [{"name": "g"}]}, set_spec(schedulingGates=None, nodeSelector={"a": "b"}), []),
    ({}, set_spec(nodeSelector={"a": "b"}), [("spec", "Forbidden")]),
    (
        {"schedulingGates": [{"name": "g"}], "nodeSelector": {"a": "b"}},
        set_spec(nodeSelector={"a": "c"}),
        [("spec.nodeSelector", "Invalid")],
    ),
    ({"overhead": {"cpu": "1"}}, set_spec(overhead={"cpu": "1000m"}), []),
    (
        {},
        lambda obj: obj["metadata"].update(annotations={"kubernetes.io/config.mirror": "x"}),
        [
            ("metadata.annotations[kubernetes.io/config.mirror]", "Invalid"),
            ("metadata.annotations[kubernetes.io/config.mirror]", "Forbidden"),
            ("metadata.annotations[kubernetes.io/config.mirror]", "Invalid"),
        ],
    ),
]


@pytest.mark.parametrize(("fields", "change", "causes"), CHANGES)
def test_update_rules(pods: Any, fields: Object, change: Any, causes: list[tuple[str, str]]) -> None:
    assert pods.change_errors(pods.stored(pod(**fields)), change) == causes


def test_stored_faults_stay_allowed(pods: Any) -> None:
    bad = {"labelSelector": {"matchExpressions": [{"key": "a", "operator": "In", "values": ["-"]}]}}
    term = {"topologyKey": "z", **bad}
    old = pod(affinity={"podAffinity": {"requiredDuringSchedulingIgnoredDuringExecution": [term]}})
    assert pods.create_errors(old) != []
    assert pods.change_errors(pods.create(old), lambda obj: obj["metadata"].update(labels={"a": "b"})) == []


def test_privileged_pod_update_requires_allow_privileged(pods: Any) -> None:
    pods.context.config = replace(pods.context.config, allow_privileged=True)
    container = {"name": "a", "image": "i", "securityContext": {"privileged": True}}
    old = pods.stored(pod(containers=[container]))

    def label(obj: Object) -> None:
        obj["metadata"].update(labels={"a": "b"})

    assert pods.change_errors(old, label) == []
    pods.context.config = replace(pods.context.config, allow_privileged=False)
    assert pods.change_errors(old, label) == [("spec.containers[0].securityContext.privileged", "Forbidden")]


def test_selectable_fields(pods: Any) -> None:
    fields = pods.strategy.selectable_fields(pods.decode(pod(nodeName="n", hostNetwork=True)))
    assert (fields["spec.nodeName"], fields["spec.host"], fields["spec.hostNetwork"]) == ("n", "n", "true")
    assert fields.keys() == pods.strategy.field_labels.keys()


def test_name_that_is_not_a_dns_label_warns(pods: Any) -> None:
    (warning,) = pods.warnings({"metadata": {"name": "a.b"}, **pod()})
    assert warning.startswith("metadata.name: this is used in the Pod's hostname")
