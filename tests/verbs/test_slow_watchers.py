"""A watcher that does not read costs little, misses nothing once it reads, and is cut off if it falls far behind."""

from __future__ import annotations

import time

import pytest

from kubist.api.verbs.watch import BUFFER_LIMIT, STATE_BYTES, Watcher
from kubist.model.meta.object import Object
from tests.live import Live, configmap, seen
from tests.waiting import wait_for

MAPS = "/api/v1/namespaces/default/configmaps"
COUNT = 160
PAD = "x" * 100_000


def fill(live: Live) -> None:
    for number in range(COUNT):
        live.client.post(MAPS, configmap(f"m-{number:03}", pad=PAD))


def watcher(live: Live) -> Watcher:
    def found() -> Watcher | None:
        everyone = (one for watchers in list(live.server.api.watchers.values()) for one in list(watchers))
        return next((one for one in everyone if one.collection.kind.prefix == "/registry/configmaps/"), None)

    one = wait_for(found)
    assert one is not None
    return one


@pytest.mark.parametrize("query", ["", "&sendInitialEvents=true&resourceVersionMatch=NotOlderThan"])
def test_state_is_sent_as_the_client_takes_it_and_changes_follow(live: Live, query: str) -> None:
    fill(live)
    with live.client.watch(f"{MAPS}?allowWatchBookmarks=true{query}") as watch:
        open_ = watcher(live)
        changed = [live.client.patch(f"{MAPS}/m-{n:03}", {"data": {"a": "b"}}) for n in (0, COUNT - 1)]
        live.client.delete(f"{MAPS}/m-001")
        time.sleep(0.3)

        async def waiting() -> int:
            assert open_.writer is not None
            return open_.writer.buffered

        assert live.run(waiting()) <= 3 * STATE_BYTES + 200_000
        state = watch.take(COUNT)
        assert [event["object"]["metadata"]["name"] for event in state] == [f"m-{n:03}" for n in range(COUNT)]
        assert {event["type"] for event in state} == {"ADDED"}
        end: Object | None = watch.next()
        assert end is not None and end["type"] == "BOOKMARK"
        assert end["object"]["metadata"]["annotations"] == {"k8s.io/initial-events-end": "true"}
        begun = int(end["object"]["metadata"]["resourceVersion"])
        after = [seen(event) for event in watch.take(3)]
    assert [(kind, name) for kind, name, _ in after] == [
        ("MODIFIED", "m-000"),
        ("MODIFIED", f"m-{COUNT - 1:03}"),
        ("DELETED", "m-001"),
    ]
    assert [version for _, _, version in after[:2]] == [
        int(o["metadata"]["resourceVersion"]) for o in changed
    ]
    assert begun < after[0][2]


@pytest.mark.parametrize("state", [True, False])
def test_watcher_that_falls_too_far_behind_is_disconnected(live: Live, state: bool) -> None:
    if state:
        fill(live)
    version = live.client.get(f"{MAPS}?limit=1")["metadata"]["resourceVersion"]
    live.client.post(MAPS, configmap("busy"))
    with live.client.watch(MAPS if state else f"{MAPS}?resourceVersion={version}"):
        open_ = watcher(live)
        for number in range(2 * BUFFER_LIMIT // 1_000_000 + 12):
            live.client.patch(f"{MAPS}/busy", {"data": {"pad": str(number) + "y" * 1_000_000}})

        async def closed() -> bool:
            return open_.writer is None or open_.writer.closed

        assert live.run(closed())
