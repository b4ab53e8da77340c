"""Objects that pods wait for."""

from __future__ import annotations

from typing import Any

import pytest

from tests.simulation.pods import SimulatedPod, container


def env(**source: Any) -> dict[str, Any]:
    return container(env=[{"name": "X", "valueFrom": source}])


@pytest.mark.parametrize(
    ("held", "message", "resource"),
    [
        (env(configMapKeyRef={"name": "o", "key": "k"}), 'configmap "o" not found', "configmaps"),
        (env(secretKeyRef={"name": "o", "key": "k"}), 'secret "o" not found', "secrets"),
        (container(envFrom=[{"configMapRef": {"name": "o"}}]), 'configmap "o" not found', "configmaps"),
        (container(envFrom=[{"secretRef": {"name": "o"}}]), 'secret "o" not found', "secrets"),
    ],
)
def test_missing_object_of_the_environment(held: dict[str, Any], message: str, resource: str) -> None:
    pod = SimulatedPod(held).settle()
    assert (pod.phase, pod.state()) == ("Pending", "CreateContainerConfigError")
    assert pod.held()["state"]["waiting"]["message"] == message
    assert pod.messages("Failed") == [f"Error: {message}"]
    pod.objects[resource, "o"] = {"data": {"k": "v"}}
    assert pod.settle().phase == "Running"


@pytest.mark.parametrize(
    ("held", "message", "resource"),
    [
        (
            env(configMapKeyRef={"name": "o", "key": "k"}),
            "couldn't find key k in ConfigMap n/o",
            "configmaps",
        ),
        (env(secretKeyRef={"name": "o", "key": "k"}), "couldn't find key k in Secret n/o", "secrets"),
    ],
)
def test_missing_key_of_the_environment(held: dict[str, Any], message: str, resource: str) -> None:
    pod = SimulatedPod(held)
    pod.objects[resource, "o"] = {"data": {"other": "v"}}
    assert pod.settle().held()["state"]["waiting"]["message"] == message
    pod.objects[resource, "o"] = {"binaryData": {"k": "v"}}
    assert pod.settle().phase == "Running"


SETUP = 'MountVolume.SetUp failed for volume "v" : '
CLAIM = (
    "Unable to attach or mount volumes: unmounted volumes=[v], unattached volumes=[], failed to process volumes=[v]: "
    "error processing PVC n/{}: "
)


@pytest.mark.parametrize(
    ("volume", "message", "resource", "name"),
    [
        ({"configMap": {"name": "o"}}, SETUP + 'configmap "o" not found', "configmaps", "o"),
        ({"secret": {"secretName": "o"}}, SETUP + 'secret "o" not found', "secrets", "o"),
        (
            {"projected": {"sources": [{"secret": {"name": "o"}}]}},
            SETUP + 'secret "o" not found',
            "secrets",
            "o",
        ),
        (
            {"projected": {"sources": [{"serviceAccountToken": {"path": "t"}}]}},
            SETUP + 'failed to fetch token: serviceaccounts "default" not found',
            "serviceaccounts",
            "default",
        ),
        (
            {"persistentVolumeClaim": {"claimName": "o"}},
            CLAIM.format("o") + 'failed to fetch PVC from API server: persistentvolumeclaims "o" not found',
            "persistentvolumeclaims",
            "o",
        ),
        (
            {"ephemeral": {"volumeClaimTemplate": {}}},
            CLAIM.format("p-v")
            + 'failed to fetch PVC from API server: persistentvolumeclaims "p-v" not found',
            "persistentvolumeclaims",
            "p-v",
        ),
    ],
)
def test_missing_object_of_a_volume(volume: dict[str, Any], message: str, resource: str, name: str) -> None:
    pod = SimulatedPod(volumes=[{"name": "v", **volume}])
    pod.objects.clear()
    pod.settle()
    assert (pod.phase, pod.state()) == ("Pending", "ContainerCreating")
    assert pod.messages("FailedMount") == [message]
    assert pod.conditions()["PodReadyToStartContainers"] == "False"
    pod.settle()
    assert len(pod.events) == 1
    pod.objects[resource, name] = {"status": {"phase": "Bound"}}
    assert pod.settle().phase == "Running"


def test_claim_that_is_not_bound() -> None:
    pod = SimulatedPod(volumes=[{"name": "v", "persistentVolumeClaim": {"claimName": "o"}}])
    pod.objects["persistentvolumeclaims", "o"] = {"status": {"phase": "Pending"}}
    assert pod.settle().messages("FailedMount") == [CLAIM.format("o") + "PVC is not bound"]


@pytest.mark.parametrize(
    ("volume", "resource", "message"),
    [
        (
            {"configMap": {"name": "o", "items": [{"key": "k"}]}},
            "configmaps",
            "configmap references non-existent config key: k",
        ),
        (
            {"secret": {"secretName": "o", "items": [{"key": "k"}]}},
            "secrets",
            "references non-existent secret key: k",
        ),
    ],
)
def test_missing_key_of_a_volume(volume: dict[str, Any], resource: str, message: str) -> None:
    pod = SimulatedPod(volumes=[{"name": "v", **volume}])
    pod.objects[resource, "o"] = {"data": {}}
    assert pod.settle().messages("FailedMount") == [SETUP + message]


def test_several_problems_of_a_projected_volume_are_listed() -> None:
    sources = [
        {"secret": {"name": "a"}},
        {"configMap": {"name": "b"}},
        {"configMap": {"name": "kube-root-ca.crt"}},
    ]
    pod = SimulatedPod(volumes=[{"name": "v", "projected": {"sources": sources}}]).settle()
    assert pod.messages("FailedMount") == [SETUP + '[secret "a" not found, configmap "b" not found]']


def test_optional_objects_are_not_needed() -> None:
    optional = {"name": "o", "optional": True}
    held = container(
        env=[
            {"name": "X", "valueFrom": {"configMapKeyRef": {**optional, "key": "k"}}},
            {"name": "Y", "valueFrom": {"secretKeyRef": {**optional, "key": "k"}}},
        ],
        envFrom=[{"configMapRef": optional}, {"secretRef": optional}],
    )
    volumes = [
        {"name": "a", "configMap": optional},
        {"name": "b", "secret": {"secretName": "o", "optional": True}},
        {"name": "c", "projected": {"sources": [{"secret": optional}, {"configMap": optional}]}},
    ]
    assert SimulatedPod(held, volumes=volumes).settle().phase == "Running"


def test_init_container_waits_for_its_environment() -> None:
    waiting = {**env(secretKeyRef={"name": "o", "key": "k"}), "name": "setup"}
    pod = SimulatedPod(initContainers=[waiting]).settle()
    assert (pod.state("setup"), pod.state()) == ("CreateContainerConfigError", "PodInitializing")


def test_missing_pull_secrets_are_reported_and_the_pod_runs() -> None:
    secrets = [{"name": "there"}, {"name": "one"}, {"name": "two"}, {}]
    pod = SimulatedPod(imagePullSecrets=secrets)
    pod.objects["secrets", "there"] = {}
    pod.settle()
    assert pod.phase == "Running"
    assert pod.messages("FailedToRetrieveImagePullSecret") == [
        "Unable to retrieve some image pull secrets (one, two); attempting to pull the image may not succeed."
    ]
