"""Default outcomes of pods that controllers make, such as those of Argo Workflows and Tekton."""

from __future__ import annotations

import itertools
from typing import Any

import pytest

from kubist.cluster.simulation.outcome_defaults import LONGEST, defaults_for
from kubist.model.meta.objectmeta import ANNOTATIONS_LIMIT
from kubist.testing import Cluster
from tests.waiting import wait_for

KEY = "kubist.io/outcome"
MERGE = "application/merge-patch+json"
_numbers = itertools.count()


def defaults(*levels: dict[str, str], own: dict[str, str] | None = None, **images: str) -> dict[str, str]:
    """Default outcomes of a pod with these containers, without the prefix of the annotations."""
    containers = [{"name": name, "image": image} for name, image in images.items()]
    pod = {
        "metadata": {"annotations": {f"{KEY}{key}": text for key, text in (own or {}).items()}},
        "spec": {"containers": containers, "initContainers": [{"name": "init", "image": "argoexec"}]},
    }
    above = [{f"{KEY}{key}": text for key, text in level.items()} for level in levels]
    return {key.removeprefix(KEY): text for key, text in defaults_for(pod, above).items()}


def test_nearest_annotation_counts() -> None:
    assert defaults({"": "fail"}, {"": "succeed"}, main="a") == {"": "fail"}
    assert defaults({}, {"": "succeed"}, main="a", wait="b") == {"": "succeed"}
    assert defaults({}, {}, main="a") == {}
    assert defaults({"": ""}, {"": "succeed"}, main="a") == {}


def test_annotation_of_the_pod_counts_first() -> None:
    assert defaults({"": "fail", ".main": "fail 2"}, own={"": "run"}, main="a") == {}
    assert defaults({"": "fail"}, own={".main": "run"}, main="a", wait="b") == {"": "fail"}
    assert defaults({"": "fail"}, own={".main": "run"}, main="a") == {}


def test_annotation_of_a_container_is_for_that_one() -> None:
    workflow, namespace = {".main": "fail 2"}, {"": "succeed", ".main": "run", ".init": "fail 9", ".x": "run"}
    assert defaults(workflow, namespace, main="a", wait="b") == {
        ".main": "fail 2",
        ".wait": "succeed",
        ".init": "fail 9",
    }
    assert defaults({"": "fail"}, namespace, main="a") == {"": "fail", ".init": "fail 9"}


@pytest.mark.parametrize(
    ("image", "outcome"),
    [
        ("alpine", "succeed after 2s, ready after 1s"),
        ("alpine:3.20", "succeed after 2s, ready after 1s"),
        ("alpine@sha256:00", "succeed after 2s, ready after 1s"),
        ("docker.io/library/alpine", "run"),
        ("localhost:5000/curlimages/curl:8", "fail 3"),
        ("curl", "run"),
        ("a/nginx:1.2-debian", "fail 4"),
        ("nginx:1-debian", "run"),
        ("proxy", ""),
    ],
)
def test_alternatives_are_for_images(image: str, outcome: str) -> None:
    text = (
        "succeed after 2s, image alpine, ready after 1s; fail 3, image */curl; image proxy; "
        "fail 4, IMAGE *nginx*.*-deb*; run"
    )
    assert defaults({"": text}, main=image) == ({"": outcome} if outcome else {})


def test_image_without_an_alternative_has_the_default_of_the_next_level() -> None:
    levels = ({"": "fail, image curl"}, {"": "succeed"})
    assert defaults(*levels, main="curl", wait="argoexec") == {".main": "fail", ".wait": "succeed"}
    assert defaults(levels[0], main="curl", wait="argoexec") == {".main": "fail"}


def test_very_long_default_is_malformed() -> None:
    (text,) = defaults({"": "succeed," * LONGEST}, main="a").values()
    assert len(text) < 200
    many: dict[str, Any] = {f"c{number}": "b" for number in range(5_000)}
    assert defaults({"": "image a; " * 50 + "fail"}, **many) == {"": "fail"}


@pytest.fixture
def namespace(server: Cluster) -> str:
    name = f"ns-{next(_numbers)}"
    server.load({"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": name}})
    return name


def annotate(server: Cluster, path: str, outcome: str | None, suffix: str = "") -> None:
    server.request("PATCH", path, {"metadata": {"annotations": {KEY + suffix: outcome}}}, MERGE)


def argo_pod(name: str, namespace: str, owner: dict[str, Any] | None = None) -> dict[str, Any]:
    """Pod of a step of Argo Workflows."""
    labels = {"workflows.argoproj.io/workflow": "hello", "workflows.argoproj.io/completed": "false"}
    annotations = {
        "workflows.argoproj.io/node-name": "hello",
        "kubectl.kubernetes.io/default-container": "main",
    }
    metadata = {"name": name, "namespace": namespace, "labels": labels, "annotations": annotations}
    executor = {"image": "quay.io/argoproj/argoexec:v3.7.0"}
    emissary = ["/var/run/argo/argoexec", "emissary", "--loglevel", "info", "--"]
    return {
        "apiVersion": "v1",
        "kind": "Pod",
        "metadata": {**metadata, "ownerReferences": [owner] if owner else []},
        "spec": {
            "restartPolicy": "Never",
            "initContainers": [{**executor, "name": "init", "command": ["argoexec", "init"]}],
            "containers": [
                {**executor, "name": "wait", "command": ["argoexec", "wait"]},
                {"name": "main", "image": "busybox", "command": [*emissary, "echo"], "args": ["hello"]},
            ],
        },
    }


def codes(pod: dict[str, Any]) -> dict[str, int]:
    return {
        held["name"]: held["state"]["terminated"]["exitCode"] for held in pod["status"]["containerStatuses"]
    }


def has_ended(pod: dict[str, Any]) -> bool:
    return pod["status"]["phase"] in ("Succeeded", "Failed")


def test_pod_of_argo_workflows_ends_by_its_namespace(server: Cluster, namespace: str) -> None:
    annotate(server, f"/api/v1/namespaces/{namespace}", "succeed after 100ms")
    server.load(argo_pod("hello", namespace))
    ended = server.wait("pod/hello", has_ended, namespace=namespace)
    assert codes(ended) == {"main": 0, "wait": 0}
    assert ended["metadata"]["annotations"][KEY] == "succeed after 100ms"
    assert "kubectl.kubernetes.io/default-container" in ended["metadata"]["annotations"]


def made(server: Cluster, manifest: dict[str, Any], path: str) -> dict[str, Any]:
    """Creates an object. Returns a reference to it as the controller of others."""
    obj = server.request("POST", path, manifest)
    reference = {key: manifest[key] for key in ("apiVersion", "kind")}
    return {**reference, "name": obj["metadata"]["name"], "uid": obj["metadata"]["uid"], "controller": True}


def test_owner_of_the_owner_has_the_default(server: Cluster, namespace: str) -> None:
    """As a Workflow: a custom resource, which a CronWorkflow may own."""
    group = f"{namespace}.example.com"
    server.load(*(crd(group, kind) for kind in ("CronWorkflow", "Workflow")))
    api, metadata = {"apiVersion": f"{group}/v1"}, {"name": "hello", "annotations": {f"{KEY}.main": "fail 3"}}
    cron = {**api, "kind": "CronWorkflow", "metadata": metadata}
    above = made(server, cron, f"/apis/{group}/v1/namespaces/{namespace}/cronworkflows")
    workflow = {**api, "kind": "Workflow", "metadata": {"name": "hello", "ownerReferences": [above]}}
    owner = made(server, workflow, f"/apis/{group}/v1/namespaces/{namespace}/workflows")
    annotate(server, f"/api/v1/namespaces/{namespace}", "succeed")
    server.load(argo_pod("hello", namespace, owner))
    assert codes(server.wait("pod/hello", has_ended, namespace=namespace)) == {"main": 3, "wait": 0}
    other = argo_pod("other", namespace, {**owner, "uid": "another"})
    # Without an owner that exists, the garbage collector would delete the pod.
    other["metadata"]["ownerReferences"].append({**owner, "controller": False})
    server.load(other)
    assert codes(server.wait("pod/other", has_ended, namespace=namespace)) == {"main": 0, "wait": 0}


def crd(group: str, kind: str) -> dict[str, Any]:
    plural = f"{kind.lower()}s"
    schema = {"openAPIV3Schema": {"type": "object"}}
    version = {"name": "v1", "served": True, "storage": True, "schema": schema}
    names = {"plural": plural, "kind": kind}
    spec = {"group": group, "scope": "Namespaced", "names": names, "versions": [version]}
    metadata = {"name": f"{plural}.{group}"}
    kinds = {"apiVersion": "apiextensions.k8s.io/v1", "kind": "CustomResourceDefinition"}
    return {**kinds, "metadata": metadata, "spec": spec}


STEPS = {"step-build": "gcr.io/kaniko-project/kaniko:v1", "step-report": "tekton/entrypoint"}


def tekton_pod(name: str, namespace: str, **images: str) -> dict[str, Any]:
    """Pod of a TaskRun of Tekton."""
    entrypoint = ["/tekton/bin/entrypoint", "-wait_file", "/tekton/run/0/out"]
    containers = [{"name": step, "image": image, "command": entrypoint} for step, image in images.items()]
    prepare = {"name": "prepare", "image": "tekton/entrypoint", "command": ["/ko-app/entrypoint", "init"]}
    spec = {"restartPolicy": "Never", "containers": containers, "initContainers": [prepare]}
    metadata = {"name": name, "namespace": namespace, "labels": {"tekton.dev/taskRun": name}}
    return {"apiVersion": "v1", "kind": "Pod", "metadata": metadata, "spec": spec}


def test_pods_that_start_later_have_the_new_default(server: Cluster, namespace: str) -> None:
    path = f"/api/v1/namespaces/{namespace}"
    annotate(server, path, "fail 4, image */kaniko; succeed, image tekton/*; run")
    server.load(tekton_pod("first", namespace, sidecar="docker:dind", **STEPS))
    server.wait("pod/first", "jsonpath={.status.phase}=Running", namespace=namespace)
    annotate(server, path, "succeed")
    server.load(tekton_pod("second", namespace, **STEPS))
    assert codes(server.wait("pod/second", has_ended, namespace=namespace)) == dict.fromkeys(STEPS, 0)
    first = server.get("pod/first", namespace=namespace)
    sidecar, *steps = sorted(first["status"]["containerStatuses"], key=lambda held: str(held["name"]))
    assert "running" in sidecar["state"]
    assert [held["state"]["terminated"]["exitCode"] for held in steps] == [4, 0]


def test_malformed_default_is_a_warning_about_the_pod(server: Cluster, namespace: str) -> None:
    annotate(server, f"/api/v1/namespaces/{namespace}", "explode, image web; run")
    pod = {
        "metadata": {"name": f"{namespace}-web"},
        "spec": {"containers": [{"name": "web", "image": "web:1"}]},
    }
    server.request("POST", f"/api/v1/namespaces/{namespace}/pods", pod)
    server.wait(f"pod/{namespace}-web", "Ready", namespace=namespace)
    assert warning(server, namespace) == 'annotation kubist.io/outcome: "explode" is not an outcome'


def warning(server: Cluster, namespace: str) -> str:
    """Message of the Event InvalidAnnotation, once it is written."""

    def messages() -> list[str]:
        events = server.list("events", namespace=namespace)
        return [event["message"] for event in events if event["reason"] == "InvalidAnnotation"]

    wait_for(lambda: bool(messages()), pause=0.02)
    (message,) = messages()
    return str(message)


def test_pod_starts_although_its_default_cannot_be_written(server: Cluster, namespace: str) -> None:
    annotate(server, f"/api/v1/namespaces/{namespace}", "succeed")
    metadata = {"name": "full", "annotations": {"a": "x" * (ANNOTATIONS_LIMIT - 1)}}
    pod = {"metadata": metadata, "spec": {"containers": [{"name": "web", "image": "web:1"}]}}
    server.request("POST", f"/api/v1/namespaces/{namespace}/pods", pod)
    server.wait("pod/full", "Ready", namespace=namespace)
    assert warning(server, namespace).startswith(
        'default outcome: Pod "full" is invalid: metadata.annotations: Too long'
    )
