"""Faults of watches: cut, paused, delayed, without bookmarks; expired history and stale reads."""

from __future__ import annotations

import http.client
import time

import pytest

from kubist.api.verbs import watch as watch_verb
from kubist.model.meta.object import Object
from kubist.testing import Cluster
from kubist.testing.cluster import Refused
from tests.bench.fault_clients import (
    MAPS,
    ask,
    authorization,
    code,
    config_map,
    fails,
    http2_client,
    watching,
)
from tests.live import Watch
from tests.waiting import wait_for

NEW = f"{MAPS}?labelSelector=new"
"""Only config maps of the test; the server makes others."""

# Many tests look at rules that do not act.
pytestmark = pytest.mark.filterwarnings("ignore::kubist.testing.plugin.UnusedFaultWarning")


def make(cluster: Cluster, name: str, **data: str) -> Object:
    return cluster.load(config_map(name, {"new": ""}, **data))[0]


def named(watch: Watch, count: int) -> list[tuple[str, str]]:
    return [(event["type"], event["object"]["metadata"]["name"]) for event in watch.take(count)]


def open_watches(cluster: Cluster) -> int:
    return sum(map(len, cluster.inner.api.watchers.values()))


def test_open_watch_is_cut_at_once_and_others_go_on(cluster: Cluster) -> None:
    with watching(cluster, NEW) as cut, watching(cluster, NEW, **{"User-Agent": "other/1"}) as other:
        wait_for(lambda: open_watches(cluster) == 2)
        fault = cluster.faults.add(
            resource="configmaps", cut_after=0, expression='!request.userAgent.startsWith("other")'
        )
        assert isinstance(fails(cut.response.read), http.client.IncompleteRead)
        assert fault.hits == 1
        make(cluster, "a")
        assert named(other, 1) == [("ADDED", "a")]


def test_watch_is_cut_after_some_events(cluster: Cluster) -> None:
    make(cluster, "a")
    fault = cluster.faults.add(resource="configmaps", cut_after=2, times=1)
    with watching(cluster, NEW) as watch:
        assert named(watch, 1) == [("ADDED", "a")]
        assert fault.hits == 0
        make(cluster, "b")
        assert named(watch, 1) == [("ADDED", "b")]
        assert isinstance(fails(watch.response.read), http.client.IncompleteRead)
    assert fault.hits == 1
    with watching(cluster, NEW) as watch:
        make(cluster, "c")
        assert len(watch.take(3)) == 3


def test_watch_that_ends_before_its_cut_gives_its_turn_back(cluster: Cluster) -> None:
    fault = cluster.faults.add(resource="configmaps", cut_after=1, times=1)
    with watching(cluster, NEW):
        wait_for(lambda: open_watches(cluster) == 1)
    wait_for(lambda: open_watches(cluster) == 0)
    with watching(cluster, NEW) as watch:
        make(cluster, "a")
        assert named(watch, 1) == [("ADDED", "a")]
        fails(watch.response.read)
    assert fault.hits == 1


def test_watch_on_http2_is_reset_and_the_connection_stays(cluster: Cluster) -> None:
    make(cluster, "a")
    cluster.faults.add(resource="configmaps", cut_after=1, times=1)
    with http2_client(cluster) as client:
        reply = client.ask("GET", f"{NEW}&watch=1", extra=authorization(cluster))
        assert reply.reset is not None and b'"ADDED"' in bytes(reply.body)
        assert client.ask("GET", NEW, extra=authorization(cluster)).status == 200


def test_paused_watch_gets_its_events_in_order_afterwards(cluster: Cluster) -> None:
    with watching(cluster, NEW) as watch:
        make(cluster, "a")
        assert named(watch, 1) == [("ADDED", "a")]
        with cluster.faults.add(resource="configmaps", pause="1h") as fault:
            assert fault.hits == 1
            for name in ("b", "c"):
                make(cluster, name)
            [watcher] = [w for open_ in cluster.inner.api.watchers.values() for w in open_]
            writer = watcher.writer
            assert writer is not None
            wait_for(lambda: writer.buffered > 0)
        assert named(watch, 2) == [("ADDED", "b"), ("ADDED", "c")]


def test_pause_ends_after_its_time(cluster: Cluster) -> None:
    cluster.faults.add(resource="configmaps", pause="300ms")
    began = time.monotonic()
    with watching(cluster, NEW) as watch:
        make(cluster, "a")
        assert named(watch, 1) == [("ADDED", "a")]
    assert time.monotonic() - began >= 0.3


def test_paused_watch_starts_with_a_large_state(cluster: Cluster) -> None:
    for number in range(8):
        make(cluster, f"m{number}", text="x" * 100_000)
    with cluster.faults.add(resource="configmaps", pause="1h"), watching(cluster, NEW) as watch:
        wait_for(lambda: open_watches(cluster) == 1)
        [watcher] = [w for open_ in cluster.inner.api.watchers.values() for w in open_]
        assert watcher.writer is not None
        assert 0 < watcher.writer.buffered < 500_000
        make(cluster, "z")
        cluster.faults.clear()
        assert [name for _, name in named(watch, 9)] == [*(f"m{n}" for n in range(8)), "z"]


def test_paused_watch_is_cut_off_at_the_buffer_limit(
    cluster: Cluster, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(watch_verb, "BUFFER_LIMIT", 50_000)
    with watching(cluster, NEW) as watch:
        wait_for(lambda: open_watches(cluster) == 1)
        cluster.faults.add(resource="configmaps", pause="1h")
        for number in range(8):
            make(cluster, f"m{number}", text="x" * 10_000)
        wait_for(lambda: open_watches(cluster) == 0)
        fails(watch.response.read)


def test_events_are_delayed_one_by_one(cluster: Cluster) -> None:
    with watching(cluster, NEW) as watch:
        wait_for(lambda: open_watches(cluster) == 1)
        with cluster.faults.add(resource="configmaps", delay_events=0.3):
            began = time.monotonic()
            make(cluster, "a")
            make(cluster, "b")
            assert named(watch, 2) == [("ADDED", "a"), ("ADDED", "b")]
            assert time.monotonic() - began >= 0.3
        make(cluster, "c")
        assert named(watch, 1) == [("ADDED", "c")]


def test_bookmarks_are_withheld(cluster: Cluster, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(watch_verb, "BOOKMARK_SECONDS", 0.02)
    bookmarked = f"{NEW}&allowWatchBookmarks=true"
    with watching(cluster, bookmarked) as watch:
        assert [event["type"] for event in watch.take(2)] == ["BOOKMARK"] * 2
        with cluster.faults.add(resource="configmaps", withhold_bookmarks=True) as fault:
            assert fault.hits == 1
            with watching(cluster, bookmarked) as other:
                first = other.next()
                assert first is not None
                assert "k8s.io/initial-events-end" in first["object"]["metadata"]["annotations"]
                for name in ("a", "b"):
                    time.sleep(0.1)
                    make(cluster, name)
                assert [event["type"] for event in other.take(2)] == ["ADDED"] * 2
        wait_for(lambda: watch.take(1)[0]["type"] == "ADDED")
        assert [event["type"] for event in watch.take(3)][-1] == "BOOKMARK"


def test_history_expires(cluster: Cluster) -> None:
    make(cluster, "a")
    page = cluster.request("GET", "/api/v1/configmaps?limit=1")
    newest = cluster.request("GET", MAPS)["metadata"]["resourceVersion"]
    with watching(cluster, f"{NEW}&resourceVersion={newest}") as before:
        wait_for(lambda: open_watches(cluster) == 1)
        fault = cluster.faults.add(expire_history=True)
        assert fault.hits == 1
        with watching(cluster, f"{NEW}&resourceVersion={newest}") as watch:
            [event] = watch.take(1)
            assert (event["type"], event["object"]["code"]) == ("ERROR", 410)
            assert watch.next() is None
        got, body, _ = ask(
            cluster, "GET", f"/api/v1/configmaps?limit=1&continue={page['metadata']['continue']}"
        )
        assert (got, body["reason"]) == (410, "Expired")
        exact = f"{MAPS}?resourceVersion={newest}&resourceVersionMatch=Exact"
        assert code(cluster, "GET", exact) == 410
        make(cluster, "b")
        assert named(before, 1) == [("ADDED", "b")]
    version = cluster.request("GET", MAPS)["metadata"]["resourceVersion"]
    with watching(cluster, f"{NEW}&resourceVersion={version}") as watch:
        make(cluster, "c")
        assert named(watch, 1) == [("ADDED", "c")]


def test_history_expires_on_a_matching_request(cluster: Cluster) -> None:
    cluster.faults.add(verb="list", resource="configmaps", expire_history=True, nth=2)
    first = ask(cluster, "GET", "/api/v1/configmaps?limit=1")[1]["metadata"]["continue"]
    assert code(cluster, "GET", f"/api/v1/configmaps?limit=1&continue={first}") == 410


def test_watch_is_cut_and_its_history_expired(cluster: Cluster) -> None:
    version = make(cluster, "a")["metadata"]["resourceVersion"]
    with watching(cluster, f"{NEW}&resourceVersion={version}") as watch:
        wait_for(lambda: open_watches(cluster) == 1)
        cluster.faults.add(resource="configmaps", cut_after=0, expire_history=True, times=1)
        fails(watch.response.read)
    with watching(cluster, f"{NEW}&resourceVersion={version}") as watch:
        assert watch.take(1)[0]["object"]["code"] == 410


def test_reads_are_stale(cluster: Cluster) -> None:
    make(cluster, "kept", k="old")
    gone = make(cluster, "gone")
    with cluster.faults.add(resource="configmaps", stale_read=True) as fault:
        make(cluster, "kept", k="new")
        cluster.delete("configmap/gone")
        make(cluster, "fresh")
        kept = ask(cluster, "GET", f"{MAPS}/kept")[1]
        assert kept["data"] == {"k": "old"}
        assert ask(cluster, "GET", f"{MAPS}/gone")[1]["metadata"]["uid"] == gone["metadata"]["uid"]
        assert code(cluster, "GET", f"{MAPS}/fresh") == 404
        listed = ask(cluster, "GET", NEW)[1]
        assert [item["metadata"]["name"] for item in listed["items"]] == ["gone", "kept"]
        assert code(cluster, "PUT", f"{MAPS}/kept", kept) == 409
        assert fault.hits == 4
        with watching(cluster, NEW) as watch:
            assert named(watch, 2) == [("ADDED", "gone"), ("ADDED", "kept")]
            assert named(watch, 3) == [("MODIFIED", "kept"), ("DELETED", "gone"), ("ADDED", "fresh")]
            make(cluster, "later")
            assert named(watch, 1) == [("ADDED", "later")]
    assert cluster.get("configmap/kept")["data"] == {"k": "new"}


def test_stale_watch_list_ends_its_initial_events(cluster: Cluster) -> None:
    make(cluster, "a")
    query = "sendInitialEvents=true&resourceVersionMatch=NotOlderThan&allowWatchBookmarks=true"
    with cluster.faults.add(resource="configmaps", stale_read=True) as fault:
        make(cluster, "b")
        with watching(cluster, f"{NEW}&{query}") as watch:
            events = watch.take(3)
        assert [event["type"] for event in events] == ["ADDED", "ADDED", "BOOKMARK"]
        assert "k8s.io/initial-events-end" in events[2]["object"]["metadata"]["annotations"]
        assert fault.hits == 1


def test_clients_that_ask_for_a_newer_state_get_it(cluster: Cluster) -> None:
    make(cluster, "a", k="old")
    with cluster.faults.add(resource="configmaps", stale_read=True) as fault:
        version = make(cluster, "a", k="new")["metadata"]["resourceVersion"]
        found = ask(cluster, "GET", f"{MAPS}/a?resourceVersion={version}")[1]
        assert found["data"] == {"k": "new"}
        listed = ask(cluster, "GET", f"{NEW}&resourceVersion={version}")[1]["items"]
        assert [item["data"] for item in listed] == [{"k": "new"}]
        assert fault.hits == 0


def test_reads_from_a_given_version(cluster: Cluster) -> None:
    version = make(cluster, "a", k="old")["metadata"]["resourceVersion"]
    make(cluster, "a", k="new")
    for stale in (version, int(version)):
        with cluster.faults.add(resource="configmaps", stale_read=stale, user_agent="kubist-testing"):
            assert cluster.get("configmap/a")["data"] == {"k": "old"}
    cluster.faults.add(expire_history=True)
    with cluster.faults.add(resource="configmaps", stale_read=version):
        assert code(cluster, "GET", f"{MAPS}/a") == code(cluster, "GET", MAPS) == 410
    with pytest.raises(Refused, match=r"staleRead: .* must not be newer"):
        cluster.faults.add(stale_read=10**9)
