"""Endpoints of the Service kubernetes: all servers on one etcd, by kube-apiserver's leases."""

from __future__ import annotations

import os
from collections.abc import Callable
from typing import Any

import pytest

from kubist.cluster.control import kubernetes_service
from kubist.cluster.control.kubernetes_service import LEASE_SECONDS, LEASES
from kubist.model.codec import protobuf
from kubist.model.schema.catalog import schema_for
from tests.live import Live, Pki
from tests.storage.etcd_server import EtcdServer
from tests.waiting import wait_for

pytestmark = pytest.mark.etcd
ENDPOINTS = "/api/v1/namespaces/default/endpoints/kubernetes"
SLICE = "/apis/discovery.k8s.io/v1/namespaces/default/endpointslices/kubernetes"
OTHER = "192.0.2.99"
Start = Callable[..., Live]


@pytest.fixture
def start(server_pki: Pki, real_etcd: EtcdServer) -> Start:
    """Starts servers on one etcd that no other test uses."""
    prefix = f"/{os.urandom(4).hex()}"

    def make(address: str = "192.0.2.7", **config: Any) -> Live:
        etcd = {"etcd_servers": (real_etcd.endpoint,), "etcd_prefix": prefix}
        return Live(server_pki, advertise_address=address, **etcd, **config)

    return make


def lease_of(address: str) -> bytes:
    """A lease as a kube-apiserver stores it."""
    body = {"metadata": {"generation": 3}, "subsets": [{"addresses": [{"ip": address}]}]}
    return protobuf.wrap("v1", "Endpoints", protobuf.encode(schema_for("", "v1", "Endpoints"), body))


def hold_lease(live: Live, address: str) -> None:
    live.run(live.server.registry.store.create(LEASES + address, lease_of(address)))


def drop_lease(live: Live, address: str) -> None:
    store = live.server.registry.store
    held = live.run(store.get(LEASES + address))
    assert held is not None
    live.run(store.delete(held.key, held.mod_revision))


def reconcile(live: Live) -> None:
    """One pass of the server's loop, now."""
    address = live.server._address
    assert address is not None
    live.run(address._renew())
    live.run(address._reconcile())


def addresses(live: Live) -> list[str]:
    """The addresses of the endpoints, which those of the slice must equal."""
    [subset] = live.client.get(ENDPOINTS)["subsets"]
    found = [each["ip"] for each in subset["addresses"]]
    shown = live.client.get(SLICE)
    assert slice_addresses(live) == found
    assert [port["port"] for port in shown["ports"]] == [port["port"] for port in subset["ports"]]
    return found


def slice_addresses(live: Live) -> list[str]:
    """The addresses of the slice. The server writes them after those of the endpoints."""
    return [ip for endpoint in live.client.get(SLICE)["endpoints"] for ip in endpoint["addresses"]]


def test_server_leases_its_address(start: Start) -> None:
    with start() as live:
        reconcile(live)
        first = live.run(live.server.registry.store.get(f"{LEASES}192.0.2.7"))
        reconcile(live)
        second = live.run(live.server.registry.store.get(f"{LEASES}192.0.2.7"))
        assert first is not None and second is not None and first.mod_revision < second.mod_revision
        assert addresses(live) == ["192.0.2.7"]
    assert LEASE_SECONDS == 15


def test_server_joins_those_that_hold_leases_and_leaves_them_when_it_stops(start: Start) -> None:
    with start() as first:
        reconcile(first)
        hold_lease(first, OTHER)
        reconcile(first)
        assert addresses(first) == ["192.0.2.7", OTHER]
        with start("192.0.2.8") as second:
            reconcile(second)
            assert addresses(second) == addresses(first) == ["192.0.2.7", "192.0.2.8", OTHER]
        assert addresses(first) == ["192.0.2.7", OTHER]
        drop_lease(first, OTHER)
        reconcile(first)
        assert addresses(first) == ["192.0.2.7"]


def test_pass_without_a_change_writes_the_lease_only(start: Start) -> None:
    with start() as live:
        reconcile(live)
        before = [live.client.get(path) for path in (ENDPOINTS, SLICE)]
        reconcile(live)
        assert [live.client.get(path) for path in (ENDPOINTS, SLICE)] == before


def test_server_that_only_this_machine_reaches_does_not_replace_others(start: Start) -> None:
    with start() as first:
        reconcile(first)
        with start("") as second:
            assert second.server._address is None
            assert addresses(first) == ["192.0.2.7"]
            assert ports(first) == [first.server.port]


def ports(live: Live) -> list[int]:
    return [port["port"] for port in live.client.get(ENDPOINTS)["subsets"][0]["ports"]]


def test_ports_are_those_of_the_only_server(start: Start) -> None:
    with start() as first:
        reconcile(first)
        with start("192.0.2.8") as second:
            reconcile(second)
            assert ports(second) == [first.server.port]
            drop_lease(second, "192.0.2.7")
            reconcile(second)
            assert addresses(second) == ["192.0.2.8"]
            assert ports(second) == [second.server.port]


def test_servers_with_the_same_address_do_not_fight_about_the_port(start: Start) -> None:
    with start() as first, start() as second:
        for live in (first, second, first, second):
            reconcile(live)
        before = live.client.get(ENDPOINTS)
        for live in (first, second, first, second):
            reconcile(live)
        assert live.client.get(ENDPOINTS) == before


def test_server_with_the_same_address_keeps_it(start: Start) -> None:
    with start() as first:
        reconcile(first)
        with start() as second:
            reconcile(second)
            reconcile(first)
        assert addresses(first) == ["192.0.2.7"]


def test_deleted_endpoints_come_back(start: Start) -> None:
    with start() as live:
        reconcile(live)
        live.client.delete(ENDPOINTS)
        live.client.delete(SLICE)
        reconcile(live)
        assert addresses(live) == ["192.0.2.7"]


def test_last_server_leaves_no_address(start: Start) -> None:
    with start() as live:
        reconcile(live)
    with start(endpoint_reconciler_type="none") as live:
        assert "subsets" not in live.client.get(ENDPOINTS)
        assert not live.client.get(SLICE)["endpoints"]


def test_without_reconciler_there_are_no_endpoints(start: Start) -> None:
    with start(endpoint_reconciler_type="none") as live:
        assert live.server._address is None
        assert live.client.ask("GET", ENDPOINTS).status == 404
        assert live.client.ask("GET", SLICE).status == 404


def test_malformed_lease_does_not_end_the_loop(start: Start, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(kubernetes_service, "INTERVAL", 0.01)
    with start() as live:
        store = live.server.registry.store
        revision = live.run(store.create(LEASES + OTHER, b"not a lease"))

        def renewed() -> int:
            lease = live.run(store.get(f"{LEASES}192.0.2.7"))
            return lease.mod_revision if lease is not None else 0

        wait_for(lambda: renewed() > revision + 2)
        hold_lease(live, "192.0.2.8")
        live.run(store.delete(LEASES + OTHER, revision))
        wait_for(lambda: slice_addresses(live) == ["192.0.2.7", "192.0.2.8"])
        assert addresses(live) == ["192.0.2.7", "192.0.2.8"]
