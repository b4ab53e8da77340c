"""Logs of simulated pods on a real server."""

from __future__ import annotations

import http.client
import ssl
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager

import pytest

from kubist.model.meta.object import Object
from kubist.testing import Cluster, LogRequest
from kubist.testing.cluster import Refused
from tests.simulation.streams.conftest import MakePod
from tests.waiting import wait_for

LOOP = "for i in 1 2 3; do echo $i; done; sleep 3600"


def path(name: str, query: str = "") -> str:
    return f"/api/v1/namespaces/default/pods/{name}/log?{query}"


@contextmanager
def following(cluster: Cluster, name: str, query: str = "follow=true") -> Iterator[http.client.HTTPResponse]:
    context = ssl.create_default_context(cafile=str(cluster.ca))
    connection = http.client.HTTPSConnection("127.0.0.1", cluster.port, context=context, timeout=30)
    try:
        connection.request("GET", path(name, query), headers={"Authorization": f"Bearer {cluster.token}"})
        yield connection.getresponse()
    finally:
        connection.close()


def annotate(cluster: Cluster, name: str, logs: str) -> None:
    body = {"metadata": {"annotations": {"kubist.io/logs": logs}}}
    cluster.request("PATCH", f"/api/v1/namespaces/default/pods/{name}", body, "application/merge-patch+json")


def test_container_without_logs_says_that_it_is_simulated(cluster: Cluster, make_pod: MakePod) -> None:
    name = make_pod()
    expected = f'kubist: container "main" of pod default/{name} is simulated: no image runs\n'
    assert cluster.request("GET", path(name)) == expected


def test_annotation_is_the_log(cluster: Cluster, make_pod: MakePod) -> None:
    name = make_pod({"kubist.io/logs": "one\ntwo"})
    assert cluster.request("GET", path(name)) == "one\ntwo\n"
    assert cluster.request("GET", path(name, "tailLines=1")) == "two\n"
    assert cluster.request("GET", path(name, "sinceSeconds=3600")) == "one\ntwo\n"
    assert cluster.request("GET", path(name, "limitBytes=2")) == "on"


def test_annotation_of_a_container_comes_first(cluster: Cluster, make_pod: MakePod) -> None:
    name = make_pod({"kubist.io/logs": "of the pod", "kubist.io/logs.main": "of the container"})
    assert cluster.request("GET", path(name, "container=main")) == "of the container\n"


def test_output_of_a_simple_command_is_the_log(cluster: Cluster, make_pod: MakePod) -> None:
    env = [{"name": "WHO", "value": "world"}]
    name = make_pod(command=["sh", "-c", 'echo "hello $WHO"; sleep 3600'], env=env)
    assert cluster.request("GET", path(name)) == "hello world\n"


def test_log_of_a_restarted_container(cluster: Cluster) -> None:
    pod = {
        "apiVersion": "v1",
        "kind": "Pod",
        "metadata": {"name": "restarts", "annotations": {"kubist.io/outcome": "fail 3 times 1"}},
        "spec": {"containers": [{"name": "main", "image": "app", "args": ["sh", "-c", LOOP]}]},
    }
    cluster.load(pod)
    cluster.wait("pod/restarts", _has_restarted, timeout=30)
    assert cluster.request("GET", path("restarts", "previous=true")) == "1\n2\n3\n"
    assert cluster.request("GET", path("restarts")) == "1\n2\n3\n"


def _has_restarted(pod: Object) -> bool:
    return any(status["restartCount"] for status in pod["status"].get("containerStatuses") or ())


def test_previous_log_needs_a_restart(cluster: Cluster, make_pod: MakePod) -> None:
    name = make_pod()
    message = f'previous terminated container "main" in pod "{name}" not found'
    with pytest.raises(Refused, match=message) as raised:
        cluster.request("GET", path(name, "previous=true"))
    assert raised.value.code == 400


def test_follow_shows_new_lines_and_ends_with_the_pod(cluster: Cluster, make_pod: MakePod) -> None:
    name = make_pod({"kubist.io/logs": "one"})
    with following(cluster, name) as response:
        assert (response.status, response.headers["Content-Type"]) == (200, "text/plain")
        assert response.readline() == b"one\n"
        annotate(cluster, name, "one\ntwo")
        assert response.readline() == b"two\n"
        cluster.delete(f"pod/{name}", gracePeriodSeconds=0)
        assert response.readline() == b""


def test_follow_ends_at_the_limit(cluster: Cluster, make_pod: MakePod) -> None:
    name = make_pod({"kubist.io/logs": "one\ntwo"})
    with following(cluster, name, "follow=true&limitBytes=5") as response:
        assert response.read() == b"one\nt"


def test_disconnected_follower_is_forgotten(cluster: Cluster, make_pod: MakePod) -> None:
    name = make_pod({"kubist.io/logs": "one"})
    pods = cluster.inner.api.kubelet._pods  # type: ignore[union-attr]
    with following(cluster, name) as response:
        assert response.readline() == b"one\n"
        assert ("default", name) in pods._followed
    wait_for(lambda: ("default", name) not in pods._followed)


def test_handler_returns_the_log(cluster: Cluster, make_pod: MakePod) -> None:
    name = make_pod({"kubist.io/logs": "annotated"})
    asked: list[LogRequest] = []

    @cluster.on_logs(f"app={name}")
    def lines(request: LogRequest) -> list[str]:
        asked.append(request)
        return ["from", "Python"]

    assert cluster.request("GET", path(name)) == "from\nPython\n"
    assert (asked[0].pod["metadata"]["name"], asked[0].container, asked[0].previous) == (name, "main", False)

    @cluster.on_logs(f"app={name}")
    def none(_: LogRequest) -> None:
        return None

    assert cluster.request("GET", path(name)) == "annotated\n"


def test_handler_is_asked_again_while_a_client_follows(cluster: Cluster, make_pod: MakePod) -> None:
    name, grown = make_pod(), threading.Event()

    @cluster.on_logs(f"app={name}")
    def lines(_: LogRequest) -> str:
        return "one\ntwo\n" if grown.is_set() else "one\n"

    with following(cluster, name) as response:
        assert response.readline() == b"one\n"
        grown.set()
        assert response.readline() == b"two\n"


def test_failing_handler_shows_its_traceback(cluster: Cluster, make_pod: MakePod) -> None:
    name = make_pod()

    @cluster.on_logs(f"app={name}")
    def broken(_: LogRequest) -> str:
        raise ValueError("out of paper")

    assert "ValueError: out of paper" in cluster.request("GET", path(name))


def test_handler_may_use_the_server(cluster: Cluster, make_pod: MakePod) -> None:
    name = make_pod()

    @cluster.on_logs(f"app={name}")
    def slow(request: LogRequest) -> str:
        time.sleep(0.01)
        context = ssl.create_default_context(cafile=str(cluster.ca))
        connection = http.client.HTTPSConnection("127.0.0.1", cluster.port, context=context, timeout=30)
        connection.request("GET", "/version", headers={"Authorization": f"Bearer {cluster.token}"})
        try:
            return f"{request.container} got {connection.getresponse().status}"
        finally:
            connection.close()

    assert cluster.request("GET", path(name)) == "main got 200\n"


def test_handlers_need_simulated_workloads() -> None:
    with Cluster() as plain, pytest.raises(RuntimeError, match="workloads=True"):
        plain.on_logs("app=web")(lambda _: "")
