"""Pod subresources that act: binding, eviction, log. They run on the parts of a real server."""

from __future__ import annotations

from collections.abc import Awaitable
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

from kubist.api.kinds.core.pod import strategy
from kubist.api.object_client import ObjectClient
from kubist.model.meta.object import Object
from kubist.model.meta.status import APIError
from tests.kinds.core.scenes import play

NOW = "2030-01-01T00:00:00Z"


async def pod(
    cluster: ObjectClient, name: str = "p", phase: str = "", ready: bool = True, **spec: Any
) -> None:
    metadata = {"name": name, "labels": {"app": "web"}}
    body = {"metadata": metadata, "spec": {"containers": [{"name": "a", "image": "i"}], **spec}}
    await cluster.create("pods", body, "default")

    def report(obj: Object) -> Object:
        conditions = [{"type": "Ready", "status": str(ready)}]
        obj["status"] = {**obj["status"], "phase": phase, "conditions": conditions}
        return obj

    if phase:
        await cluster.mutate("pods", name, "default", report)


async def budget(cluster: ObjectClient, name: str = "b", **status: Any) -> None:
    body = {"metadata": {"name": name}, "spec": {"selector": {"matchLabels": {"app": "web"}}}}
    await cluster.create("poddisruptionbudgets", body, "default", group="policy")

    def report(obj: Object) -> Object:
        obj["status"] = {"observedGeneration": 1, "disruptionsAllowed": 0, **status}
        return obj

    await cluster.mutate("poddisruptionbudgets", name, "default", report, group="policy")


def context(cluster: ObjectClient, name: str, **more: Any) -> Any:
    base = {"objects": cluster, "namespace": "default", "name": name, "now": NOW, "dry_run": False}
    return SimpleNamespace(**{**base, "query": {}, "verb": "create", **more})


async def act(cluster: ObjectClient, subresource: str, name: str = "p", **body: Any) -> Object:
    way: Any = strategy.subresources[subresource]
    answer: Object = await way.create(context(cluster, name), {"metadata": {"name": name}, **body})
    return answer


async def error_of(attempt: Awaitable[Any]) -> tuple[int, str]:
    with pytest.raises(APIError) as caught:
        await attempt
    return caught.value.code, caught.value.reason


def found(cluster: ObjectClient, resource: str, name: str = "p", group: str = "") -> Object:
    obj = cluster.get(resource, name, "default", group=group)
    assert obj is not None
    return obj


def test_binding_schedules_a_pod_once(tmp_path: Path) -> None:
    async def scene(cluster: ObjectClient) -> None:
        await pod(cluster)
        binding: Object = {"metadata": {"name": "p", "labels": {"zone": "z"}}, "target": {"name": "n1"}}
        assert (await act(cluster, "binding", **binding))["status"] == "Success"
        bound = found(cluster, "pods")
        assert bound["spec"]["nodeName"] == "n1"
        assert bound["metadata"]["labels"] == {"app": "web", "zone": "z"}
        assert bound["metadata"]["generation"] == 1
        conditions = [(c["type"], c["status"]) for c in bound["status"]["conditions"]]
        assert conditions == [("PodScheduled", "True")]
        assert await error_of(act(cluster, "binding", target={"name": "n2"})) == (409, "Conflict")

    play(tmp_path, scene, disable_admission_plugins=("ServiceAccount",))


def test_invalid_bindings_are_rejected(tmp_path: Path) -> None:
    async def scene(cluster: ObjectClient) -> None:
        await pod(cluster)
        await pod(cluster, "gated", schedulingGates=[{"name": "g"}])
        assert await error_of(act(cluster, "binding", target={})) == (500, "")
        assert await error_of(act(cluster, "binding", target={"kind": "Pod", "name": "x"})) == (500, "")
        assert await error_of(act(cluster, "binding", "gated", target={"name": "n"})) == (409, "Conflict")
        assert await error_of(act(cluster, "binding", "absent", target={"name": "n"})) == (404, "NotFound")
        other: Object = {"metadata": {"name": "p", "uid": "another"}, "target": {"name": "n"}}
        assert await error_of(act(cluster, "binding", **other)) == (409, "Conflict")

    play(tmp_path, scene, disable_admission_plugins=("ServiceAccount",))


def test_eviction_without_budget_deletes_the_pod(tmp_path: Path) -> None:
    async def scene(cluster: ObjectClient) -> None:
        await pod(cluster, phase="Running", nodeName="n")
        assert (await act(cluster, "eviction"))["status"] == "Success"
        leaving = found(cluster, "pods")
        assert leaving["metadata"]["deletionGracePeriodSeconds"] == 30
        assert leaving["status"]["conditions"][-1]["type"] == "DisruptionTarget"

    play(tmp_path, scene, disable_admission_plugins=("ServiceAccount",))


def test_evictions_use_up_the_budget(tmp_path: Path) -> None:
    async def scene(cluster: ObjectClient) -> None:
        for name in ("p", "q"):
            await pod(cluster, name, phase="Running", nodeName="n")
        await budget(cluster, disruptionsAllowed=1)
        await act(cluster, "eviction")
        status = found(cluster, "poddisruptionbudgets", "b", "policy")["status"]
        assert status["disruptionsAllowed"] == 0
        assert status["disruptedPods"] == {"p": NOW}
        entries = found(cluster, "poddisruptionbudgets", "b", "policy")["metadata"]["managedFields"]
        assert [(e["manager"], e["subresource"]) for e in entries if "disruptedPods" in str(e)] == [
            ("kube-apiserver", "status")
        ]
        assert await error_of(act(cluster, "eviction", "q")) == (429, "TooManyRequests")
        assert "deletionTimestamp" not in found(cluster, "pods", "q")["metadata"]

    play(tmp_path, scene, disable_admission_plugins=("ServiceAccount",))


BUDGETS: list[tuple[str, bool, Object, bool]] = [
    ("Running", True, {"observedGeneration": 0, "disruptionsAllowed": 5}, False),
    ("Running", False, {"currentHealthy": 2, "desiredHealthy": 2}, True),
    ("Running", False, {"currentHealthy": 1, "desiredHealthy": 2}, False),
    ("Pending", True, {}, True),
    ("Failed", True, {}, True),
]


@pytest.mark.parametrize(("phase", "ready", "status", "goes"), BUDGETS)
def test_budgets_protect_healthy_pods(
    tmp_path: Path, phase: str, ready: bool, status: Object, goes: bool
) -> None:
    async def scene(cluster: ObjectClient) -> None:
        await pod(cluster, phase=phase, ready=ready, nodeName="n")
        await budget(cluster, **status)
        if goes:
            await act(cluster, "eviction")
        else:
            assert await error_of(act(cluster, "eviction")) == (429, "TooManyRequests")

    play(tmp_path, scene, disable_admission_plugins=("ServiceAccount",))


def test_eviction_with_two_budgets_fails(tmp_path: Path) -> None:
    async def scene(cluster: ObjectClient) -> None:
        await pod(cluster, phase="Running", nodeName="n")
        await budget(cluster, "one", disruptionsAllowed=1)
        await budget(cluster, "two", disruptionsAllowed=1)
        assert (await error_of(act(cluster, "eviction")))[0] == 500

    play(tmp_path, scene, disable_admission_plugins=("ServiceAccount",))


LOGS: list[tuple[Object, int]] = [
    ({}, 204),
    ({"container": "a", "tailLines": "0"}, 204),
    ({"container": "z"}, 400),
    ({"tailLines": "many"}, 400),
    ({"tailLines": "-1"}, 422),
    ({"sinceTime": "yesterday"}, 400),
    ({"sinceSeconds": "1", "sinceTime": NOW}, 422),
    ({"stream": "Stdout"}, 422),
]


def test_log_options_of_unscheduled_pod(tmp_path: Path) -> None:
    async def scene(cluster: ObjectClient) -> None:
        await pod(cluster)
        logs: Any = strategy.subresources["log"]
        for query, code in LOGS:
            attempt = logs.connect(context(cluster, "p", query=query))
            answer = await attempt if code == 204 else await error_of(attempt)
            assert answer[0] == code

    play(tmp_path, scene, disable_admission_plugins=("ServiceAccount",))
