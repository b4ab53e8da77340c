"""A real kube-apiserver and Kubist on one etcd at the same time: equal objects, one order of events, no clashes."""

from __future__ import annotations

import copy
import functools
import json
import os
import time
from collections import Counter

import pytest

from kubist.api.kinds.core.service_ports import KEY, ports_of
from kubist.model.meta.object import Object
from tests import programs
from tests.live import Client, concurrently, configmap, seen, version
from tests.waiting import wait_for

from . import reference
from .conftest import COMPACTION_SECONDS, ENCRYPTED, EVENT_SECONDS, KUBIST_ADDRESS, Shared
from .samples import NAMESPACE, Sample, samples

pytestmark = [
    pytest.mark.etcd,
    programs.needs("kube-apiserver", "etcd"),
]
NAMESPACES = "/api/v1/namespaces"
CRDS = "/apis/apiextensions.k8s.io/v1/customresourcedefinitions"
GROUP = "shared.example.com"


@pytest.fixture
def namespace(shared: Shared) -> str:
    name = f"test-{os.urandom(4).hex()}"
    shared.reference.post(NAMESPACES, {"metadata": {"name": name}})
    return name


def compact(body: Object) -> bytes:
    """JSON as Go clients send it: kube-apiserver compares free-form fields byte by byte."""
    return json.dumps(body, separators=(",", ":")).encode()


def crd(plural: str, storage: str = "v1") -> Object:
    kind = plural.removesuffix("s").capitalize()
    spec: Object = {"type": "object", "x-kubernetes-preserve-unknown-fields": True}
    spec["properties"] = {"n": {"type": "integer", "default": 5}}
    schema = {"type": "object", "properties": {"spec": spec, "status": spec}}
    versions: list[Object] = [
        {
            "name": name,
            "served": True,
            "storage": name == storage,
            "schema": {"openAPIV3Schema": schema},
            "subresources": {"status": {}},
        }
        for name in ("v1", "v2")
    ]
    names = {"plural": plural, "kind": kind}
    return {
        "apiVersion": "apiextensions.k8s.io/v1",
        "kind": "CustomResourceDefinition",
        "metadata": {"name": f"{plural}.{GROUP}"},
        "spec": {"group": GROUP, "scope": "Namespaced", "names": names, "versions": versions},
    }


# Objects


def named(sample: Sample, mark: str) -> Sample:
    """The sample as one writer creates it; some kinds have only one possible name."""
    body = copy.deepcopy(sample.body)
    if body["kind"] not in ("IPAddress", "APIService"):
        body["metadata"]["name"] += f"-{mark}"
    return Sample(sample.collection, body)


def test_objects_of_all_kinds_are_equal_on_both(shared: Shared) -> None:
    shared.reference.post(NAMESPACES, {"metadata": {"name": NAMESPACE}})
    kinds: Counter[str] = Counter()
    statuses: dict[str, list[int]] = {"kube-apiserver": [], "kubist": []}
    for mark, writer, other in shared.turns():
        for sample in samples(3):
            made = named(sample, mark)
            answer = writer.ask("POST", made.collection, compact(made.body))
            statuses[mark].append(answer.status)
            if answer.status != 201:  # it names an object that does not exist here
                continue
            shared.equal(made.path)
            other.patch(made.path, {"metadata": {"labels": {"touched": mark}}})
            shown = shared.equal(made.path)
            assert shown["metadata"]["labels"]["touched"] == mark
            answer = writer.ask("PUT", made.path, compact(shown))
            assert answer.status in (200, 409), (made.path, answer)
            shared.equal(made.path)
            other.ask("PATCH", made.path, {"metadata": {"finalizers": None}}, "application/merge-patch+json")
            other.delete(made.path, {"gracePeriodSeconds": 0})
            if made.body["kind"] not in ("PersistentVolume", "PersistentVolumeClaim"):
                shared.gone(made.path)
            kinds[made.kind] += 1
    assert statuses["kube-apiserver"] == statuses["kubist"]
    assert len(kinds) >= 55 and min(kinds.values()) >= 2


@pytest.mark.parametrize("resource", ["secrets", "configmaps"])
def test_encrypted_objects_are_equal_on_both(shared: Shared, namespace: str, resource: str) -> None:
    collection = f"{NAMESPACES}/{namespace}/{resource}"
    provider, key = ENCRYPTED[resource]
    for mark, writer, other in shared.turns():
        writer.post(collection, {"metadata": {"name": mark}})
        shared.equal(f"{collection}/{mark}")
        other.patch(f"{collection}/{mark}", {"metadata": {"labels": {"a": "b"}}})
        shared.equal(f"{collection}/{mark}")
        value = shared.keys(f"/registry/{resource}/{namespace}/{mark}").popitem()[1].value
        assert value.startswith(f"k8s:enc:{provider}:v1:{key}:".encode())


# Custom resources


def stores_both_versions(shared: Shared, crd: str) -> bool:
    return bool(shared.equal(f"{CRDS}/{crd}")["status"]["storedVersions"] == ["v1", "v2"])


def test_crd_of_one_is_served_by_the_other(shared: Shared, namespace: str) -> None:
    for number, (_, writer, other) in enumerate(shared.turns()):
        plural = ("sealeds", "opens")[number]
        name, kind = f"{plural}.{GROUP}", plural.removesuffix("s").capitalize()
        writer.post(CRDS, crd(plural))
        paths = [f"/apis/{GROUP}/{v}/namespaces/{namespace}/{plural}" for v in ("v1", "v2")]
        for path in paths:
            shared.served(path)
        shared.equal(f"{CRDS}/{name}")
        shared.equal(f"/apis/apiregistration.k8s.io/v1/apiservices/v1.{GROUP}")
        for client, mark in ((writer, "a"), (other, "b")):
            for path in paths:
                api_version = "/".join(path.split("/")[2:4])
                body = {
                    "apiVersion": api_version,
                    "kind": kind,
                    "metadata": {},
                    "spec": {"x": [1, 1.5, None]},
                }
                body["metadata"] = {"name": f"{mark}{api_version[-1]}"}
                client.post(path, body)
        changed = other.get(f"{CRDS}/{name}")
        changed["spec"] = crd(plural, storage="v2")["spec"]
        other.put(f"{CRDS}/{name}", changed)
        wait_for(functools.partial(stores_both_versions, shared, name))
        other.patch(f"{paths[0]}/a1/status", {"status": {"ok": True}})
        for path in paths:
            shown = [shared.equal(f"{path}/{each}") for each in ("a1", "a2", "b1", "b2")]
            assert [each["spec"] for each in shown] == [{"n": 5, "x": [1, 1.5, None]}] * 4
            assert shown[0]["status"] == {"n": 5, "ok": True}
        sealed = [kv.value[:8] == b"k8s:enc:" for kv in shared.keys(f"/registry/{GROUP}/{plural}/").values()]
        assert sealed == [plural == "sealeds"] * 4
        other.delete(f"{CRDS}/{name}")
        shared.gone(f"{CRDS}/{name}")
        shared.gone(paths[0])
        assert shared.keys(f"/registry/{GROUP}/") == {}
        shared.gone(f"/apis/apiregistration.k8s.io/v1/apiservices/v1.{GROUP}")


# Watches, expiry and compaction


def test_watches_on_both_see_every_write_of_both_in_order(shared: Shared, namespace: str) -> None:
    maps = f"{NAMESPACES}/{namespace}/configmaps"
    begin = version(shared.reference.get(maps))

    def write(client: Client, mark: str) -> None:
        for number in range(25):
            client.post(maps, configmap(f"{mark}-{number}", namespace))
            client.patch(f"{maps}/{mark}-{number}", {"data": {"a": "b"}})
            client.delete(f"{maps}/{mark}-{number}")

    def read(client: Client) -> list[tuple[str, str, int]]:
        with client.watch(f"{maps}?resourceVersion={begin}") as watch:
            events = (seen(event) for event in watch)
            return [next(event for event in events if event[1] != "kube-root-ca.crt") for _ in range(150)]

    _, _, first, second = concurrently(
        lambda: write(shared.reference, "x"),
        lambda: write(shared.kubist, "y"),
        lambda: read(shared.reference),
        lambda: read(shared.kubist),
    )
    assert first == second
    assert [at for _, _, at in first] == sorted({at for _, _, at in first})


def test_events_of_both_expire(shared: Shared, namespace: str) -> None:
    events = f"{NAMESPACES}/{namespace}/events"
    for mark, writer, _ in shared.turns():
        writer.post(events, {"metadata": {"name": mark}, "involvedObject": {"namespace": namespace}})
        shared.equal(f"{events}/{mark}")
    for mark, _, _ in shared.turns():
        shared.gone(f"{events}/{mark}", EVENT_SECONDS * 2 + 10)


def test_one_of_them_compacts_in_an_interval(shared: Shared, namespace: str) -> None:
    clock = "compact_rev_key"

    def at() -> tuple[float, int, int]:
        ports_of = shared.keys(clock).get(clock)
        return (time.monotonic(), ports_of.mod_revision, int(ports_of.value)) if ports_of else (0.0, 0, 0)

    turns = [at()]
    while len(turns) < 4:
        shared.kubist.post(f"{NAMESPACES}/{namespace}/configmaps", {"metadata": {"generateName": "c-"}})
        wait_for(lambda: at()[1] > turns[-1][1], 4 * COMPACTION_SECONDS)
        turns.append(at())
    assert turns[3][0] - turns[1][0] > 1.2 * COMPACTION_SECONDS
    assert turns[1][2] < turns[2][2] < turns[3][2]
    query = "resourceVersion=5&resourceVersionMatch=Exact&limit=5"
    answers = [client.ask("GET", f"/api/v1/configmaps?{query}") for client in shared.both]
    assert [answer.status for answer in answers] == [410, 410]
    assert answers[0].json == answers[1].json


# Allocations


def test_node_ports_and_addresses_are_unique(shared: Shared, namespace: str) -> None:
    services = f"{NAMESPACES}/{namespace}/services"
    local = {"type": "LoadBalancer", "externalTrafficPolicy": "Local", "ports": [{"port": 80}]}

    def write(client: Client, mark: str) -> None:
        for number in range(16):
            spec = local if number % 4 == 3 else {"type": "NodePort", "ports": [{"port": 80}]}
            if number % 4 == 2:
                spec = {"type": "NodePort", "ports": [{"port": 80, "nodePort": 30000 + number}]}
            answer = client.ask("POST", services, {"metadata": {"name": f"{mark}{number}"}, "spec": spec})
            assert answer.status == 201 or (number % 4 == 2 and answer.status == 422), answer
            if answer.status == 201 and number % 5 == 4:
                client.delete(f"{services}/{mark}{number}")

    concurrently(
        *(lambda c=c, m=m: write(c, m) for c, m in zip(shared.both * 2, ("a", "b", "c", "d"), strict=True))
    )
    made = shared.kubist.get(services)["items"]
    assert made == shared.reference.get(services)["items"]
    ports = [port for service in made for port in ports_of(service)]
    assert len(ports) == len(set(ports)) > 40
    addresses = [service["spec"]["clusterIP"] for service in made]
    assert len(addresses) == len(set(addresses))
    node_ports = shared.live.server.api.cluster.node_ports
    assert set(ports) <= node_ports.allocated(shared.live.run(node_ports.read()))
    for number, service in enumerate(made):
        shared.both[number % 2].delete(f"{services}/{service['metadata']['name']}")
    assert not set(ports) & node_ports.allocated(shared.live.run(node_ports.read()))
    assert list(shared.keys("/registry/ranges/")) == [KEY]


def test_quota_holds_for_both_together(shared: Shared, namespace: str) -> None:
    quotas = f"{NAMESPACES}/{namespace}/resourcequotas"
    shared.reference.post(quotas, {"metadata": {"name": "q"}, "spec": {"hard": {"count/secrets": "7"}}})
    wait_for(lambda: "used" in shared.equal(f"{quotas}/q").get("status", {}))

    def fill(client: Client, mark: str) -> Counter[int]:
        secrets = f"{NAMESPACES}/{namespace}/secrets"
        return Counter(
            client.ask("POST", secrets, {"metadata": {"name": f"{mark}{n}"}}).status for n in range(6)
        )

    found = concurrently(lambda: fill(shared.reference, "a"), lambda: fill(shared.kubist, "b"))
    assert sum(counts[201] for counts in found) == 7
    assert {status for counts in found for status in counts} <= {201, 403, 409}
    assert shared.equal(f"{quotas}/q")["status"]["used"] == {"count/secrets": "7"}


# Identity


def test_tokens_of_one_are_valid_on_the_other(shared: Shared, namespace: str) -> None:
    accounts = f"{NAMESPACES}/{namespace}/serviceaccounts"
    for mark, writer, other in shared.turns():
        account = f"of-{mark}"
        writer.post(accounts, {"metadata": {"name": account}})
        token = writer.post(f"{accounts}/{account}/token", {"spec": {}})["status"]["token"]
        review = {"spec": {"token": token}}
        status = other.post("/apis/authentication.k8s.io/v1/tokenreviews", review)["status"]
        assert status["authenticated"]
        assert status["user"]["username"] == f"system:serviceaccount:{namespace}:{account}"


def test_deleted_namespace_loses_the_objects_of_both(shared: Shared) -> None:
    for mark, deleter, creator in shared.turns():
        name = f"leaving-{mark}"
        creator.post(NAMESPACES, {"metadata": {"name": name}})
        for client, suffix in zip(shared.both, "ab", strict=True):
            client.post(f"{NAMESPACES}/{name}/configmaps", configmap(f"c{suffix}", name))
            spec = {"containers": [{"name": "c", "image": "i"}]}
            client.post(f"{NAMESPACES}/{name}/pods", {"metadata": {"name": f"p{suffix}"}, "spec": spec})
        deleter.delete(f"{NAMESPACES}/{name}")
        shared.gone(f"{NAMESPACES}/{name}")
        assert [key for key in shared.keys("/registry/") if f"/{name}/" in key] == []


def test_endpoints_name_both_servers(shared: Shared) -> None:
    path = f"{NAMESPACES}/default/endpoints/kubernetes"

    def addresses() -> list[str]:
        [subset] = shared.equal(path)["subsets"]
        return [each["ip"] for each in subset["addresses"]]

    wait_for(lambda: addresses() == [reference.ADDRESS, KUBIST_ADDRESS], 30)
    shared.equal("/apis/discovery.k8s.io/v1/namespaces/default/endpointslices/kubernetes")


def test_idle_servers_write_only_leases_and_the_clock(shared: Shared) -> None:
    before = shared.keys()
    time.sleep(12)
    changed = {key for key in shared.changed(before) if not key.endswith("fence_key")}
    leases = ("/registry/masterleases/", "/registry/peerserverleases/", "/registry/leases/kube-system/")
    expected = (*leases, "/registry/events/")  # events of earlier tests expire
    assert {key for key in changed if not key.startswith(expected)} <= {"compact_rev_key"}
