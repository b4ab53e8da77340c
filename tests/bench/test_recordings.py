"""Recordings over HTTP: their lines, filters and limits."""

from __future__ import annotations

import json
import threading
from typing import Any

import pytest

from kubist.testbench.recording import capture
from kubist.testbench.recording import recording as recording_module
from kubist.testing import Cluster
from kubist.testing.cluster import Refused
from tests.bench.fault_clients import MAPS, ask, config_map, connect, fails, watching
from tests.bench.recording_clients import RECORDINGS, following, lines, recording, until
from tests.waiting import wait_for

MERGE = "application/merge-patch+json"


def test_line_has_the_request_and_its_response(cluster: Cluster) -> None:
    with recording(cluster) as path:
        ask(cluster, "POST", f"{MAPS}?fieldManager=me", config_map("a", x="1"), User_Agent="operator/1.0")
        [line] = lines(cluster, path)
    assert line["user"] == "admin" and "system:masters" in line["groups"]
    assert line["userAgent"] == "operator/1.0"
    assert (line["method"], line["path"], line["query"]) == ("POST", MAPS, "fieldManager=me")
    assert (line["verb"], line["group"], line["version"]) == ("create", "", "v1")
    assert (line["resource"], line["subresource"]) == ("configmaps", "")
    assert (line["namespace"], line["name"]) == ("default", "a")
    assert line["requestObject"]["data"] == {"x": "1"} and line["contentType"] == "application/json"
    assert line["status"] == 201 and line["duration"] > 0 and line["time"].endswith("Z")
    assert line["responseObject"]["metadata"]["uid"] == line["after"]["metadata"]["uid"]
    assert "before" not in line and "authorization" not in json.dumps(line).lower()
    assert cluster.token not in json.dumps(line)


def test_writes_have_the_object_before_and_after(cluster: Cluster) -> None:
    cluster.load(config_map("a", x="1"))
    with recording(cluster) as path:
        cluster.request("PATCH", f"{MAPS}/a", {"data": {"x": "2"}}, MERGE)
        cluster.request("PATCH", f"{MAPS}/a", {"data": {"x": "2"}}, MERGE)
        cluster.delete("cm/a")
        patch, same, delete = lines(cluster, path)
    assert patch["patch"] == {"data": {"x": "2"}} and patch["patchType"] == MERGE
    assert (patch["before"]["data"], patch["after"]["data"]) == ({"x": "1"}, {"x": "2"})
    assert "before" not in same and "after" not in same
    assert delete["before"]["data"] == {"x": "2"} and "after" not in delete


def test_dry_run_changes_nothing(cluster: Cluster) -> None:
    with recording(cluster) as path:
        cluster.request("POST", f"{MAPS}?dryRun=All", config_map("a"))
        [line] = lines(cluster, path)
    assert line["status"] == 201 and "after" not in line


def test_subresource_shows_the_change_of_its_object(cluster: Cluster) -> None:
    pod = {"metadata": {"name": "p"}, "spec": {"containers": [{"name": "c", "image": "i"}]}}
    cluster.request("POST", "/api/v1/namespaces/default/pods", pod)
    with recording(cluster, resource="pods/status") as path:
        cluster.request(
            "PATCH", "/api/v1/namespaces/default/pods/p/status", {"status": {"phase": "Running"}}, MERGE
        )
        [line] = lines(cluster, path)
    assert line["subresource"] == "status"
    assert line["before"]["status"]["phase"] == "Pending" and line["after"]["status"]["phase"] == "Running"


def test_collection_deletion_lists_the_names(cluster: Cluster) -> None:
    cluster.load(config_map("a"), config_map("b"))
    with recording(cluster) as path:
        cluster.request("DELETE", MAPS)
        [line] = lines(cluster, path)
    assert {"default/a", "default/b"} <= set(line["deleted"])


def test_rejected_requests_are_recorded(cluster: Cluster) -> None:
    with recording(cluster) as path:
        ask(cluster, "GET", f"{MAPS}/none")
        ask(cluster, "GET", MAPS, Authorization="Bearer wrong")
        ask(cluster, "POST", MAPS, {"metadata": {"name": "UPPER"}})
        missing, unknown, invalid = lines(cluster, path)
    assert (missing["status"], missing["reason"]) == (404, "NotFound")
    assert missing["responseObject"]["kind"] == "Status"
    assert (unknown["status"], unknown["user"]) == (401, "")
    assert "wrong" not in json.dumps(unknown)
    assert (invalid["status"], invalid["reason"]) == (422, "Invalid")


def test_injected_faults_are_recorded(cluster: Cluster) -> None:
    with recording(cluster) as path:
        with cluster.faults.add(verb="create", resource="configmaps", status=503):
            assert ask(cluster, "POST", MAPS, config_map("a"))[0] == 503
        with cluster.faults.add(verb="create", resource="configmaps", close="after"):
            fails(lambda: ask(cluster, "POST", MAPS, config_map("a")))
        failed, closed = lines(cluster, path)
    assert failed["status"] == 503
    assert closed["closed"] is True and "status" not in closed
    assert closed["after"]["metadata"]["name"] == "a"


def test_control_api_is_not_recorded(cluster: Cluster) -> None:
    with recording(cluster) as path:
        cluster.request("GET", "/kubist/v1/clock")
        assert lines(cluster, path) == []


def test_recording_works_with_a_moved_clock(cluster: Cluster) -> None:
    with recording(cluster) as path:
        cluster.clock.set("2040-01-01T00:00:00Z")
        cluster.load(config_map("a"))
        [line] = lines(cluster, path)
    assert line["time"].startswith("2040-01-01") or line["time"].startswith("2039-12-31T23:59:59")
    assert line["after"]["metadata"]["creationTimestamp"].startswith("2040-01-01")


# Watches


def test_watch_is_open_and_then_ends(cluster: Cluster) -> None:
    with recording(cluster, verb="watch") as path:
        with watching(cluster) as watch:
            cluster.load(config_map("a"))
            until(watch, "a")
            [line] = lines(cluster, path)
            assert line["open"] is True and line["events"] >= 1 and line["status"] == 200
        [line] = wait_for(lambda: [found for found in lines(cluster, path) if "open" not in found])
    assert line["verb"] == "watch" and line["events"] >= 1


def test_follower_sees_requests_and_the_end_of_watches(cluster: Cluster) -> None:
    with recording(cluster, resource="configmaps") as path, following(cluster, f"{path}?watch") as found:
        with watching(cluster):
            opened = next(found)
        ended = next(found)
        cluster.list("cm")
        assert next(found)["verb"] == "list"
    assert opened["open"] is True and "open" not in ended
    assert opened["id"] == ended["id"]


def test_follower_ends_with_the_recording(cluster: Cluster) -> None:
    id_ = cluster.request("POST", RECORDINGS, {})["id"]
    with following(cluster, f"{RECORDINGS}/{id_}?watch=true") as found:
        cluster.list("cm")
        assert next(found)["verb"] == "list"
        cluster.request("DELETE", f"{RECORDINGS}/{id_}")
        assert list(found) == []
    with pytest.raises(Refused, match="not found"):
        cluster.request("GET", f"{RECORDINGS}/{id_}")


def test_follower_ends_with_the_server(cluster: Cluster) -> None:
    id_ = cluster.request("POST", RECORDINGS, {})["id"]
    with following(cluster, f"{RECORDINGS}/{id_}?watch=true") as found:
        cluster.stop()
        assert list(found) == []


# Filters and limits


@pytest.mark.parametrize(
    ("spec", "recorded"),
    [
        ({}, ["create", "create", "get", "list"]),
        ({"verb": ["get", "list"]}, ["get", "list"]),
        ({"resource": "secrets"}, ["create"]),
        ({"resource": "configmaps", "name": "a*"}, ["create", "get"]),
        ({"namespace": "other"}, []),
        ({"user": "admin", "userAgent": "op"}, ["list"]),
    ],
)
def test_filters(cluster: Cluster, spec: dict[str, Any], recorded: list[str]) -> None:
    with recording(cluster, **spec) as path:
        ask(cluster, "POST", MAPS, config_map("a"))
        ask(cluster, "POST", MAPS.replace("configmaps", "secrets"), {"metadata": {"name": "s"}})
        ask(cluster, "GET", f"{MAPS}/a")
        ask(cluster, "GET", MAPS, User_Agent="operator/1")
        assert [line["verb"] for line in lines(cluster, path)] == recorded


def test_full_recording_says_what_it_dropped(cluster: Cluster) -> None:
    with recording(cluster, maxEntries=2) as path:
        for _ in range(5):
            cluster.list("cm")
        first, second, last = lines(cluster, path)
        [state] = cluster.request("GET", RECORDINGS)["items"]
    assert first["verb"] == second["verb"] == "list"
    assert last == {"dropped": 3, "reason": "the limit maxEntries of 2 requests was reached"}
    assert state["dropped"] == 3 and state["entries"] == 2 and state["maxEntries"] == 2
    with recording(cluster, maxBytes=3000) as path:
        for _ in range(5):
            cluster.list("cm")
        assert lines(cluster, path)[-1]["reason"] == "the limit maxBytes of 3000 bytes was reached"


def test_recordings_of_a_server_have_a_limit(cluster: Cluster, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(capture, "MOST_BYTES", 5000)
    with recording(cluster) as one, recording(cluster) as two:
        for _ in range(5):
            cluster.list("cm")
        assert "all recordings" in lines(cluster, one)[-1]["reason"]
        assert "all recordings" in lines(cluster, two)[-1]["reason"]
    monkeypatch.setattr(capture, "MOST_RECORDINGS", 0)
    with pytest.raises(Refused) as refused:
        cluster.request("POST", RECORDINGS, {})
    assert refused.value.code == 409


def test_long_bodies_are_omitted(cluster: Cluster) -> None:
    with recording(cluster) as path:
        for name in ("a", "b"):
            cluster.request("POST", MAPS, config_map(name, x="x" * 900_000))
        cluster.list("cm")
        first, _, listed = lines(cluster, path)
    assert len(first["requestObject"]["data"]["x"]) == 900_000
    assert listed["omitted"] == ["responseObject"] and "responseObject" not in listed


def test_lines_after_an_id(cluster: Cluster) -> None:
    with recording(cluster) as path:
        for _ in range(3):
            cluster.list("cm")
        ids = [line["id"] for line in lines(cluster, path)]
        assert [line["id"] for line in lines(cluster, f"{path}?after={ids[1]}")] == ids[2:]


@pytest.mark.parametrize(
    ("body", "code", "said"),
    [
        ({"verbs": "get"}, 422, 'verbs: Forbidden: unknown field; did you mean "verb"?'),
        ({"verb": "gets"}, 422, "verb: Invalid value"),
        ({"resource": "Deployments"}, 422, "resource: Invalid value"),
        ({"user": 5}, 422, "user: Invalid value"),
        ({"namespace": []}, 422, "namespace: Invalid value"),
        ({"maxEntries": 0}, 422, "maxEntries: Invalid value"),
        ({"maxEntries": 10**9}, 422, "maxEntries: Invalid value"),
        ({"maxBytes": "1"}, 422, "maxBytes: Invalid value"),
        ({"nth": 1}, 422, "nth: Forbidden: unknown field"),
        ([], 400, "the body must be a JSON object"),
    ],
)
def test_invalid_recordings_are_rejected(kubist_server: Cluster, body: Any, code: int, said: str) -> None:
    with pytest.raises(Refused) as refused:
        kubist_server.request("POST", RECORDINGS, body)
    assert refused.value.code == code and said in refused.value.status["message"]
    assert kubist_server.request("GET", RECORDINGS) == {"items": []}


@pytest.mark.parametrize("query", ["watch=maybe", "after=-1", "after=x", "after=" + "9" * 30, "since=1"])
def test_invalid_queries_are_rejected(kubist_server: Cluster, query: str) -> None:
    with recording(kubist_server) as path:
        for where in (path, "/kubist/v1/requests"):
            with pytest.raises(Refused) as refused:
                kubist_server.request("GET", f"{where}?{query}")
            assert refused.value.code == 400
            assert query.partition("=")[0] in refused.value.status["message"]


# Races, representations and slow clients


def test_each_of_concurrent_writes_has_its_own_change(cluster: Cluster) -> None:
    """Writes of one object that overlap are told apart by their resource versions."""
    cluster.load(config_map("a", x="0"))

    def write(number: int) -> None:
        assert ask(cluster, "PATCH", f"{MAPS}/a", {"data": {f"k{number}": "1"}}, Content_Type=MERGE)[0] == 200

    with recording(cluster) as path:
        threads = [threading.Thread(target=write, args=(number,)) for number in range(8)]
        with cluster.faults.add(verb="patch", resource="configmaps", delay_after="200ms"):
            for thread in threads:
                thread.start()
            for thread in threads:
                thread.join()
        found = lines(cluster, path)
    assert len(found) == 8
    for line in found:
        [key] = line["patch"]["data"]
        assert set(line["after"]["data"]) - set(line["before"]["data"]) == {key}
        assert (
            line["after"]["metadata"]["resourceVersion"]
            == line["responseObject"]["metadata"]["resourceVersion"]
        )


def test_bodies_of_all_representations_are_decoded(cluster: Cluster) -> None:
    yaml = "apiVersion: v1\nkind: ConfigMap\nmetadata: {name: yaml}\ndata: {x: '1'}\n"
    with recording(cluster) as path:
        connection = connect(cluster)

        def send(
            method: str, path: str, body: str | bytes | None = None, **headers: str
        ) -> tuple[int, bytes]:
            sent = {name.replace("_", "-"): value for name, value in headers.items()}
            connection.request(method, path, body, sent | {"Authorization": f"Bearer {cluster.token}"})
            response = connection.getresponse()
            return response.status, response.read()

        protobuf = "application/vnd.kubernetes.protobuf"
        assert send("POST", MAPS, yaml, Content_Type="application/yaml")[0] == 201
        raw = send("GET", f"{MAPS}/yaml", Accept=protobuf)[1]
        assert send("PUT", f"{MAPS}/yaml", raw, Content_Type=protobuf, Accept="application/json")[0] == 200
        assert send("POST", MAPS, b"{", Content_Type="application/json")[0] == 400
        connection.close()
        create, get, update, malformed = lines(cluster, path)
    assert create["requestObject"]["data"] == {"x": "1"}
    assert get["responseObject"]["data"] == {"x": "1"} and get["responseObject"]["kind"] == "ConfigMap"
    assert update["requestObject"]["data"] == {"x": "1"} and update["contentType"] == protobuf
    assert malformed["omitted"] == ["requestObject"] and malformed["reason"] == "BadRequest"


def test_slow_client_gets_everything_in_order(cluster: Cluster) -> None:
    """A recording of several megabytes is sent as the client reads it."""
    with recording(cluster) as path:
        for number in range(30):
            cluster.request("POST", MAPS, config_map(f"c{number}", x="x" * 200_000))
        with following(cluster, path) as found:
            first = next(found)
            cluster.list("pods")
            rest = list(found)
    names = [line["name"] for line in (first, *rest) if line["verb"] == "create"]
    assert names == [f"c{number}" for number in range(30)]


def test_follower_that_does_not_read_is_told_what_it_missed(
    cluster: Cluster, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(recording_module, "MOST_WAITING", 2)
    with (
        recording(cluster, resource="configmaps", maxBytes=256 << 20) as path,
        following(cluster, f"{path}?watch") as found,
    ):
        wait_for(lambda: cluster.inner.bench.recorder.get(path.rpartition("/")[2]).followers)  # type: ignore[union-attr]
        for number in range(20):
            cluster.request("POST", MAPS, config_map(f"c{number}", x="x" * 900_000))
        seen = 0
        for line in found:
            seen += line.get("dropped", 1)
            if seen == 20:
                break
    assert seen == 20
