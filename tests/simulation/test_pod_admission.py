"""Pods that the simulated kubelet rejects."""

from __future__ import annotations

from typing import Any

import pytest

from kubist.cluster.simulation.pod_admission import needs_admission, rejection_of


def node(**spec: Any) -> dict[str, Any]:
    allocatable = {"cpu": "2", "memory": "1Gi", "pods": "2"}
    return {"metadata": {"name": "n", "labels": {}}, "spec": spec, "status": {"allocatable": allocatable}}


def pod(name: str = "p", cpu: str = "1", **spec: Any) -> dict[str, Any]:
    container = {"name": "c", "resources": {"requests": {"cpu": cpu}}}
    metadata = {"name": name, "namespace": "default", "uid": name}
    return {"metadata": metadata, "spec": {"containers": [container], "nodeName": "n", **spec}, "status": {}}


def reason(*others: dict[str, Any], on: dict[str, Any] | None = None, **spec: Any) -> str:
    found = rejection_of(pod(**spec), on or node(), others)
    return found.reason if found is not None else ""


def test_pod_that_fits_is_admitted() -> None:
    assert reason(pod("other")) == ""


def test_resources_of_other_pods_count() -> None:
    assert reason(pod("other"), cpu="1500m") == "OutOfcpu"


def test_number_of_pods_is_limited() -> None:
    assert reason(pod("a", "0"), pod("b", "0"), cpu="0") == "OutOfpods"


def test_extended_resource_that_the_node_does_not_know_is_ignored() -> None:
    wanted = pod()
    wanted["spec"]["containers"][0]["resources"]["requests"]["example.com/gpu"] = "1"
    assert rejection_of(wanted, node(), []) is None


def test_taint_that_evicts_rejects_and_other_taints_do_not() -> None:
    taint = {"key": "k", "effect": "NoExecute"}
    assert reason(on=node(taints=[taint])) == "TaintToleration"
    assert reason(on=node(taints=[taint]), tolerations=[{"key": "k", "operator": "Exists"}]) == ""
    assert reason(on=node(taints=[{"key": "k", "effect": "NoSchedule"}])) == ""


@pytest.mark.parametrize(
    ("status", "needed"),
    [
        ({}, True),
        ({"phase": "Pending", "conditions": [{"type": "PodScheduled", "status": "True"}]}, False),
        ({"phase": "Running", "startTime": "2027-01-15T08:00:00Z"}, False),
        ({"phase": "Failed"}, False),
    ],
)
def test_only_new_pods_that_no_scheduler_bound_are_checked(status: dict[str, Any], needed: bool) -> None:
    assert needs_admission({**pod(), "status": status}) is needed
