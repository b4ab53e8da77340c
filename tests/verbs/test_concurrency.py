"""Concurrent writers: every change is applied, none is lost, and names and addresses stay unique."""

from __future__ import annotations

import threading
from collections import Counter
from functools import partial
from typing import Any

import pytest

from kubist.model.meta.object import Object
from tests.live import Client, concurrently, configmap, version

CLIENTS, ROUNDS = 8, 6
JSON_PATCH = "application/json-patch+json"
STRATEGIC = "application/strategic-merge-patch+json"
APPLY = "application/apply-patch+yaml"


@pytest.fixture
def maps(namespace: str) -> str:
    return f"/api/v1/namespaces/{namespace}/configmaps"


def all_clients(work: Any) -> list[Any]:
    return concurrently(*(partial(work, number) for number in range(CLIENTS)))


@pytest.mark.parametrize("kind", ["application/merge-patch+json", STRATEGIC, JSON_PATCH])
def test_every_patch_without_a_version_is_applied(client: Client, maps: str, kind: str) -> None:
    client.post(maps, configmap("shared", maps.split("/")[4], first="yes"))

    def patch(number: int) -> list[int]:
        versions = []
        for step in range(ROUNDS):
            key = f"{number}-{step}"
            body: Any = {"data": {key: "yes"}}
            if kind == JSON_PATCH:
                body = [{"op": "add", "path": f"/data/{key}", "value": "yes"}]
            versions.append(version(client.patch(f"{maps}/shared", body, kind)))
        return versions

    answered = [at for versions in all_clients(patch) for at in versions]
    assert len(set(answered)) == CLIENTS * ROUNDS
    held = client.get(f"{maps}/shared")
    assert len(held["data"]) == CLIENTS * ROUNDS + 1
    assert version(held) == max(answered)


def test_every_apply_of_another_manager_is_applied(client: Client, maps: str) -> None:
    def apply(number: int) -> None:
        body = configmap("applied", maps.split("/")[4], **{f"k{number}": "yes"})
        answer = client.ask("PATCH", f"{maps}/applied?fieldManager=m{number}", body, APPLY)
        assert answer.status in (200, 201), answer

    all_clients(apply)
    held = client.get(f"{maps}/applied")
    assert set(held["data"]) == {f"k{number}" for number in range(CLIENTS)}
    assert len(held["metadata"]["managedFields"]) == CLIENTS


def test_concurrent_read_modify_write_loses_no_update(client: Client, maps: str) -> None:
    client.post(maps, configmap("counter", maps.split("/")[4], count="0"))
    conflicts: Counter[int] = Counter()

    def count(number: int) -> None:
        for _ in range(ROUNDS):
            while True:
                obj = client.get(f"{maps}/counter")
                obj["data"]["count"] = str(int(obj["data"]["count"]) + 1)
                answer = client.ask("PUT", f"{maps}/counter", obj)
                if answer.status == 200:
                    break
                assert (answer.status, answer.json["reason"]) == (409, "Conflict")
                conflicts[number] += 1

    all_clients(count)
    assert client.get(f"{maps}/counter")["data"]["count"] == str(CLIENTS * ROUNDS)
    assert conflicts


def test_stale_update_and_stale_patch_conflict(client: Client, maps: str) -> None:
    stale = client.post(maps, configmap("one", maps.split("/")[4]))
    client.patch(f"{maps}/one", {"data": {"a": "1"}})
    assert client.ask("PUT", f"{maps}/one", stale).status == 409
    patch = {"metadata": {"resourceVersion": stale["metadata"]["resourceVersion"]}, "data": {"a": "2"}}
    refused = client.ask("PATCH", f"{maps}/one", patch, "application/merge-patch+json")
    assert (refused.status, refused.json["reason"]) == (409, "Conflict")
    del stale["metadata"]["resourceVersion"]
    assert client.ask("PUT", f"{maps}/one", stale).status == 200


def test_one_of_many_creates_of_a_name_wins(client: Client, maps: str) -> None:
    def create(number: int) -> int:
        return client.ask("POST", maps, configmap("one", maps.split("/")[4], by=str(number))).status

    assert sorted(all_clients(create)) == [201] + [409] * (CLIENTS - 1)


def test_one_of_many_deletes_wins_and_a_new_object_stays(client: Client, maps: str) -> None:
    client.post(maps, configmap("one", maps.split("/")[4]))
    statuses = all_clients(lambda number: client.ask("DELETE", f"{maps}/one").status)
    assert sorted(statuses) == [200] + [404] * (CLIENTS - 1)


def test_generated_names_are_unique(client: Client, maps: str) -> None:
    def create(number: int) -> list[str]:
        body = {"metadata": {"generateName": "x-"}}
        return [client.post(maps, body)["metadata"]["name"] for _ in range(ROUNDS)]

    names = [name for found in all_clients(create) for name in found]
    assert len(set(names)) == CLIENTS * ROUNDS


def test_services_get_addresses_and_node_ports_of_their_own(client: Client, namespace: str) -> None:
    path = f"/api/v1/namespaces/{namespace}/services"

    def create(number: int) -> list[Object]:
        made = []
        for step in range(3):
            spec = {"type": "NodePort", "ports": [{"name": "a", "port": 80}, {"name": "b", "port": 81}]}
            made.append(client.post(path, {"metadata": {"name": f"s{number}-{step}"}, "spec": spec}))
        return made

    services = [service for found in all_clients(create) for service in found]
    # Services of other tests do not count: some are written past the allocation of addresses.
    addresses = {service["spec"]["clusterIP"] for service in services}
    ports = {port["nodePort"] for service in services for port in service["spec"]["ports"]}
    assert len(services) == len(addresses) == CLIENTS * 3
    assert len(ports) == CLIENTS * 3 * 2
    for service in services:
        client.delete(f"{path}/{service['metadata']['name']}")


def test_only_one_service_gets_the_address_that_several_ask_for(client: Client, namespace: str) -> None:
    path = f"/api/v1/namespaces/{namespace}/services"

    def create(number: int) -> int:
        spec = {"clusterIP": "10.0.0.7", "ports": [{"port": 80}]}
        return client.ask("POST", path, {"metadata": {"name": f"s{number}"}, "spec": spec}).status

    assert sorted(all_clients(create)) == [201] + [422] * (CLIENTS - 1)


def test_put_of_an_absent_lease_by_many_makes_one_and_updates_it(client: Client, namespace: str) -> None:
    path = f"/apis/coordination.k8s.io/v1/namespaces/{namespace}/leases/one"

    def put(number: int) -> int:
        body = {"metadata": {"name": "one"}, "spec": {"holderIdentity": f"h{number}"}}
        return client.ask("PUT", path, body).status

    statuses = Counter(all_clients(put))
    assert statuses[201] == 1
    assert statuses[200] + statuses[422] + statuses[201] == CLIENTS, statuses


def test_dry_run_stores_nothing(client: Client, namespace: str, maps: str) -> None:
    before = version(client.get(maps))
    made = client.post(f"{maps}?dryRun=All", configmap("one", namespace))
    assert made["metadata"]["uid"] and "resourceVersion" not in made["metadata"]
    assert client.ask("GET", f"{maps}/one").status == 404
    kept = client.post(maps, configmap("two", namespace, a="1"))
    shown = client.patch(f"{maps}/two?dryRun=All", {"data": {"a": "2"}})
    assert shown["data"] == {"a": "2"}
    kept_now = {**kept, "data": {"a": "3"}}
    assert client.put(f"{maps}/two?dryRun=All", kept_now)["data"] == {"a": "3"}
    client.delete(f"{maps}/two?dryRun=All")
    client.delete(f"{maps}?dryRun=All")
    assert client.get(f"{maps}/two") == kept
    path = f"/api/v1/namespaces/{namespace}/services"
    service = {"metadata": {"name": "s"}, "spec": {"clusterIP": "10.0.0.9", "ports": [{"port": 80}]}}
    for _ in range(2):
        assert client.post(f"{path}?dryRun=All", service)["spec"]["clusterIP"] == "10.0.0.9"
    client.post(path, service)
    with client.watch(f"{maps}?resourceVersion={before}&timeoutSeconds=1") as watch:
        assert [event["object"]["metadata"]["name"] for event in watch] == ["two"]


def test_update_that_changes_nothing_keeps_the_version(client: Client, maps: str) -> None:
    made = client.post(maps, configmap("one", maps.split("/")[4], a="1"))
    assert client.put(f"{maps}/one", made) == made
    assert version(client.patch(f"{maps}/one", {"data": {"a": "1"}})) == version(made)


def test_writers_of_different_objects_do_not_wait_for_each_other(client: Client, maps: str) -> None:
    barrier = threading.Barrier(CLIENTS)

    def create(number: int) -> list[int]:
        barrier.wait()
        where = maps.split("/")[4]
        return [version(client.post(maps, configmap(f"n{number}-{step}", where))) for step in range(ROUNDS)]

    versions = all_clients(create)
    assert all(found == sorted(found) for found in versions)
    assert len({at for found in versions for at in found}) == CLIENTS * ROUNDS
