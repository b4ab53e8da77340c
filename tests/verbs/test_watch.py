"""Watch: no event is lost, doubled or reordered; start, end and selectors of streams."""

from __future__ import annotations

import json
import random
import socket
import threading
import time
from typing import Any

import pytest
import websocket

from kubist.api.verbs import watch as watch_verb
from kubist.model.meta.object import Object
from tests.live import Client, Live, Watch, concurrently, configmap, seen, version
from tests.waiting import wait_for

MAPS = "/api/v1/namespaces/default/configmaps"


def write_about(client: Client, names: list[str], seed: int, rounds: int) -> None:
    dice = random.Random(seed)
    for number in range(rounds):
        name = dice.choice(names)
        what = dice.random()
        if what < 0.4:
            client.ask("POST", MAPS, configmap(name, by=f"{seed}-{number}"))
        elif what < 0.8:
            patch = {"data": {"by": f"{seed}-{number}"}}
            client.ask("PATCH", f"{MAPS}/{name}", patch, "application/merge-patch+json")
        else:
            client.ask("DELETE", f"{MAPS}/{name}")


def read_until(watch: Watch, last: int) -> list[Object]:
    events = []
    for event in watch:
        events.append(event)
        if version(event["object"]) >= last:
            break
    return events


def check_order(events: list[Object], existing: set[str]) -> None:
    """Versions rise, and the type of each event fits the previous state."""
    versions = [version(event["object"]) for event in events]
    assert versions == sorted(set(versions))
    there = set(existing)
    for event in events:
        kind, name, _ = seen(event)
        assert (name in there) == (kind != "ADDED"), event
        there.discard(name) if kind == "DELETED" else there.add(name)


def test_reconnecting_watchers_see_every_change_once_in_order(live: Live) -> None:
    live.cache.window_changes = 15
    client, names = live.client, [f"cm-{n}" for n in range(10)]
    begin = version(client.get(MAPS))
    over = threading.Event()

    def writers() -> None:
        concurrently(*(lambda seed=seed: write_about(client, names, seed, 40) for seed in range(4)))
        client.post(MAPS, configmap("the-end"))
        over.set()

    def steady() -> list[Object]:
        with client.watch(f"{MAPS}?resourceVersion={begin}") as watch:
            return take_to_the_end(watch)

    def take_to_the_end(watch: Watch, most: int = 1 << 30) -> list[Object]:
        events: list[Object] = []
        for event in watch:
            assert event["type"] != "ERROR", event
            events.append(event)
            if event["object"]["metadata"]["name"] == "the-end" or len(events) == most:
                break
        return events

    def hasty(seed: int) -> list[Object]:
        dice = random.Random(seed)
        events: list[Object] = []
        while not events or events[-1]["object"]["metadata"]["name"] != "the-end":
            after = version(events[-1]["object"]) if events else begin
            with client.watch(f"{MAPS}?resourceVersion={after}") as watch:
                events += take_to_the_end(watch, dice.randint(1, 30))
        return events

    _, whole, *others = concurrently(writers, steady, lambda: hasty(1), lambda: hasty(2))
    check_order(whole, {"kube-root-ca.crt"})
    assert len(whole) > 60
    for other in others:
        assert other == whole
    live.cache.window_changes = 0
    with client.watch(f"{MAPS}?resourceVersion={begin}") as watch:
        assert take_to_the_end(watch) == whole


def test_list_and_the_watch_from_its_version_join_without_a_gap(live: Live) -> None:
    client, names = live.client, [f"cm-{n}" for n in range(6)]
    over = threading.Event()

    def joined() -> None:
        while not over.is_set():
            listed = client.get(MAPS)
            state = {item["metadata"]["name"]: version(item) for item in listed["items"]}
            with client.watch(f"{MAPS}?resourceVersion={version(listed)}&timeoutSeconds=1") as watch:
                end = client.get(MAPS)
                events = [] if version(end) == version(listed) else read_until(watch, _last(end, listed))
            check_order(events, set(state))
            for kind, name, at in map(seen, events):
                if at > version(end):
                    break
                if kind == "DELETED":
                    del state[name]
                else:
                    state[name] = at
            assert state == {item["metadata"]["name"]: version(item) for item in end["items"]}

    def _last(end: Object, listed: Object) -> int:
        """A version of the collection that an event must come to: a write after the second list."""
        return version(client.patch(f"{MAPS}/mark", {"data": {"at": str(version(end))}}))

    def writers() -> None:
        try:
            concurrently(*(lambda seed=seed: write_about(client, names, seed, 60) for seed in range(3)))
        finally:
            over.set()

    client.post(MAPS, configmap("mark"))
    concurrently(writers, joined, joined)


def test_update_into_and_out_of_a_selection_is_added_and_deleted(client: Client, namespace: str) -> None:
    maps = f"/api/v1/namespaces/{namespace}/configmaps"
    begin = version(client.get(maps))
    one = configmap("one", namespace)
    one["metadata"]["labels"] = {"app": "x"}
    first = version(client.post(maps, one))
    second = version(client.patch(f"{maps}/one", {"metadata": {"labels": {"app": "y"}}}))
    third = version(client.patch(f"{maps}/one", {"metadata": {"labels": {"app": "x"}}}))
    fourth = version(client.patch(f"{maps}/one", {"data": {"a": "b"}}))
    client.delete(f"{maps}/one")
    with client.watch(f"{maps}?resourceVersion={begin}&labelSelector=app%3Dx") as watch:
        events = watch.take(5)
    assert [(e["type"], version(e["object"])) for e in events[:4]] == [
        ("ADDED", first),
        ("DELETED", second),
        ("ADDED", third),
        ("MODIFIED", fourth),
    ]
    assert events[1]["object"]["metadata"]["labels"] == {"app": "x"}
    assert events[4]["type"] == "DELETED" and version(events[4]["object"]) > fourth
    with client.watch(f"{maps}?resourceVersion={begin}&labelSelector=app+in+(y)") as watch:
        assert [(e["type"], version(e["object"])) for e in watch.take(2)] == [
            ("ADDED", second),
            ("DELETED", third),
        ]


def test_watch_from_a_compacted_version_gets_an_error_event(live: Live) -> None:
    client = live.client
    live.cache.window_changes = 2
    begin = version(client.get(MAPS))
    for number in range(5):
        client.post(MAPS, configmap(f"cm-{number}"))
    now = live.cache.revision
    live.run(live.server.store.compact(now))
    with client.watch(f"{MAPS}?resourceVersion={begin}") as watch:
        assert watch.status == 200
        event = watch.next()
        assert event is not None and event["type"] == "ERROR"
        assert (event["object"]["code"], event["object"]["reason"]) == (410, "Expired")
        oldest = live.cache.collections["/registry/configmaps/"].window_start
        assert event["object"]["message"] == f"too old resource version: {begin} ({oldest})"
        assert watch.next() is None
    for path in ("/api/v1/events", "/apis/events.k8s.io/v1/events"):
        live.cache.collections["/registry/events/"].window_start = now
        with client.watch(f"{path}?resourceVersion={begin}") as watch:
            message = "The resourceVersion for the provided watch is too old."
            assert (watch.next() or {})["object"]["message"] == message
    with client.watch(f"{MAPS}?resourceVersion={now}") as watch:
        client.post(MAPS, configmap("after"))
        assert watch.take(1)[0]["object"]["metadata"]["name"] == "after"


def test_initial_events_end_with_a_bookmark_and_go_on(client: Client, namespace: str) -> None:
    maps = f"/api/v1/namespaces/{namespace}/configmaps"
    for name in ("b", "a"):
        client.post(maps, configmap(name, namespace))
    options = "sendInitialEvents=true&resourceVersionMatch=NotOlderThan&allowWatchBookmarks=true"
    with client.watch(f"{maps}?{options}") as watch:
        events: list[Object] = []
        while not events or events[-1]["type"] != "BOOKMARK":
            events += watch.take(1)
        names = [event["object"]["metadata"]["name"] for event in events[:-1]]
        assert names == sorted(names) and {"a", "b"} <= set(names)
        bookmark = events[-1]["object"]
        assert bookmark["metadata"]["annotations"] == {"k8s.io/initial-events-end": "true"}
        assert version(bookmark) >= max(version(e["object"]) for e in events[:-1])
        made = client.post(maps, configmap("c", namespace))
        assert seen(watch.take(1)[0]) == ("ADDED", "c", version(made))


def test_bookmark_before_the_end_names_a_version_to_resume_from(client: Client, namespace: str) -> None:
    maps = f"/api/v1/namespaces/{namespace}/configmaps"
    begin = version(client.get(maps))
    with client.watch(f"{maps}?resourceVersion={begin}&allowWatchBookmarks=true&timeoutSeconds=3") as watch:
        elsewhere = client.post("/api/v1/namespaces/default/configmaps", configmap(namespace))
        events = list(watch)
    assert [event["type"] for event in events] == ["BOOKMARK"]
    assert version(events[0]["object"]) >= version(elsewhere)


def test_watch_of_one_name_ends_when_its_time_is_over(client: Client, namespace: str) -> None:
    maps = f"/api/v1/namespaces/{namespace}/configmaps"
    begin = version(client.get(maps))
    for name in ("mine", "other"):
        client.post(maps, configmap(name, namespace))
    path = f"/api/v1/watch/namespaces/{namespace}/configmaps/mine?resourceVersion={begin}&timeoutSeconds=1"
    with client.watch(path) as watch:
        assert [event["object"]["metadata"]["name"] for event in watch] == ["mine"]


def test_watcher_that_does_not_read_is_disconnected_and_delays_no_other(
    live: Live, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(watch_verb, "BUFFER_LIMIT", 300_000)
    client = live.client
    client.post(MAPS, configmap("big"))
    begin = version(client.get(MAPS))
    path = f"{MAPS}?resourceVersion={begin}&watch=1"
    deaf = client.connect()
    assert isinstance(deaf.sock, socket.socket)
    deaf.sock.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 4096)
    deaf.request("GET", path, headers=client.headers())
    with client.watch(f"{MAPS}?resourceVersion={begin}") as watch:
        prefix = "/registry/configmaps/"
        wait_for(lambda: len(live.server.api.watchers.get(prefix, ())) == 2)
        cut_after, slowest = 0, 0.0
        for number in range(200):
            started = time.monotonic()
            client.patch(f"{MAPS}/big", {"data": {"x": chr(97 + number % 26) * 60_000}})
            assert watch.take(1)[0]["object"]["data"]["x"][0] == chr(97 + number % 26)
            slowest = max(slowest, time.monotonic() - started)
            if len(live.server.api.watchers[prefix]) == 1:
                cut_after = number
                break
        assert 0 < cut_after < 199
        assert slowest < 10
        client.delete(f"{MAPS}/big")
        assert watch.take(1)[0]["type"] == "DELETED"
    deaf.close()


def test_watcher_may_read_its_initial_state_slowly(live: Live, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(watch_verb, "BUFFER_LIMIT", 50_000)
    client = live.client
    begin = version(client.get(MAPS))
    for number in range(60):
        client.post(MAPS, configmap(f"cm-{number:02}", x="x" * 20_000))
    for start in (f"resourceVersion={begin}", "resourceVersion=0"):
        with client.watch(f"{MAPS}?{start}") as watch:
            time.sleep(0.1)
            client.post(MAPS, configmap(f"last-{start[-1]}"))
            names: list[str] = []
            while not names or names[-1] != f"last-{start[-1]}":
                names.append(watch.take(1)[0]["object"]["metadata"]["name"])
            assert len(names) >= 61
        client.delete(f"{MAPS}/last-{start[-1]}")


@pytest.mark.parametrize("protocol", [None, "binary.k8s.io", "base64.binary.k8s.io", "foo"])
def test_websocket_message_holds_one_event(shared_live: Live, namespace: str, protocol: str | None) -> None:
    client = shared_live.client
    maps = f"/api/v1/namespaces/{namespace}/configmaps"
    begin = version(client.get(maps))
    for name in "abc":
        client.post(maps, configmap(name, namespace))

    def opened(query: str) -> Any:
        return websocket.create_connection(
            f"wss://127.0.0.1:{client.port}{maps}?watch=1&{query}",
            header=client.headers(),
            sslopt={"ca_certs": str(shared_live.pki.path("ca.crt"))},
            subprotocols=[protocol] if protocol else None,
            timeout=10,
        )

    with_past, with_state = opened(f"resourceVersion={begin}"), opened("resourceVersion=0")
    made = version(client.post(maps, configmap("d", namespace)))
    past = [json.loads(with_past.recv()) for _ in range(4)]
    state = [json.loads(with_state.recv()) for _ in range(4)]
    with_past.close()
    with_state.close()
    assert [event["object"]["metadata"]["name"] for event in past] == list("abcd")
    assert {event["object"]["metadata"]["name"] for event in state} == set("abcd")
    assert version(past[-1]["object"]) == made


def test_stopping_server_ends_watches_cleanly(server_pki: Any) -> None:
    ended: list[Object | None] = []
    with Live(server_pki) as running:
        opened = running.client.watch(f"{MAPS}?resourceVersion=0")
        watch = opened.__enter__()
        reader = threading.Thread(target=lambda: ended.extend(list(watch) or [None]))
        reader.start()
    reader.join(5)
    assert not reader.is_alive()
    opened.__exit__(None, None, None)


def test_watch_ends_when_changes_were_missed_and_its_client_lists_again(live: Live) -> None:
    client = live.client
    begin = version(client.get(MAPS))
    store: Any = live.server.store

    async def lose() -> None:
        """The store is unavailable, and compacts the changes of that time before it is back."""
        store._hub.fail("away")
        for name in ("missed-1", "missed-2"):
            await store.create(f"/registry/configmaps/default/{name}", _stored(live, name))
        await store.compact(await store.revision())

    with client.watch(f"{MAPS}?resourceVersion={begin}") as watch:
        wait_for(lambda: live.server.api.watchers.get("/registry/configmaps/"))
        live.run(lose())
        assert watch.next() is None
    with client.watch(f"{MAPS}?resourceVersion={begin}") as watch:
        event = watch.next()
        assert event is not None and event["object"]["code"] == 410
    names = [item["metadata"]["name"] for item in client.get(MAPS)["items"]]
    assert {"missed-1", "missed-2"} <= set(names)


def _stored(live: Live, name: str) -> bytes:
    resource = live.server.resources.stored("", "configmaps")
    assert resource is not None
    return live.server.registry.kind(resource).encode({"metadata": {"name": name, "namespace": "default"}})


def test_events_of_another_version_come_in_order_and_before_their_bookmark(client: Client) -> None:
    schema = {"openAPIV3Schema": {"type": "object", "x-kubernetes-preserve-unknown-fields": True}}
    versions = [{"name": f"v{n}", "served": True, "storage": n == 1, "schema": schema} for n in (1, 2)]
    names = {"plural": "gadgets", "kind": "Gadget"}
    spec = {"group": "watch.example.com", "scope": "Cluster", "names": names, "versions": versions}
    crd = {"metadata": {"name": "gadgets.watch.example.com"}, "spec": spec}
    client.post("/apis/apiextensions.k8s.io/v1/customresourcedefinitions", crd)
    first, second = (f"/apis/watch.example.com/v{n}/gadgets" for n in (1, 2))
    wait_for(lambda: client.ask("GET", second).status == 200)

    def gadget(name: str, number: int) -> Object:
        return {
            "apiVersion": f"watch.example.com/v{number}",
            "kind": "Gadget",
            "metadata": {"name": name},
            "spec": {"by": number},
        }

    for number in range(20):
        client.post(first, gadget(f"old-{number:02}", 1))
    options = "sendInitialEvents=true&resourceVersionMatch=NotOlderThan&allowWatchBookmarks=true"
    with client.watch(f"{second}?{options}") as watch:
        made = concurrently(
            *(
                lambda p=path, v=v: [version(client.post(p, gadget(f"new-{v}-{n}", v))) for n in range(20)]
                for path, v in ((first, 1), (second, 2))
            )
        )
        events = watch.take(61)
    state = [event for event in events if event["type"] == "BOOKMARK"]
    at = events.index(state[0])
    assert len(state) == 1 and at >= 20
    assert max(version(event["object"]) for event in events[:at]) <= version(state[0]["object"])
    later = [version(event["object"]) for event in events[at + 1 :]]
    assert later == sorted(set(later)) and set(later) <= {found for part in made for found in part}
    assert {event["object"]["apiVersion"] for event in events} == {"watch.example.com/v2"}


def test_missing_store_is_reported(live: Live) -> None:
    client = live.client
    assert client.ask("GET", "/readyz").status == 200
    live.run(live.server.store.close())
    answer = client.ask("POST", MAPS, configmap("late"))
    assert (answer.status, answer.json["reason"]) == (503, "ServiceUnavailable")
    wait_for(lambda: client.ask("GET", "/healthz/etcd").status == 500)
    assert b"[-]etcd failed" in client.ask("GET", "/readyz").body
