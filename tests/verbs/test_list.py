"""list: consistent chunks while others write, tokens that expire, versions past and to come."""

from __future__ import annotations

import threading
from urllib.parse import quote

import pytest

from kubist.model.meta.object import Object
from tests.live import Answer, Client, Live, concurrently, configmap, version

MAPS = "/api/v1/namespaces/default/configmaps"


def contents(items: list[Object]) -> dict[str, int]:
    return {item["metadata"]["name"]: version(item) for item in items}


def chunks(client: Client, path: str, limit: int) -> tuple[list[Object], set[int]]:
    """All items of a chunked list, and the versions that the chunks said they are of."""
    items: list[Object] = []
    versions = set()
    token = ""
    while True:
        join = "&" if "?" in path else "?"
        page = client.get(f"{path}{join}limit={limit}" + (f"&continue={quote(token)}" if token else ""))
        assert len(page["items"]) <= limit
        items += page["items"]
        versions.add(version(page))
        token = page["metadata"].get("continue", "")
        if not token:
            return items, versions


def test_chunked_lists_are_consistent_while_writers_run(live: Live) -> None:
    client = live.client
    live.cache.window_changes = 60
    for number in range(25):
        client.post(MAPS, configmap(f"cm-{number:03}", n="0"))
    over = threading.Event()

    def write(first: int) -> None:
        for number in range(first, first + 60):
            client.patch(f"{MAPS}/cm-{number % 25:03}", {"data": {"n": str(number)}})
            client.post(MAPS, configmap(f"new-{number:03}"))
            if number % 3 == 0:
                client.delete(f"{MAPS}/new-{number:03}")

    def writers() -> None:
        try:
            concurrently(lambda: write(0), lambda: write(100))
        finally:
            over.set()

    def reader(limit: int) -> int:
        rounds = 0
        while not over.is_set():
            items, versions = chunks(client, MAPS, limit)
            assert len(versions) == 1
            assert [item["metadata"]["name"] for item in items] == sorted(contents(items))
            exact = client.get(f"{MAPS}?resourceVersion={versions.pop()}&resourceVersionMatch=Exact")
            assert contents(items) == contents(exact["items"])
            rounds += 1
        return rounds

    _, *rounds = concurrently(writers, lambda: reader(7), lambda: reader(20))
    assert min(rounds) > 0


def test_list_at_every_version_shows_the_state_of_that_version(live: Live) -> None:
    client = live.client
    history = {version(client.get(MAPS)): contents(client.get(MAPS)["items"])}
    state = dict(next(iter(history.values())))
    for number in range(6):
        made = client.post(MAPS, configmap(f"cm-{number}"))
        state[made["metadata"]["name"]] = version(made)
        history[version(made)] = dict(state)
    client.delete(f"{MAPS}/cm-0")
    for window in (1000, 2, 0):
        live.cache.window_changes = window
        client.patch(f"{MAPS}/cm-5", {"data": {"window": str(window)}})
        for at, wanted in history.items():
            shown = client.get(f"{MAPS}?resourceVersion={at}&resourceVersionMatch=Exact")
            assert version(shown) == at
            assert contents(shown["items"]) == wanted


def compacted(live: Live) -> None:
    """Forget all history before now."""
    live.cache.window_changes = 0
    live.client.post(MAPS, configmap("last-change"))
    live.run(live.server.store.compact(live.cache.revision))


def test_expired_continue_token_is_410_with_a_new_token(live: Live) -> None:
    client = live.client
    for number in range(9):
        client.post(MAPS, configmap(f"cm-{number}"))
    first = client.get(f"{MAPS}?limit=4")
    compacted(live)
    refused = client.ask("GET", f"{MAPS}?limit=4&continue={quote(first['metadata']['continue'])}")
    assert (refused.status, refused.json["reason"]) == (410, "Expired")
    token = refused.json["metadata"]["continue"]
    items = list(first["items"])
    while token:
        page = client.get(f"{MAPS}?limit=4&continue={quote(token)}")
        items += page["items"]
        token = page["metadata"].get("continue", "")
    wanted = client.get(MAPS)["items"]
    assert contents(items) == contents(wanted)


def test_compaction_expires_versions_that_memory_still_holds(live: Live) -> None:
    """A collection without changes of its own: its window reaches back to any revision."""
    client = live.client
    for number in range(9):
        client.post(MAPS, configmap(f"cm-{number}"))
    first = client.get(f"{MAPS}?limit=4")
    client.post("/api/v1/namespaces", {"metadata": {"name": "elsewhere"}})
    now = version(client.get(MAPS))
    page = f"{MAPS}?limit=4&continue={quote(first['metadata']['continue'])}"
    exact = f"{MAPS}?resourceVersionMatch=Exact&resourceVersion="
    assert [item["metadata"]["name"] for item in client.get(page)["items"]] == [
        "cm-4",
        "cm-5",
        "cm-6",
        "cm-7",
    ]
    live.run(live.server.store.compact(now))
    refused = client.ask("GET", page)
    assert (refused.status, refused.json["reason"]) == (410, "Expired")
    assert client.ask("GET", f"{exact}{version(first)}").status == 410
    assert client.ask("GET", f"{exact}{now}").status == 200
    going_on = client.get(f"{MAPS}?limit=4&continue={quote(refused.json['metadata']['continue'])}")
    assert version(going_on) >= now
    assert [item["metadata"]["name"] for item in going_on["items"]] == ["cm-4", "cm-5", "cm-6", "cm-7"]


def test_exact_list_of_a_compacted_version_is_410(live: Live) -> None:
    begin = version(live.client.get(MAPS))
    compacted(live)
    answer = live.client.ask("GET", f"{MAPS}?resourceVersion={begin}&resourceVersionMatch=Exact")
    assert (answer.status, answer.json["reason"]) == (410, "Expired")
    assert not answer.json["metadata"].get("continue")


@pytest.mark.parametrize("query", ["", "&resourceVersionMatch=Exact", "&resourceVersionMatch=NotOlderThan"])
def test_future_version_times_out(client: Client, query: str, monkeypatch: pytest.MonkeyPatch) -> None:
    from kubist.api.verbs import resource_versions

    monkeypatch.setattr(resource_versions, "WAIT_SECONDS", 0.1)
    answer = client.ask("GET", f"{MAPS}?resourceVersion=999999999{query}")
    too_large(answer)


def test_get_of_a_future_version_times_out(client: Client, monkeypatch: pytest.MonkeyPatch) -> None:
    from kubist.api.verbs import resource_versions

    monkeypatch.setattr(resource_versions, "WAIT_SECONDS", 0.1)
    too_large(client.ask("GET", f"{MAPS}/any?resourceVersion=999999999"))


def too_large(answer: Answer) -> None:
    assert (answer.status, answer.json["reason"]) == (504, "Timeout")
    assert answer.json["details"]["causes"] == [
        {"reason": "ResourceVersionTooLarge", "message": "Too large resource version"}
    ]
    assert answer.headers["Retry-After"] == "1"


def test_version_that_is_about_to_come_is_waited_for(client: Client, namespace: str) -> None:
    maps = f"/api/v1/namespaces/{namespace}/configmaps"
    now = version(client.get(maps))

    def read() -> Object:
        shown: Object = client.get(f"{maps}?resourceVersion={now + 3}&resourceVersionMatch=NotOlderThan")
        return shown

    def write() -> None:
        for name in "abc":
            client.post(maps, configmap(name, namespace))

    shown, _ = concurrently(read, write)
    assert version(shown) >= now + 3


@pytest.mark.parametrize(
    ("selector", "found"),
    [
        ("app=a", "a1 a2"),
        ("app==b", "b1"),
        ("app!=a", "b1 none"),
        ("app in (a,b)", "a1 a2 b1"),
        ("app notin (a)", "b1 none"),
        ("app", "a1 a2 b1"),
        ("!app", "none"),
        ("app=a,tier=1", "a1"),
        ("tier,app!=b", "a1 a2"),
        ("app=c", ""),
    ],
)
def test_label_selector_finds(client: Client, selectable: str, selector: str, found: str) -> None:
    for limit in ("", "&limit=1"):
        items, token = [], ""
        while True:
            more = f"&continue={quote(token)}" if token else ""
            page = client.get(f"{selectable}?labelSelector={quote(selector)}{limit}{more}")
            items += [item["metadata"]["name"] for item in page["items"]]
            token = page["metadata"].get("continue", "")
            if not token:
                break
        assert items == found.split()


@pytest.fixture(scope="module")
def selectable(shared_live: Live) -> str:
    client = shared_live.client
    client.post("/api/v1/namespaces", {"metadata": {"name": "selectable"}})
    path = "/api/v1/namespaces/selectable/secrets"
    labels = {
        "a1": {"app": "a", "tier": "1"},
        "a2": {"app": "a", "tier": "2"},
        "b1": {"app": "b"},
        "none": {},
    }
    for name, held in labels.items():
        client.post(path, {"metadata": {"name": name, "labels": held}})
    return path


def test_the_next_chunk_as_of_any_version_is_all_that_is_left(live: Live) -> None:
    maps = "/api/v1/namespaces/default/configmaps"
    for name in "abcd":
        live.client.post(maps, {"metadata": {"name": name}})
    token = live.client.get(f"{maps}?limit=1")["metadata"]["continue"]
    rest = live.client.get(f"{maps}?limit=1&continue={token}&resourceVersion=0")
    assert [item["metadata"]["name"] for item in rest["items"]] == ["b", "c", "d"]
    assert "continue" not in rest["metadata"]
