"""Deployments, ReplicaSets, StatefulSets and DaemonSets: defaults and validation."""

from __future__ import annotations

from typing import Any

import pytest

from kubist.model.meta.object import Object


def template(**pod: Any) -> Object:
    return {
        "metadata": {"labels": {"app": "a"}},
        "spec": {"containers": [{"name": "c", "image": "i"}], **pod},
    }


def workload(**spec: Any) -> Object:
    spec = {"selector": {"matchLabels": {"app": "a"}}, "template": template(), **spec}
    return {"metadata": {"name": "x", "generation": 1}, "spec": spec}


@pytest.fixture(params=["Deployment", "ReplicaSet", "StatefulSet", "DaemonSet"])
def any_workload(kind_of: Any, request: pytest.FixtureRequest) -> Any:
    return kind_of("apps/v1", request.param)


def test_selector_must_match_the_template(any_workload: Any) -> None:
    causes = any_workload.create_errors(workload(selector={"matchLabels": {"app": "b"}}))
    assert causes == [("spec.template.metadata.labels", "Invalid")]


def test_empty_selector_is_rejected(any_workload: Any) -> None:
    assert any_workload.create_errors(workload(selector={})) == [("spec.selector", "Invalid")]


def test_pods_that_may_end_are_rejected(any_workload: Any) -> None:
    causes = any_workload.create_errors(
        workload(template=template(restartPolicy="OnFailure", activeDeadlineSeconds=5))
    )
    assert causes == [
        ("spec.template.spec.restartPolicy", "NotSupported"),
        ("spec.template.spec.activeDeadlineSeconds", "Forbidden"),
    ]


def test_status_is_dropped_on_create(any_workload: Any) -> None:
    new = any_workload.stored({**workload(), "status": {"observedGeneration": 7}})
    assert not any(new["status"].values())


def test_update_keeps_status(any_workload: Any) -> None:
    old = any_workload.stored(workload())
    old["status"]["observedGeneration"] = 5
    new = any_workload.changed(old, lambda obj: obj["status"].clear())
    assert new["status"]["observedGeneration"] == 5


def test_status_update_keeps_spec(any_workload: Any) -> None:
    old = any_workload.stored(workload())
    new = any_workload.changed(old, lambda obj: obj["spec"].update(minReadySeconds=9), "status")
    assert new["spec"] == old["spec"]


@pytest.mark.parametrize("name", ["Deployment", "ReplicaSet", "DaemonSet"])
def test_selector_is_immutable(kind_of: Any, name: str) -> None:
    workloads = kind_of("apps/v1", name)
    old = workloads.stored(workload(template={**template(), "metadata": {"labels": {"app": "a", "b": "c"}}}))

    def narrow(obj: Object) -> None:
        obj["spec"]["selector"]["matchLabels"]["b"] = "c"

    assert workloads.change_errors(old, narrow) == [("spec.selector", "Invalid")]


@pytest.mark.parametrize("name", ["Deployment", "ReplicaSet", "StatefulSet"])
def test_missing_selector_is_rejected(kind_of: Any, name: str) -> None:
    causes = kind_of("apps/v1", name).create_errors(workload(selector=None))
    assert causes == [("spec.selector", "Required"), ("spec.template.metadata.labels", "Invalid")]


def test_missing_selector_of_daemon_set_matches_no_labels(kind_of: Any) -> None:
    causes = kind_of("apps/v1", "DaemonSet").create_errors(workload(selector=None))
    assert causes == [("spec.template.metadata.labels", "Invalid")]


@pytest.mark.parametrize("name", ["Deployment", "ReplicaSet", "StatefulSet"])
def test_template_is_not_validated_with_invalid_selector(kind_of: Any, name: str) -> None:
    selector = {"matchExpressions": [{"key": "app", "operator": "Near"}]}
    causes = kind_of("apps/v1", name).create_errors(
        workload(selector=selector, template=template(hostPID=True, containers=[]))
    )
    assert causes == [("spec.selector.matchExpressions[0].operator", "Invalid"), ("spec.selector", "Invalid")]


@pytest.mark.parametrize("name", ["Deployment", "StatefulSet", "DaemonSet"])
def test_collision_count_cannot_decrease(kind_of: Any, name: str) -> None:
    workloads = kind_of("apps/v1", name)
    old = workloads.stored(workload())
    old["status"]["collisionCount"] = 2
    for count in (1, 0, None):
        causes = workloads.change_errors(
            old, lambda o, c=count: o["status"].update(collisionCount=c), "status"
        )
        assert causes == [("status.collisionCount", "Invalid")]
    assert not workloads.change_errors(old, lambda obj: obj["status"].update(collisionCount=3), "status")


DEPLOYMENT_STRATEGIES = [
    ({"rollingUpdate": {"maxSurge": "150%"}}, []),
    ({"rollingUpdate": {"maxUnavailable": "101%"}}, [("rollingUpdate.maxUnavailable", "Invalid")]),
    (
        {"rollingUpdate": {"maxSurge": 0, "maxUnavailable": "0%"}},
        [("rollingUpdate.maxUnavailable", "Invalid")],
    ),
    ({"rollingUpdate": {"maxSurge": "ten"}}, [("rollingUpdate.maxSurge", "Invalid")]),
    ({"type": "Recreate"}, []),
    ({"type": "Recreate", "rollingUpdate": {}}, [("rollingUpdate", "Forbidden")]),
    ({"type": "Canary"}, [("", "NotSupported")]),
]


@pytest.mark.parametrize(("strategy", "causes"), DEPLOYMENT_STRATEGIES)
def test_invalid_deployment_strategy_is_rejected(
    kind_of: Any, strategy: Object, causes: list[tuple[str, str]]
) -> None:
    refused = kind_of("apps/v1", "Deployment").create_errors(workload(strategy=strategy))
    assert refused == [(f"spec.strategy.{field}".rstrip("."), reason) for field, reason in causes]


DAEMON_SET_STRATEGIES = [
    ({}, []),
    ({"type": "OnDelete"}, []),
    ({"rollingUpdate": {"maxSurge": 1}}, [("rollingUpdate.maxSurge", "Invalid")]),
    ({"rollingUpdate": {"maxSurge": "10%", "maxUnavailable": 0}}, []),
    ({"rollingUpdate": {"maxUnavailable": 0}}, [("rollingUpdate.maxUnavailable", "Required")]),
    ({"rollingUpdate": {"maxUnavailable": "120%"}}, [("rollingUpdate.maxUnavailable", "Invalid")]),
    ({"type": "Later"}, [("", "NotSupported")]),
]


@pytest.mark.parametrize(("strategy", "causes"), DAEMON_SET_STRATEGIES)
def test_invalid_daemon_set_strategy_is_rejected(
    kind_of: Any, strategy: Object, causes: list[tuple[str, str]]
) -> None:
    refused = kind_of("apps/v1", "DaemonSet").create_errors(workload(updateStrategy=strategy))
    assert refused == [(f"spec.updateStrategy.{field}".rstrip("."), reason) for field, reason in causes]


def test_deployment_annotations_raise_the_generation(kind_of: Any) -> None:
    deployments = kind_of("apps/v1", "Deployment")
    old = deployments.stored(workload())
    new = deployments.changed(old, lambda obj: obj["metadata"].update(annotations={"a": "b"}))
    assert new["metadata"]["generation"] == 2
    new = deployments.changed(old, lambda obj: obj["metadata"].update(annotations={"a": "b"}), "status")
    assert new["metadata"]["generation"] == 1


def test_deployment_status_keeps_labels_but_not_annotations(kind_of: Any) -> None:
    deployments = kind_of("apps/v1", "Deployment")

    def annotate(obj: Object) -> None:
        obj["metadata"] |= {"labels": {"a": "b"}, "annotations": {"c": "d"}}

    new = deployments.changed(deployments.stored(workload()), annotate, "status")
    assert "labels" not in new["metadata"] and new["metadata"]["annotations"] == {"c": "d"}


TEMPLATE_GENERATION = "deprecated.daemonset.template.generation"


def test_daemon_set_counts_template_changes(kind_of: Any) -> None:
    daemon_sets = kind_of("apps/v1", "DaemonSet")
    old = daemon_sets.stored(workload())
    assert old["metadata"]["annotations"] == {TEMPLATE_GENERATION: "1"}

    def change_template(obj: Object) -> None:
        obj["metadata"]["annotations"][TEMPLATE_GENERATION] = "77"
        obj["spec"]["template"]["spec"]["hostPID"] = True

    assert daemon_sets.change_errors(old, change_template) == []
    new = daemon_sets.changed(old, change_template)
    assert new["metadata"]["annotations"] == {TEMPLATE_GENERATION: "2"}
    new = daemon_sets.changed(old, lambda obj: obj["metadata"].pop("annotations"))
    assert new["metadata"]["annotations"] == {TEMPLATE_GENERATION: "1"}


def test_invalid_template_generation_is_a_bad_request(kind_of: Any) -> None:
    from kubist.model.meta.status import APIError

    daemon_set = workload()
    daemon_set["metadata"]["annotations"] = {TEMPLATE_GENERATION: "many"}
    with pytest.raises(APIError) as caught:
        kind_of("apps/v1", "DaemonSet").create(daemon_set)
    assert caught.value.code == 400


def claim(name: str, **spec: Any) -> Object:
    size = {"requests": {"storage": "1024Mi"}}
    return {
        "metadata": {"name": name},
        "spec": {"accessModes": ["ReadWriteOnce"], "resources": size, **spec},
    }


def test_claim_templates_are_volumes_of_the_pods(kind_of: Any) -> None:
    mounts = [{"name": "data", "mountPath": "/data"}]
    pod = template(containers=[{"name": "c", "image": "i", "volumeMounts": mounts}])
    stateful_sets = kind_of("apps/v1", "StatefulSet")
    new = stateful_sets.stored(workload(template=pod, volumeClaimTemplates=[claim("data")]))
    stored = new["spec"]["volumeClaimTemplates"][0]
    assert (stored["kind"], stored["status"], stored["spec"]["volumeMode"]) == (
        "PersistentVolumeClaim",
        {"phase": "Pending"},
        "Filesystem",
    )
    assert stateful_sets.create_errors(workload(template=pod)) == [
        ("spec.template.spec.containers[0].volumeMounts[0].name", "NotFound")
    ]


@pytest.mark.parametrize(
    ("field", "value", "allowed"),
    [
        ("serviceName", "other", False),
        ("podManagementPolicy", "Parallel", False),
        ("volumeClaimTemplates", [claim("logs")], False),
        ("replicas", 4, True),
        ("ordinals", {"start": 2}, True),
        ("minReadySeconds", 3, True),
        ("revisionHistoryLimit", 1, True),
        ("persistentVolumeClaimRetentionPolicy", {"whenScaled": "Delete"}, True),
    ],
)
def test_stateful_set_mutable_fields(kind_of: Any, field: str, value: Any, allowed: bool) -> None:
    stateful_sets = kind_of("apps/v1", "StatefulSet")
    old = stateful_sets.stored(workload(volumeClaimTemplates=[claim("data")]))
    causes = stateful_sets.change_errors(old, lambda obj: obj["spec"].update({field: value}))
    assert causes == ([] if allowed else [("spec", "Forbidden")])


def test_explicit_rolling_update_type_gets_no_defaults(kind_of: Any) -> None:
    stateful_sets = kind_of("apps/v1", "StatefulSet")
    assert stateful_sets.stored(workload())["spec"]["updateStrategy"] == {
        "type": "RollingUpdate",
        "rollingUpdate": {"partition": 0},
    }
    named = stateful_sets.stored(workload(updateStrategy={"type": "RollingUpdate"}))
    assert named["spec"]["updateStrategy"] == {"type": "RollingUpdate"}


@pytest.mark.parametrize(
    ("data", "causes"),
    [({"a": 1}, []), (None, [("data", "Required")]), ([1], [("data", "Required")])],
)
def test_controller_revision_data_must_be_an_object(
    kind_of: Any, data: Any, causes: list[tuple[str, str]]
) -> None:
    revision = {"metadata": {"name": "x"}, "data": data, "revision": 1}
    assert kind_of("apps/v1", "ControllerRevision").create_errors(revision) == causes


def test_controller_revision_data_is_immutable(kind_of: Any) -> None:
    revisions = kind_of("apps/v1", "ControllerRevision")
    old = revisions.stored({"metadata": {"name": "x"}, "data": {"a": 1}, "revision": 1})
    assert revisions.change_errors(old, lambda obj: obj["data"].update(a=2)) == [("data", "Invalid")]
    assert revisions.change_errors(old, lambda obj: obj.update(revision=2)) == []
