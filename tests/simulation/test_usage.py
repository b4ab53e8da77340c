"""Usage of simulated pods: annotations first, then resource requests."""

from __future__ import annotations

import pytest

from kubist.cluster.control.usage import parse_usage, total, usage_of, usage_problem
from kubist.model.meta.object import Object

REQUESTS = {"resources": {"requests": {"cpu": "100m", "memory": "32Mi"}}}


def pod(
    annotations: dict[str, str] | None = None, *, states: tuple[str, ...] = ("running", "running")
) -> Object:
    names = ("web", "log")
    return {
        "metadata": {"name": "p", "annotations": annotations or {}},
        "spec": {"containers": [{"name": "web", **REQUESTS}, {"name": "log"}]},
        "status": {
            "containerStatuses": [{"name": n, "state": {s: {}}} for n, s in zip(names, states, strict=True)]
        },
    }


def shown(obj: Object) -> dict[str, dict[str, str]]:
    return {name: {r: str(q) for r, q in usage.items()} for name, usage in usage_of(obj).items()}


def test_requests_are_the_default_usage() -> None:
    assert shown(pod()) == {"web": {"cpu": "100m", "memory": "32Mi"}, "log": {"cpu": "0", "memory": "0"}}


def test_annotation_applies_to_every_container_and_keeps_other_requests() -> None:
    assert shown(pod({"kubist.io/usage": "cpu=250m"})) == {
        "web": {"cpu": "250m", "memory": "32Mi"},
        "log": {"cpu": "250m", "memory": "0"},
    }


def test_annotation_of_a_container_comes_first() -> None:
    annotations = {"kubist.io/usage": "cpu=250m, memory=1Gi", "kubist.io/usage.log": "cpu=2"}
    assert shown(pod(annotations)) == {
        "web": {"cpu": "250m", "memory": "1Gi"},
        "log": {"cpu": "2", "memory": "1Gi"},
    }


def test_only_running_containers_have_usage() -> None:
    assert list(shown(pod(states=("waiting", "running")))) == ["log"]
    assert shown(pod(states=("terminated", "waiting"))) == {}


def test_running_sidecar_has_usage() -> None:
    obj = pod()
    obj["spec"]["initContainers"] = [
        {"name": "side", "restartPolicy": "Always", **REQUESTS},
        {"name": "done"},
    ]
    obj["status"]["initContainerStatuses"] = [
        {"name": "side", "state": {"running": {}}},
        {"name": "done", "state": {"terminated": {}}},
    ]
    assert list(shown(obj)) == ["side", "web", "log"]


def test_total_adds_the_containers() -> None:
    sums = total(usage_of(pod({"kubist.io/usage": "cpu=250m,memory=1Mi"})))
    assert (str(sums["cpu"]), str(sums["memory"])) == ("500m", "2Mi")


@pytest.mark.parametrize(
    ("text", "why"),
    [
        ("lots", '"lots" is not of the form cpu=AMOUNT or memory=AMOUNT'),
        ("gpu=1", '"gpu" is not a resource with a usage; use cpu or memory'),
        ("cpu=much", '"much" is not a quantity; write for example cpu=250m or memory=64Mi'),
        ("cpu=-1", "cpu must not be negative"),
    ],
)
def test_malformed_annotation_is_explained_and_ignored(text: str, why: str) -> None:
    with pytest.raises(ValueError, match=why.partition("(")[0]):
        parse_usage(text)
    assert (
        usage_problem({"other": "x", "kubist.io/usage.web": text}) == f"annotation kubist.io/usage.web: {why}"
    )
    assert shown(pod({"kubist.io/usage": text})) == shown(pod())


def test_well_formed_annotations_have_no_problem() -> None:
    assert usage_problem({"kubist.io/usage": "cpu=1", "kubist.io/usage-other": "x"}) == ""
