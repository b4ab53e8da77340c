"""Several workers act as one server: a write that one of them answered is visible on all of them."""

from __future__ import annotations

import json
import random
import threading
from collections.abc import Callable
from typing import Any

from tests.crd.defining import definition
from tests.crd.defining import version as crd_version

from .crew import MERGE, Connection, Crew

WRITERS = 16
_FREE_FORM = {"type": "object", "x-kubernetes-preserve-unknown-fields": True}
DEFINITION = definition(
    "Gear", "crew.example.com", crd_version(schema={"type": "object", "properties": {"spec": _FREE_FORM}})
)


def version(obj: Any) -> int:
    return int(obj["metadata"]["resourceVersion"])


def at_once(count: int, work: Callable[[int], None]) -> None:
    """Runs the function in this many threads, and fails if one fails."""
    failures: list[BaseException] = []

    def run(number: int) -> None:
        try:
            work(number)
        except BaseException as error:
            failures.append(error)

    threads = [threading.Thread(target=run, args=(number,)) for number in range(count)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    if failures:
        raise failures[0]


def test_answered_write_is_visible_on_every_worker(three: Crew, namespace: str) -> None:
    maps = f"/api/v1/namespaces/{namespace}/configmaps"
    versions: list[int] = []

    def write(number: int) -> None:
        dice, connections = random.Random(number), three.one_each(3)
        name, last = f"w{number}", ""
        for step in range(12):
            here, there, elsewhere = dice.sample(connections, 3)
            last = f"{number}-{step}"
            if step == 0:
                code, written = here.ask("POST", maps, {"metadata": {"name": name}, "data": {"v": last}})
            elif step % 5 == 4:
                assert here.ask("DELETE", f"{maps}/{name}")[0] == 200
                assert there.ask("GET", f"{maps}/{name}")[0] == 404
                code, written = elsewhere.ask("POST", maps, {"metadata": {"name": name}, "data": {"v": last}})
            else:
                code, written = here.ask("PATCH", f"{maps}/{name}", {"data": {"v": last}}, MERGE)
            assert code in (200, 201), written
            versions.append(version(written))
            assert there.get(f"{maps}/{name}") == written
            listed = elsewhere.get(maps)
            assert version(listed) >= version(written)
            assert written["data"] in [item.get("data") for item in listed["items"]]

    at_once(WRITERS, write)
    assert len(set(versions)) == len(versions)


def test_watches_on_every_worker_see_every_event_once_and_in_order(
    three: Crew, workers: list[Connection], namespace: str
) -> None:
    maps = f"/api/v1/namespaces/{namespace}/configmaps"
    begin = version(workers[0].get(maps))
    seen: list[list[tuple[str, str, int]]] = [[] for _ in workers]

    def watch(number: int) -> None:
        stream = workers[number].send("GET", f"{maps}?watch=true&resourceVersion={begin}")
        for line in stream:
            event = json.loads(line)
            seen[number].append(
                (event["type"], event["object"]["metadata"]["name"], version(event["object"]))
            )
            if event["object"]["metadata"]["name"] == "end":
                break

    def write(number: int) -> None:
        connection, name = three.connect(), f"w{number}"
        connection.post(maps, {"metadata": {"name": name}})
        for step in range(10):
            assert connection.ask("PATCH", f"{maps}/{name}", {"data": {"v": str(step)}}, MERGE)[0] == 200
        assert connection.ask("DELETE", f"{maps}/{name}")[0] == 200

    def write_all() -> None:
        at_once(WRITERS, write)
        connection = three.connect()
        connection.post(maps, {"metadata": {"name": "end"}})

    writing = threading.Thread(target=write_all)
    writing.start()
    at_once(len(workers), watch)
    writing.join()
    ours = [[event for event in events if event[1] != "kube-root-ca.crt"] for events in seen]
    assert ours[0] == ours[1] == ours[2]
    assert len(ours[0]) == WRITERS * 12 + 1
    assert [event[2] for event in ours[0]] == sorted({event[2] for event in ours[0]})


def test_established_crd_is_served_by_every_worker(workers: list[Connection], namespace: str) -> None:
    definitions = "/apis/apiextensions.k8s.io/v1/customresourcedefinitions"
    gears = f"/apis/crew.example.com/v1/namespaces/{namespace}/gears"
    for turn, first in enumerate(workers):
        made = first.post(definitions, DEFINITION)
        stream = first.send(
            "GET",
            f"{definitions}?watch=true&fieldSelector=metadata.name%3Dgears.crew.example.com"
            f"&resourceVersion={version(made)}",
        )
        for line in stream:
            conditions = json.loads(line)["object"]["status"].get("conditions", [])
            if any(c["type"] == "Established" and c["status"] == "True" for c in conditions):
                break
        others = [connection for connection in workers if connection is not first]
        for number, connection in enumerate(others):
            connection.post(gears, {**_gear(f"gear-{number}"), "spec": {"teeth": turn}})
            names = [found["name"] for found in connection.get("/apis/crew.example.com/v1")["resources"]]
            assert "gears" in names
        assert len(others[0].get(gears)["items"]) == 2
        stream.close()
        first.close()
        assert others[0].ask("DELETE", f"{definitions}/gears.crew.example.com")[0] == 200
        while others[0].ask("GET", f"{definitions}/gears.crew.example.com")[0] == 200:
            pass
        assert others[1].ask("GET", gears)[0] == 404


def _gear(name: str) -> dict[str, Any]:
    return {"apiVersion": "crew.example.com/v1", "kind": "Gear", "metadata": {"name": name}}


def test_permissions_granted_on_one_worker_apply_to_all(workers: list[Connection], namespace: str) -> None:
    bindings = f"/apis/rbac.authorization.k8s.io/v1/namespaces/{namespace}/rolebindings"
    maps = f"/api/v1/namespaces/{namespace}/configmaps"
    for turn, here in enumerate(workers):
        user = f"user-{turn}"
        others = [connection for connection in workers if connection is not here]

        def codes(user: str, others: list[Connection]) -> set[int]:
            answers = [connection.send("GET", maps, **{"Impersonate-User": user}) for connection in others]
            for answer in answers:
                answer.read()
            return {answer.status for answer in answers}

        assert codes(user, others) == {403}
        here.post(
            bindings,
            {
                "metadata": {"name": user},
                "roleRef": {"apiGroup": "rbac.authorization.k8s.io", "kind": "ClusterRole", "name": "view"},
                "subjects": [{"apiGroup": "rbac.authorization.k8s.io", "kind": "User", "name": user}],
            },
        )
        assert codes(user, others) == {200}
        assert here.ask("DELETE", f"{bindings}/{user}")[0] == 200
        assert codes(user, others) == {403}


def test_cluster_ips_and_node_ports_are_unique_across_workers(three: Crew, namespace: str) -> None:
    services = f"/api/v1/namespaces/{namespace}/services"
    made: list[Any] = []

    def create(number: int) -> None:
        connection = three.connect()
        for step in range(4):
            spec = {"type": "NodePort", "ports": [{"port": 80}]}
            made.append(connection.post(services, {"metadata": {"name": f"s{number}-{step}"}, "spec": spec}))

    at_once(12, create)
    assert len({service["spec"]["clusterIP"] for service in made}) == len(made)
    assert len({service["spec"]["ports"][0]["nodePort"] for service in made}) == len(made)


def test_name_is_created_once_across_workers(three: Crew, namespace: str) -> None:
    maps = f"/api/v1/namespaces/{namespace}/configmaps"
    codes: dict[str, list[int]] = {}

    def create(number: int) -> None:
        connection = three.connect()
        for step in range(8):
            code, _ = connection.ask("POST", maps, {"metadata": {"name": f"m{step}"}})
            codes.setdefault(f"m{step}", []).append(code)

    at_once(12, create)
    assert [sorted(answers) for answers in codes.values()] == [[201] + [409] * 11] * 8


def test_quota_is_not_exceeded_across_workers(three: Crew, workers: list[Connection], namespace: str) -> None:
    secrets = f"/api/v1/namespaces/{namespace}/secrets"
    quotas = f"/api/v1/namespaces/{namespace}/resourcequotas"
    workers[0].post(quotas, {"metadata": {"name": "few"}, "spec": {"hard": {"count/secrets": "7"}}})
    while "used" not in workers[1].get(f"{quotas}/few").get("status", {}):
        pass
    codes: list[int] = []

    def create(number: int) -> None:
        connection = three.connect()
        for step in range(3):
            code = 409  # the quota was charged by others so often that it could not be charged
            while code == 409:
                code, _ = connection.ask("POST", secrets, {"metadata": {"name": f"s{number}-{step}"}})
            codes.append(code)

    at_once(12, create)
    assert sorted(codes) == [201] * 7 + [403] * 29
    assert len(workers[2].get(secrets)["items"]) == 7


def test_namespace_is_emptied_by_the_worker_with_the_controllers(
    workers: list[Connection], namespace: str
) -> None:
    maps = f"/api/v1/namespaces/{namespace}/configmaps"
    for number, connection in enumerate(workers):
        connection.post(maps, {"metadata": {"name": f"m{number}"}})
    assert workers[1].ask("DELETE", f"/api/v1/namespaces/{namespace}")[0] in (200, 202)
    while workers[2].ask("GET", f"/api/v1/namespaces/{namespace}")[0] == 200:
        pass
    assert workers[0].get(maps)["items"] == []
    assert workers[0].ask("GET", "/apis/coordination.k8s.io/v1/namespaces/kube-system/leases/kubist-control")[
        0
    ] == (404)


def test_metrics_sum_all_workers(workers: list[Connection]) -> None:
    def counted(connection: Connection) -> int:
        lines = connection.get("/metrics").splitlines()
        return sum(
            int(line.rpartition(" ")[2])
            for line in lines
            if line.startswith("apiserver_request_total{") and 'resource="podtemplates"' in line
        )

    for connection in workers:
        connection.get("/api/v1/podtemplates")
    assert {counted(connection) for connection in workers} == {3}
