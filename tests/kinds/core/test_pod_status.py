"""Pod subresources that write: status, resize, ephemeralcontainers."""

from __future__ import annotations

from typing import Any

import pytest

from kubist.model.meta.object import Object

Causes = list[tuple[str, str]]


@pytest.fixture
def pods(kind_of: Any) -> Any:
    return kind_of("v1", "Pod")


def running(pods: Any, status: Object | None = None, **fields: Any) -> Object:
    created: Object = pods.stored({"spec": {"containers": [{"name": "a", "image": "i:1"}], **fields}})
    created["status"].update(status or {})
    return created


ENDED = {"containerStatuses": [{"name": "a", "state": {"terminated": {"exitCode": 1}}}]}
AGAIN = {"containerStatuses": [{"name": "a", "state": {"running": {}}}]}
STATUSES: list[tuple[Object, Object, Object, Causes]] = [
    ({}, {}, {"phase": "Whatever"}, []),
    ({}, {}, {"qosClass": "Guaranteed"}, [("status.qosClass", "Invalid")]),
    ({}, {}, {"qosClass": ""}, []),
    ({}, ENDED, AGAIN, []),
    ({"restartPolicy": "OnFailure"}, ENDED, AGAIN, []),
    ({"restartPolicy": "Never"}, ENDED, AGAIN, [("status.containerStatuses[0].state", "Forbidden")]),
    ({}, {}, {"podIPs": [{"ip": "1.2.3.4"}, {"ip": "::1"}]}, []),
    ({}, {}, {"podIPs": [{"ip": "1.2.3.4"}, {"ip": "1.2.3.5"}]}, [("status.podIPs", "Invalid")]),
    ({}, {}, {"podIPs": [{"ip": "x"}]}, [("status.podIPs[0]", "Invalid")]),
    ({}, {}, {"hostIP": "1.2.3.4", "hostIPs": [{"ip": "1.2.3.5"}]}, [("status.hostIPs[0].ip", "Invalid")]),
    ({"nodeName": "n"}, {}, {"nominatedNodeName": "m"}, [("status.nominatedNodeName", "Forbidden")]),
    ({}, {}, {"conditions": [{"type": "a b", "status": "True"}]}, [("status.conditions[0].Type", "Invalid")]),
    (
        {},
        {},
        {"resourceClaimStatuses": [{"name": "c"}]},
        [("status.resourceClaimStatuses[0].name", "Invalid")],
    ),
]


@pytest.mark.parametrize(("spec", "before", "change", "causes"), STATUSES)
def test_status_update_rules(pods: Any, spec: Object, before: Object, change: Object, causes: Causes) -> None:
    old = running(pods, before, **spec)
    assert pods.change_errors(old, lambda obj: obj["status"].update(change), "status") == causes


def test_status_update_keeps_spec_and_owners_but_changes_labels(pods: Any) -> None:
    def change(obj: Object) -> None:
        obj["metadata"]["labels"] = {"a": "b"}
        obj["metadata"]["ownerReferences"] = [{"apiVersion": "v1", "kind": "X", "name": "x", "uid": "u"}]
        obj["spec"]["nodeName"] = "elsewhere"

    new = pods.changed(running(pods), change, "status")
    assert new["metadata"]["labels"] == {"a": "b"}
    assert "ownerReferences" not in new["metadata"]
    assert "nodeName" not in new["spec"]


def test_pod_ip_is_the_first_of_pod_ips(pods: Any) -> None:
    old = running(pods)
    new = pods.changed(old, lambda obj: obj["status"].update(podIPs=[{"ip": "1.2.3.4"}]), "status")
    assert new["status"]["podIP"] == "1.2.3.4"
    new = pods.changed(new, lambda obj: obj["status"].update(podIP="5.6.7.8"), "status")
    assert new["status"]["podIPs"] == [{"ip": "5.6.7.8"}]


def test_omitted_observed_generations_are_kept(pods: Any) -> None:
    conditions = [{"type": "Ready", "status": "True", "observedGeneration": 3}]
    old = running(pods, {"observedGeneration": 4, "conditions": conditions})

    def forget(obj: Object) -> None:
        del obj["status"]["observedGeneration"]
        obj["status"]["conditions"] = [{"type": "Ready", "status": "False"}]

    status = pods.changed(old, forget, "status")["status"]
    assert status["observedGeneration"] == 4
    assert status["conditions"][0]["observedGeneration"] == 3


def resized(**resources: Any) -> Any:
    return lambda obj: obj["spec"]["containers"][0].update(resources=resources)


HALF = {"cpu": "500m", "memory": "1Gi"}
ONE = {"cpu": "1", "memory": "1Gi"}
SIZES: list[tuple[Object, Any, Causes]] = [
    ({"requests": HALF}, resized(requests=ONE), []),
    (
        {"requests": HALF},
        resized(requests={"cpu": "1"}),
        [("spec.containers[0].resources.requests", "Forbidden")],
    ),
    ({"requests": HALF}, resized(requests={**ONE, "ephemeral-storage": "1"}), [("spec", "Forbidden")]),
    ({"limits": ONE}, resized(limits=ONE, requests=HALF), [("spec", "Invalid")]),
    ({}, resized(requests=ONE), [("spec", "Invalid")]),
    (
        {"requests": HALF},
        lambda obj: obj["spec"]["containers"].append({"name": "b", "image": "i"}),
        [
            ("spec.containers", "Forbidden"),
        ],
    ),
]


@pytest.mark.parametrize(("resources", "change", "causes"), SIZES)
def test_resize_rules(pods: Any, resources: Object, change: Any, causes: Causes) -> None:
    old = running(pods, containers=[{"name": "a", "image": "i", "resources": resources}])
    assert pods.change_errors(old, change, "resize") == causes


def test_resize_ignores_other_fields(pods: Any) -> None:
    def change(obj: Object) -> None:
        obj["metadata"]["labels"] = {"a": "b"}
        obj["spec"]["containers"][0]["image"] = "other"
        obj["spec"]["activeDeadlineSeconds"] = 1

    old = running(pods)
    assert pods.changed(old, change, "resize")["spec"] == old["spec"]
    assert "labels" not in pods.changed(old, change, "resize")["metadata"]


EPHEMERAL: list[tuple[Object, Causes]] = [
    ({}, []),
    ({"name": "a"}, [("name", "Duplicate")]),
    ({"targetContainerName": "z"}, [("targetContainerName", "NotFound")]),
    ({"ports": [{"containerPort": 80}]}, [("ports", "Forbidden")]),
    ({"resources": {"requests": {"cpu": "1"}}}, [("resources", "Forbidden")]),
    ({"lifecycle": {}}, [("lifecycle", "Forbidden")]),
]


@pytest.mark.parametrize(("fields", "causes"), EPHEMERAL)
def test_ephemeral_container_rules(pods: Any, fields: Object, causes: Causes) -> None:
    added = {"name": "debug", "image": "i", **fields}
    found = pods.change_errors(
        running(pods), lambda obj: obj["spec"].update(ephemeralContainers=[added]), "ephemeralcontainers"
    )
    assert found == [(f"spec.ephemeralContainers[0].{field}", reason) for field, reason in causes]


def test_ephemeral_containers_cannot_be_removed(pods: Any) -> None:
    old = running(pods)
    old["spec"]["ephemeralContainers"] = [{"name": "debug", "image": "i"}]
    old = pods.decode(old)
    for change in (None, [{"name": "debug", "image": "other"}]):
        causes = pods.change_errors(
            old,
            lambda obj, change=change: obj["spec"].update(ephemeralContainers=change),
            "ephemeralcontainers",
        )
        assert causes == [("spec.ephemeralContainers", "Forbidden")]
