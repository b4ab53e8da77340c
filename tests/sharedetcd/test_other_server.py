"""Kubist beside a server that this test plays: it writes kube-apiserver's keys into a real etcd."""

from __future__ import annotations

import asyncio
import contextlib
import json
import os
from collections.abc import Iterator

import pytest

from kubist.api.kinds.core.service_ports import KEY
from kubist.model.codec import protobuf
from kubist.model.meta.object import Object
from kubist.model.schema.catalog import schema_for
from kubist.model.schema.decode import decode
from kubist.storage.etcd import messages as pb
from kubist.storage.etcd.client import EtcdClient, credentials
from kubist.storage.etcd.compact import Compactor
from kubist.storage.etcd.store import EtcdStore
from tests.live import Live, Pki, version
from tests.storage.etcd_server import EtcdServer
from tests.waiting import wait_for

from .test_rangeallocation import as_protobuf

pytestmark = pytest.mark.etcd
SERVICES = "/api/v1/namespaces/default/services"
GROUP = "other.example.com"
WIDGETS = f"/apis/{GROUP}/v1/namespaces/default/widgets"


class Other:
    """A server that writes values below the prefix of a running one, as they are."""

    def __init__(self, live: Live, etcd: EtcdServer, prefix: str) -> None:
        self._live = live
        self._store = EtcdStore([etcd.endpoint], prefix=prefix, root="/registry", compaction_interval=0)
        live.run(self._store.open())

    def close(self) -> None:
        self._live.run(self._store.close())

    def put(self, key: str, value: bytes, ttl: int = 0) -> int:
        held = self._live.run(self._store.get(key))
        if held is None:
            return self._live.run(self._store.create(key, value, ttl=ttl))
        return self._live.run(self._store.update(key, value, held.mod_revision, ttl=ttl))

    def delete(self, key: str) -> None:
        held = self._live.run(self._store.get(key))
        assert held is not None
        self._live.run(self._store.delete(key, held.mod_revision))


@pytest.fixture
def pair(server_pki: Pki, real_etcd: EtcdServer) -> Iterator[tuple[Live, Other]]:
    prefix = f"/{os.urandom(4).hex()}"
    config = {"etcd_servers": (real_etcd.endpoint,), "etcd_prefix": prefix}
    with Live(server_pki, **config, service_node_port_range="30000-30007") as live:
        other = Other(live, real_etcd, prefix)
        with contextlib.closing(other):
            yield live, other


def stored(api_version: str, kind: str, body: Object) -> bytes:
    """An object in protobuf, as kube-apiserver stores built-in kinds."""
    group, _, name = api_version.rpartition("/")
    schema = schema_for(group, name, kind)
    return protobuf.wrap(api_version, kind, protobuf.encode(schema, decode(schema, body)))


def until_status(live: Live, path: str, status: int) -> None:
    wait_for(lambda: live.client.ask("GET", path).status == status, pause=0.05)


def crd() -> Object:
    names = {"plural": "widgets", "singular": "widget", "kind": "Widget", "listKind": "WidgetList"}
    schema = {"openAPIV3Schema": {"type": "object", "x-kubernetes-preserve-unknown-fields": True}}
    versions = [{"name": "v1", "served": True, "storage": True, "schema": schema}]
    time_ = "2026-01-02T03:04:05Z"
    conditions = [
        {"type": kind, "status": "True", "lastTransitionTime": time_, "reason": "r", "message": "m"}
        for kind in ("NamesAccepted", "Established")
    ]
    return {
        "kind": "CustomResourceDefinition",
        "apiVersion": "apiextensions.k8s.io/v1",
        "metadata": {"name": f"widgets.{GROUP}", "uid": "u", "generation": 1, "creationTimestamp": time_},
        "spec": {
            "group": GROUP,
            "names": names,
            "scope": "Namespaced",
            "versions": versions,
            "conversion": {"strategy": "None"},
        },
        "status": {"conditions": conditions, "acceptedNames": names, "storedVersions": ["v1"]},
    }


def test_port_that_the_other_server_allocated_is_taken(pair: tuple[Live, Other]) -> None:
    live, other = pair
    other.put(KEY, as_protobuf("30000-30007", bytes([0b11110111])))
    spec = {"type": "NodePort", "ports": [{"port": 80, "nodePort": 30001}]}
    refused = live.client.ask("POST", SERVICES, {"metadata": {"name": "a"}, "spec": spec})
    assert refused.status == 422 and "provided port is already allocated" in refused.json["message"]
    spec = {"type": "NodePort", "ports": [{"port": 80}]}
    made = live.client.post(SERVICES, {"metadata": {"name": "a"}, "spec": spec})
    assert made["spec"]["ports"][0]["nodePort"] == 30003
    full = live.client.ask("POST", SERVICES, {"metadata": {"name": "b"}, "spec": spec})
    assert full.status == 500 and "range is full" in full.json["message"]
    other.put(KEY, as_protobuf("30000-30007", bytes([0b01111111])))
    made = live.client.post(SERVICES, {"metadata": {"name": "b"}, "spec": spec})
    assert made["spec"]["ports"][0]["nodePort"] == 30007


def test_writes_of_the_other_server_are_watched(pair: tuple[Live, Other]) -> None:
    live, other = pair
    body: Object = {
        "metadata": {"name": "s", "namespace": "default"},
        "data": {"a": "YQ=="},
        "type": "Opaque",
    }
    with live.client.watch("/api/v1/namespaces/default/secrets") as watch:
        made = other.put("/registry/secrets/default/s", stored("v1", "Secret", body))
        [event] = watch.take(1)
        assert (event["type"], version(event["object"]), event["object"]["data"]) == (
            "ADDED",
            made,
            {"a": "YQ=="},
        )
        changed = other.put("/registry/secrets/default/s", stored("v1", "Secret", {**body, "data": {}}))
        [event] = watch.take(1)
        assert (event["type"], version(event["object"])) == ("MODIFIED", changed)
        other.delete("/registry/secrets/default/s")
        [event] = watch.take(1)
        assert event["type"] == "DELETED"


def test_events_of_the_other_server_expire(pair: tuple[Live, Other]) -> None:
    live, other = pair
    body = {"metadata": {"name": "e", "namespace": "default"}, "involvedObject": {"namespace": "default"}}
    events = "/api/v1/namespaces/default/events"
    with live.client.watch(events) as watch:
        other.put("/registry/events/default/e", stored("v1", "Event", body), ttl=1)
        assert [event["type"] for event in watch.take(2)] == ["ADDED", "DELETED"]


def test_crd_of_the_other_server_is_served_until_it_is_deleted(pair: tuple[Live, Other]) -> None:
    live, other = pair
    key = f"/registry/apiextensions.k8s.io/customresourcedefinitions/widgets.{GROUP}"
    other.put(key, json.dumps(crd()).encode() + b"\n")
    until_status(live, WIDGETS, 200)
    widget = {
        "apiVersion": f"{GROUP}/v1",
        "kind": "Widget",
        "metadata": {"name": "w", "namespace": "default"},
    }
    made = other.put(f"/registry/{GROUP}/widgets/default/w", json.dumps(widget).encode() + b"\n")
    assert version(live.client.get(f"{WIDGETS}/w")) == made
    live.client.delete(f"{WIDGETS}/w")
    other.delete(key)
    until_status(live, WIDGETS, 404)


def test_only_one_server_compacts_in_an_interval(real_etcd: EtcdServer) -> None:
    async def scene() -> None:
        client = EtcdClient([real_etcd.endpoint], credentials(None, None, None))
        ours, clock = Compactor(client), b"compact_rev_key"

        async def version() -> int:
            response = await client.call("Range", pb.RangeRequest(key=clock))
            return int(response.kvs[0].version) if response.kvs else 0

        try:
            await ours.turn()
            await ours.turn()
            for _ in range(3):  # the other server is always faster
                await client.call("Put", pb.PutRequest(key=clock, value=b"1"))
                assert not await ours.turn()
            before = await version()
            assert await ours.turn()  # the other server is gone
            assert await version() == before + 1
            assert await ours.turn()
        finally:
            await client.close()

    asyncio.run(scene())
