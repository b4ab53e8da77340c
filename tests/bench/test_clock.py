"""Clock of a server: moved over HTTP and from Python, and followed by everything in the server."""

from __future__ import annotations

import datetime
from typing import Any

import pytest
import time_machine

from kubist.testing import Cluster
from kubist.testing.cluster import Refused
from tests.waiting import wait_for

CLOCK = "/kubist/v1/clock"
HOUR = datetime.timedelta(hours=1)


def made_at(cluster: Cluster, name: str) -> datetime.datetime:
    [made] = cluster.load(
        {"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": name}, "data": {"a": "b"}}
    )
    return datetime.datetime.fromisoformat(made["metadata"]["creationTimestamp"])


def system_time() -> datetime.datetime:
    return datetime.datetime.now(datetime.UTC)


def test_objects_show_the_moved_time(cluster: Cluster) -> None:
    assert made_at(cluster, "before") - system_time() < HOUR / 2
    cluster.clock.advance("1h")
    assert HOUR / 2 < made_at(cluster, "after") - system_time() < HOUR * 1.5
    cluster.clock.set("2040-01-02T03:04:05Z")
    cluster.clock.freeze()
    cluster.clock.set(datetime.datetime(2040, 1, 2, 3, 4, 5, tzinfo=datetime.UTC))
    assert made_at(cluster, "frozen").isoformat() == "2040-01-02T03:04:05+00:00"
    managed = cluster.request("GET", "/api/v1/namespaces/default/configmaps/frozen")["metadata"][
        "managedFields"
    ]
    assert [entry["time"] for entry in managed] == ["2040-01-02T03:04:05Z"]
    cluster.clock.reset()
    assert abs(made_at(cluster, "again") - system_time()) < HOUR / 2


def test_events_expire_when_the_clock_is_advanced(cluster: Cluster) -> None:
    event = {
        "apiVersion": "v1",
        "kind": "Event",
        "metadata": {"name": "e", "namespace": "default"},
        "involvedObject": {"kind": "Pod", "namespace": "default", "name": "a"},
    }
    cluster.load(event)
    cluster.clock.advance("59m")
    assert [found["metadata"]["name"] for found in cluster.list("events")] == ["e"]
    cluster.clock.advance("2m")
    wait_for(lambda: cluster.list("events") == [])


def test_tokens_expire_when_the_clock_is_advanced(cluster: Cluster) -> None:
    path = "/api/v1/namespaces/default/serviceaccounts/default/token"
    wait_for(lambda: any(a["metadata"]["name"] == "default" for a in cluster.list("serviceaccounts")))
    token = cluster.request("POST", path, {"spec": {"expirationSeconds": 600}})["status"]["token"]

    def review() -> Any:
        body = {"apiVersion": "authentication.k8s.io/v1", "kind": "TokenReview", "spec": {"token": token}}
        return cluster.request("POST", "/apis/authentication.k8s.io/v1/tokenreviews", body)["status"]

    assert review()["authenticated"]
    cluster.clock.advance("20m")
    assert not review().get("authenticated")
    assert "expired" in review()["error"]


@pytest.mark.kubist(workloads=True)
def test_finished_job_is_deleted_after_its_time_to_live(cluster: Cluster) -> None:
    spec = {
        "ttlSecondsAfterFinished": 3600,
        "template": {
            "spec": {"restartPolicy": "Never", "containers": [{"name": "c", "image": "c"}]},
        },
    }
    cluster.load({"apiVersion": "batch/v1", "kind": "Job", "metadata": {"name": "j"}, "spec": spec})
    cluster.wait("job/j", "Complete")
    cluster.clock.advance("61m")
    wait_for(lambda: cluster.list("jobs") == [])


def test_loops_work_while_the_clock_is_frozen(cluster: Cluster) -> None:
    cluster.clock.freeze()
    cluster.load({"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": "n"}})
    cluster.load({"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": "c", "namespace": "n"}})
    cluster.delete("namespace/n")
    wait_for(lambda: "n" not in [found["metadata"]["name"] for found in cluster.list("namespaces")])


def test_ages_in_tables_follow_the_clock(cluster: Cluster) -> None:
    made_at(cluster, "c")
    cluster.clock.advance("48h")
    headers = {
        "Authorization": f"Bearer {cluster.token}",
        "Accept": "application/json;as=Table;g=meta.k8s.io;v=v1",
    }
    path = "/api/v1/namespaces/default/configmaps/c"
    assert b'"2d"' in cluster._connections.send("GET", path, None, headers)[1]


def test_state_is_shown(cluster: Cluster) -> None:
    cluster.clock.freeze()
    cluster.clock.set("2030-01-01T00:00:00Z")
    state = cluster.request("GET", CLOCK)
    assert (state["now"], state["frozen"], state["speed"]) == ("2030-01-01T00:00:00.000000Z", True, 0.0)
    assert repr(cluster.clock) == "<clock 2030-01-01T00:00:00.000000Z, frozen>"
    assert cluster.clock.now == datetime.datetime(2030, 1, 1, tzinfo=datetime.UTC)
    cluster.clock.run(speed=60)
    assert cluster.request("GET", CLOCK)["speed"] == 60
    assert cluster.request("DELETE", CLOCK)["offset"] == 0


@pytest.mark.parametrize(
    ("body", "fields"),
    [
        ({"now": "yesterday"}, ["now"]),
        ({"now": 5}, ["now"]),
        ({"now": "2030-01-01T00:00:00Z", "speed": -1}, ["speed"]),
        ({"advance": "-1h"}, ["advance"]),
        ({"advance": "soon"}, ["advance"]),
        ({"offset": "-800000h"}, ["offset"]),
        ({"offset": "1h", "advance": "1h"}, ["advance"]),
        ({"frozen": "yes"}, ["frozen"]),
        ({"frozen": True, "speed": 2}, ["speed"]),
        ({"sped": 2}, ["sped"]),
    ],
)
def test_invalid_moves_are_rejected_and_change_nothing(
    cluster: Cluster, body: dict[str, Any], fields: list[str]
) -> None:
    with pytest.raises(Refused) as refused:
        cluster.request("PUT", CLOCK, body)
    assert refused.value.code == 422
    assert [cause["field"] for cause in refused.value.status["details"]["causes"]] == fields
    assert cluster.request("GET", CLOCK)["offset"] == 0


def test_body_that_is_no_object_is_rejected(cluster: Cluster) -> None:
    bodies: list[Any] = [[], "text", 5]
    for body in bodies:
        with pytest.raises(Refused) as refused:
            cluster.request("PUT", CLOCK, body)
        assert refused.value.code == 400


@pytest.mark.parametrize("body", [{}, {"advance": None}])
def test_empty_move_changes_nothing(cluster: Cluster, body: dict[str, Any]) -> None:
    assert cluster.request("PUT", CLOCK, body)["offset"] == 0
    assert cluster.inner.bench is not None and not cluster.inner.bench.clock.is_moved


def test_clusters_in_one_process_have_clocks_of_their_own(cluster: Cluster) -> None:
    with Cluster() as other:
        cluster.clock.set("2040-01-01T00:00:00Z")
        assert made_at(cluster, "c").year == 2040
        assert made_at(other, "c").year != 2040


def test_naive_datetime_is_rejected(cluster: Cluster) -> None:
    with pytest.raises(ValueError, match="time zone"):
        cluster.clock.set(datetime.datetime(2030, 1, 1))


def test_time_machine_moves_a_clock_that_the_test_has_not_moved(cluster: Cluster) -> None:
    real = system_time()
    with time_machine.travel(2 * HOUR):
        assert cluster.clock.now - real > HOUR
        assert made_at(cluster, "ahead") - real > HOUR
    cluster.clock.freeze()
    frozen = cluster.clock.now
    with time_machine.travel(2 * HOUR):
        assert cluster.clock.now == frozen
