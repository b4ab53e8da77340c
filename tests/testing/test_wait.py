"""`cluster.wait`: conditions, fields, functions, several objects, states that last, and messages after the timeout."""

from __future__ import annotations

import asyncio
import threading
import time
from collections.abc import Callable, Iterator
from typing import Any

import pytest

from kubist.model.meta.object import Object
from kubist.testing import Cluster
from tests.testing.widgets import CRD, WIDGET

Later = Callable[[Callable[[], Any]], None]


@pytest.fixture
def later() -> Iterator[Later]:
    """Calls a function in 50 ms, in a thread."""
    timers: list[threading.Timer] = []

    def start(call: Callable[[], Any]) -> None:
        timers.append(threading.Timer(0.05, call))
        timers[-1].start()

    yield start
    for timer in timers:
        timer.join()


def pod(name: str, **labels: str) -> Object:
    metadata = {"name": name, "labels": labels}
    return {
        "apiVersion": "v1",
        "kind": "Pod",
        "metadata": metadata,
        "spec": {"containers": [{"name": "c", "image": "i"}]},
    }


def set_status(cluster: Cluster, name: str, **status: Any) -> None:
    cluster.patch(f"pod/{name}", {"status": status}, subresource="status")


def condition(status: str, **more: Any) -> list[Object]:
    return [{"type": "Ready", "status": status, **more}]


def test_function_that_reads_a_missing_field_is_not_yet_true(cluster: Cluster, later: Later) -> None:
    cluster.load(CRD, WIDGET)
    later(lambda: cluster.patch("widget/one", {"status": {"phase": "X", "rows": [1]}}))
    assert cluster.wait("widget/one", lambda w: w["status"]["phase"] == "X")["status"]["phase"] == "X"
    cases: list[tuple[Callable[[Object], object], str]] = [
        (lambda w: w["status"]["none"], "KeyError: 'none'"),
        (lambda w: w["status"]["rows"][3], "IndexError: list index out of range"),
        (lambda w: w["status"]["phase"]["x"], "TypeError: string indices must be integers"),
        (lambda w: w["status"]["phase"].nothing, "AttributeError: 'str' object has no attribute 'nothing'"),
    ]
    for function, error in cases:
        with pytest.raises(TimeoutError) as caught:
            cluster.wait("widget/one", function, timeout=0.01)
        assert f"; the function failed with {error}" in str(caught.value)
        assert " (test_wait.py:" in str(caught.value)
        assert "; status: {'phase': 'X'" in str(caught.value)


def test_condition_with_a_status(cluster: Cluster) -> None:
    cluster.create(pod("p"))
    set_status(cluster, "p", conditions=condition("False"))
    for until in ("Ready=False", "ready=false", "condition=Ready=False"):
        assert cluster.wait("pod/p", until, timeout=1)
    with pytest.raises(TimeoutError, match="pods/p: not Ready after"):
        cluster.wait("pod/p", "condition=Ready", timeout=0.01)
    with pytest.raises(TimeoutError, match="pods/p: not Ready=Unknown after"):
        cluster.wait("pod/p", "Ready=Unknown", timeout=0.01)


def test_condition_of_an_older_generation_does_not_count(cluster: Cluster) -> None:
    cluster.load(CRD, WIDGET)
    cluster.patch("widget/one", {"status": {"conditions": condition("True", observedGeneration=1)}})
    generation = cluster.patch("widget/one", {"spec": {"size": 2}})["metadata"]["generation"]
    assert generation > 1
    with pytest.raises(
        TimeoutError, match="of an older generation: the controller has not seen the last change"
    ):
        cluster.wait("widget/one", timeout=0.01)


@pytest.mark.parametrize(
    "path",
    [
        "jsonpath={.status.phase}=Running",
        "jsonpath=.status.phase=Running",
        "jsonpath=status.phase=Running",
        "jsonpath='{.status.phase}'=Running",
        "jsonpath={.status.phase}",
        'jsonpath={.status.conditions[?(@.type=="Ready")].status}=True',
        "jsonpath={.status.conditions[0].status}=True",
        "jsonpath={.spec.enableServiceLinks}=true",
        "jsonpath={.spec.terminationGracePeriodSeconds}=30",
    ],
)
def test_field(cluster: Cluster, path: str, later: Later) -> None:
    cluster.create(pod("p"))
    later(lambda: set_status(cluster, "p", phase="Running", conditions=condition("True")))
    assert cluster.wait("pod/p", path)["kind"] == "Pod"


def test_message_shows_the_value_of_the_field(cluster: Cluster) -> None:
    cluster.create(pod("p"))
    with pytest.raises(
        TimeoutError, match=r"pods/p: not \{.status.phase\}=Running after .* s; it is Pending"
    ):
        cluster.wait("pod/p", "jsonpath={.status.phase}=Running", timeout=0.01)
    with pytest.raises(
        TimeoutError, match=r"not \{.status.podIP\} set after .* s; there is no such field; status:"
    ):
        cluster.wait("pod/p", "jsonpath={.status.podIP}", timeout=0.01)
    with pytest.raises(RuntimeError, match=r'pods/p: "jsonpath=.*" matches \d values instead of one'):
        cluster.wait("pod/p", "jsonpath={.spec..name}=c", timeout=1)


def test_creation(cluster: Cluster, later: Later) -> None:
    later(lambda: cluster.create(pod("p")))
    assert cluster.wait("pod/p", "create")["metadata"]["name"] == "p"


def test_several_objects(cluster: Cluster, later: Later) -> None:
    for name, app in (("a", "web"), ("b", "web"), ("c", "api")):
        cluster.create(pod(name, app=app))
    assert [each["metadata"]["name"] for each in cluster.wait("pods -l app=web", "create", count=2)] == [
        "a",
        "b",
    ]
    assert len(cluster.wait("pods", "create", count=3)) == 3
    assert len(cluster.wait("pods -A --field-selector=status.phase=Pending", "create", count=3)) == 3
    set_status(cluster, "a", conditions=condition("True"))
    with pytest.raises(TimeoutError) as caught:
        cluster.wait("pods -l app=web", "Ready", count=2, timeout=0.01)
    assert str(caught.value).startswith(
        "pods -l app=web -n default: not 2 objects that are all Ready after 0.01 s; there are 2; not Ready: b; status:"
    )
    later(lambda: set_status(cluster, "b", conditions=condition("True")))
    assert len(cluster.wait("pods -l app=web", "Ready", count=2)) == 2
    later(lambda: cluster.patch("pod/b", {"metadata": {"labels": {"app": "api"}}}))
    [found] = cluster.wait("pods -l app=web", count=1)
    assert found["metadata"]["name"] == "a"
    later(lambda: cluster.delete("pod/a", gracePeriodSeconds=0))
    assert cluster.wait("pods -l app=web", count=0) == []
    with pytest.raises(
        TimeoutError, match=r"pods -n default: not 1 objects that are all created after .* there are 2"
    ):
        cluster.wait("pods", "create", count=1, timeout=0.01)


def test_state_that_lasts(cluster: Cluster, later: Later) -> None:
    cluster.load(CRD, WIDGET)
    began = time.perf_counter()
    assert cluster.wait("widget/one", "create", stable_for=0.2)
    assert time.perf_counter() - began >= 0.2

    def flicker() -> None:
        for number in range(10):
            cluster.patch("widget/one", {"status": {"phase": f"{number % 2}"}})
            time.sleep(0.03)

    thread = threading.Thread(target=flicker)
    thread.start()
    found = cluster.wait("widget/one", lambda w: w["status"]["phase"] == "1", stable_for=0.3)
    thread.join()
    assert found["status"]["phase"] == "1"
    with pytest.raises(TimeoutError, match=r"not created after 0.05 s; it is, but not for 1 s yet$"):
        cluster.wait("widget/one", "create", stable_for=1, timeout=0.05)
    later(lambda: cluster.patch("widget/one", {"status": {"phase": "2"}}))
    with pytest.raises(
        TimeoutError, match=r"after 0.3 s; it was for a shorter time, 1 times; status: \{'phase': '2'"
    ):
        cluster.wait("widget/one", lambda w: w["status"]["phase"] == "1", stable_for=1, timeout=0.3)


@pytest.mark.parametrize("kind", ["pod", "deployment"])
def test_cluster_without_workloads_says_so(cluster: Cluster, kind: str) -> None:
    template = {"metadata": {"labels": {"a": "b"}}, "spec": pod("p")["spec"]}
    spec = {"selector": {"matchLabels": {"a": "b"}}, "template": template}
    cluster.load(
        pod("p"), {"apiVersion": "apps/v1", "kind": "Deployment", "metadata": {"name": "p"}, "spec": spec}
    )
    until = "Ready" if kind == "pod" else "Available"
    with pytest.raises(
        TimeoutError, match=r"; this cluster runs no pods: use workloads=True, .*workloads=True\)"
    ):
        cluster.wait(f"{kind}/p", until, timeout=0.01)
    with pytest.raises(TimeoutError) as caught:
        cluster.wait("pod/none", timeout=0.01)
    assert "runs no pods" not in str(caught.value)


@pytest.mark.kubist(workloads=True)
def test_cluster_with_workloads_does_not(cluster: Cluster) -> None:
    cluster.create(pod("p"))
    with pytest.raises(TimeoutError) as caught:
        cluster.wait("pod/p", "Ready=Unknown", timeout=0.01)
    assert "runs no pods" not in str(caught.value)


def test_message_names_the_namespace_of_a_similar_object(cluster: Cluster) -> None:
    cluster.load({"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": "team"}})
    cluster.load({"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": "a", "namespace": "team"}})
    with pytest.raises(
        TimeoutError, match=r"configmaps/a: not created .*does not exist, but in namespace team$"
    ):
        cluster.wait("cm/a", "create", timeout=0.01)


async def wait_for_pod(cluster: Cluster, later: Later) -> None:
    later(lambda: cluster.create(pod("p")))
    found = await cluster.wait_async("pod/p", "create")
    assert found["kind"] == "Pod"
    assert len(await cluster.wait_async("pods", "create", count=1)) == 1
    with pytest.raises(TimeoutError):
        await cluster.wait_async("pod/p", "delete", timeout=0.01)
    async with Cluster(controllers=()) as other:
        assert await other.wait_async("ns/default", "create")


def test_wait_in_asyncio(cluster: Cluster, later: Later) -> None:
    asyncio.run(wait_for_pod(cluster, later))


def test_wait_in_trio(cluster: Cluster, later: Later) -> None:
    trio = pytest.importorskip("trio")
    trio.run(wait_for_pod, cluster, later)
