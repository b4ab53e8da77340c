"""Two servers on one etcd: each shows the answered writes of the other at once, in the same order."""

from __future__ import annotations

import contextlib
from collections.abc import Iterator
from urllib.parse import quote

import pytest

from kubist.model.meta.object import Object
from tests.crd.defining import await_status, define, definition
from tests.live import Client, Live, Pki, concurrently, configmap, seen, version
from tests.storage.etcd_server import EtcdServer

pytestmark = pytest.mark.etcd
MAPS = "/api/v1/namespaces/default/configmaps"


@pytest.fixture(scope="module")
def pair(server_pki: Pki, real_etcd: EtcdServer) -> Iterator[tuple[Client, Client]]:
    with contextlib.ExitStack() as stack:
        servers = [Live(server_pki, etcd_servers=(real_etcd.endpoint,)) for _ in range(2)]
        yield tuple(stack.enter_context(server).client for server in servers)  # type: ignore[misc]


def test_answered_write_is_seen_on_the_other_server_at_once(pair: tuple[Client, Client]) -> None:
    one, other = pair
    for number in range(15):
        name = f"seen-{number}"
        made = one.post(MAPS, configmap(name))
        assert version(other.get(f"{MAPS}/{name}")) == version(made)
        changed = other.patch(f"{MAPS}/{name}", {"data": {"a": "b"}})
        listed = one.get(f"{MAPS}?fieldSelector=metadata.name%3D{name}")
        assert version(listed["items"][0]) == version(changed)
        one.delete(f"{MAPS}/{name}")
        assert other.ask("GET", f"{MAPS}/{name}").status == 404
        one, other = other, one


def test_name_is_free_on_the_other_server_after_deletion(pair: tuple[Client, Client]) -> None:
    one, other = pair
    one.post(MAPS, configmap("again"))
    for _ in range(30):
        one.delete(f"{MAPS}/again")
        other.post(MAPS, configmap("again"))
        one, other = other, one
    one.delete(f"{MAPS}/again")


def test_watches_on_both_see_every_change_in_order(pair: tuple[Client, Client]) -> None:
    begin = version(pair[0].get(MAPS))

    def write(client: Client, mark: str) -> None:
        for number in range(25):
            client.post(MAPS, configmap(f"{mark}-{number}"))
            client.patch(f"{MAPS}/both-{number % 3}", {"data": {mark: str(number)}})

    def read(client: Client) -> list[tuple[str, str, int]]:
        with client.watch(f"{MAPS}?resourceVersion={begin}") as watch:
            return [seen(event) for event in watch.take(3 + 2 * 2 * 25)]

    def writers() -> None:
        for number in range(3):
            pair[0].post(MAPS, configmap(f"both-{number}"))
        concurrently(*(lambda c=c, m=m: write(c, m) for c, m in zip(pair, "xy", strict=True)))

    _, first, second = concurrently(writers, lambda: read(pair[0]), lambda: read(pair[1]))
    assert first == second
    versions = [at for _, _, at in first]
    assert versions == sorted(set(versions))
    for number in range(3):
        held = pair[0].get(f"{MAPS}/both-{number}")["data"]
        assert set(held) == {"x", "y"}


def test_patches_through_both_are_all_applied(pair: tuple[Client, Client]) -> None:
    pair[0].post(MAPS, configmap("shared", first="1"))

    def patch(client: Client, mark: str) -> None:
        for number in range(10):
            client.patch(f"{MAPS}/shared", {"data": {f"{mark}{number}": "1"}})

    concurrently(*(lambda c=c, m=m: patch(c, m) for c, m in zip(pair * 2, "abcd", strict=True)))
    assert len(pair[1].get(f"{MAPS}/shared")["data"]) == 41


def test_chunks_may_come_from_either_server(pair: tuple[Client, Client]) -> None:
    secrets = "/api/v1/namespaces/default/secrets"
    for number in range(12):
        pair[number % 2].post(secrets, {"metadata": {"name": f"s-{number:02}"}})
    names: list[str] = []
    token, turn, versions = "", 0, set()
    while token or not turn:
        page: Object = pair[turn % 2].get(f"{secrets}?limit=3&continue={quote(token)}")
        pair[turn % 2].patch(f"{secrets}/s-00", {"metadata": {"labels": {"turn": str(turn)}}})
        names += [item["metadata"]["name"] for item in page["items"]]
        token = page["metadata"].get("continue", "")
        versions.add(version(page))
        turn += 1
    assert names == [f"s-{number:02}" for number in range(12)]
    assert len(versions) == 1


def test_services_of_both_servers_get_addresses_of_their_own(pair: tuple[Client, Client]) -> None:
    path = "/api/v1/namespaces/default/services"

    def create(client: Client, mark: str) -> list[str]:
        spec = {"ports": [{"port": 80}]}
        made = [client.post(path, {"metadata": {"name": f"{mark}{n}"}, "spec": spec}) for n in range(8)]
        return [service["spec"]["clusterIP"] for service in made]

    found = concurrently(*(lambda c=c, m=m: create(c, m) for c, m in zip(pair * 2, "abcd", strict=True)))
    addresses = [address for part in found for address in part]
    assert len(set(addresses)) == 32


def test_custom_resource_defined_on_one_is_served_by_the_other(pair: tuple[Client, Client]) -> None:
    define(pair[0], definition("Thing", "example.com"))
    path = "/apis/example.com/v1/namespaces/default/things"
    await_status(pair[1], path, 200)
    thing = {"apiVersion": "example.com/v1", "kind": "Thing", "metadata": {"name": "one"}, "spec": {"a": 1}}
    made = pair[0].post(path, thing)
    assert pair[1].get(f"{path}/one") == made
    with pair[1].watch(f"{path}?resourceVersion={version(made)}") as watch:
        changed = pair[0].patch(f"{path}/one", {"spec": {"a": 2}})
        assert seen(watch.take(1)[0]) == ("MODIFIED", "one", version(changed))
