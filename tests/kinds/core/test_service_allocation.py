"""Allocation of cluster IPs and node ports on the parts of a real server: unique, released, reused."""

import asyncio
from collections.abc import Awaitable
from pathlib import Path
from typing import Any

import pytest

from kubist.api.kinds.core.service_addresses import ip_address
from kubist.api.kinds.core.service_ports import KEY
from kubist.api.object_client import ObjectClient
from kubist.cluster.control.allocations import Allocations
from kubist.model.meta.status import APIError
from tests.kinds.core.scenes import play


async def create(cluster: ObjectClient, name: str, **spec: Any) -> dict[str, Any]:
    body = {
        "metadata": {"name": name},
        "spec": {"ports": [{"port": 80}], **spec},
        "status": {"loadBalancer": {}},
    }
    return await cluster.create("services", body, "default")


async def allocated_ports(cluster: ObjectClient) -> set[int]:
    return cluster.node_ports.allocated(await cluster.node_ports.read())


async def error_of(attempt: Awaitable[Any]) -> APIError:
    with pytest.raises(APIError) as caught:
        await attempt
    return caught.value


def test_concurrent_services_get_different_addresses_and_ports(tmp_path: Path) -> None:
    async def scene(cluster: ObjectClient) -> None:
        made = await asyncio.gather(*(create(cluster, f"s{i}", type="NodePort") for i in range(40)))
        assert len({service["spec"]["clusterIP"] for service in made}) == 40
        assert len({service["spec"]["ports"][0]["nodePort"] for service in made}) == 40
        for service in made:
            address = cluster.get("ipaddresses", service["spec"]["clusterIP"], group="networking.k8s.io")
            assert address is not None
            assert address["spec"]["parentRef"]["name"] == service["metadata"]["name"]

    play(tmp_path, scene)


def test_only_one_create_gets_the_requested_port_and_others_release_addresses(tmp_path: Path) -> None:
    async def scene(cluster: ObjectClient) -> None:
        def wanted(i: int) -> Awaitable[Any]:
            return create(cluster, f"s{i}", type="NodePort", ports=[{"port": 80, "nodePort": 30500}])

        results = await asyncio.gather(*(wanted(i) for i in range(10)), return_exceptions=True)
        errors = [result for result in results if isinstance(result, APIError)]
        assert len(errors) == 9
        details = [error.details or {} for error in errors]
        assert all(detail["causes"][0]["field"] == "spec.ports[0].nodePort" for detail in details)
        owners = [
            address["spec"]["parentRef"]["name"]
            for address in cluster.list("ipaddresses", group="networking.k8s.io")
        ]
        assert sorted(set(owners) - {"kubernetes"}) == [
            r["metadata"]["name"] for r in results if isinstance(r, dict)
        ]

    play(tmp_path, scene)


def test_deleted_service_releases_addresses_and_ports(tmp_path: Path) -> None:
    async def scene(cluster: ObjectClient) -> None:
        spec = {"type": "NodePort", "clusterIP": "10.0.0.77", "ports": [{"port": 80, "nodePort": 30777}]}
        await create(cluster, "a", **spec)
        assert (await error_of(create(cluster, "b", clusterIP="10.0.0.77"))).code == 422
        await cluster.delete("services", "a", "default")
        assert await allocated_ports(cluster) == set()
        await create(cluster, "b", **spec)

    play(tmp_path, scene)


def test_full_port_range_is_an_internal_error(tmp_path: Path) -> None:
    async def scene(cluster: ObjectClient) -> None:
        ports = [
            (await create(cluster, f"s{i}", type="NodePort"))["spec"]["ports"][0]["nodePort"]
            for i in range(8)
        ]
        assert set(ports) == set(range(30000, 30008))
        assert (await error_of(create(cluster, "more", type="NodePort"))).code == 500

    play(tmp_path, scene, service_node_port_range="30000-30007")


@pytest.mark.parametrize("ip", ["10.0.1.1", "10.0.0.0", "10.0.0.255"])
def test_address_outside_the_range_is_rejected(tmp_path: Path, ip: str) -> None:
    async def scene(cluster: ObjectClient) -> None:
        error = await error_of(create(cluster, "s", clusterIP=ip))
        assert error.details is not None
        assert error.details["causes"][0]["field"] == "spec.clusterIPs"

    play(tmp_path, scene)


def test_another_service_cidr_extends_the_range(tmp_path: Path) -> None:
    async def scene(cluster: ObjectClient) -> None:
        more = {"metadata": {"name": "more"}, "spec": {"cidrs": ["10.9.0.0/24"]}, "status": {}}
        await cluster.create("servicecidrs", more, group="networking.k8s.io")
        service = await create(cluster, "s", clusterIP="10.9.0.7")
        assert service["spec"]["clusterIPs"] == ["10.9.0.7"]

    play(tmp_path, scene)


def test_dual_stack_service_gets_one_address_of_each_family(tmp_path: Path) -> None:
    async def scene(cluster: ObjectClient) -> None:
        service = await create(cluster, "s", ipFamilyPolicy="PreferDualStack")
        assert service["spec"]["ipFamilies"] == ["IPv4", "IPv6"]
        assert [":" in ip for ip in service["spec"]["clusterIPs"]] == [False, True]

    play(tmp_path, scene, service_cluster_ip_range="10.0.0.0/24,fd00::/112")


def test_repair_records_used_and_releases_unused_allocations(tmp_path: Path) -> None:
    async def scene(cluster: ObjectClient) -> None:
        ip, port = "10.0.0.77", 30777
        await create(cluster, "s", type="NodePort", clusterIP=ip, ports=[{"port": 80, "nodePort": port}])
        await cluster.delete("ipaddresses", ip, group="networking.k8s.io")
        await cluster.node_ports.release({port})
        assert await cluster.node_ports.allocate(32000)
        stray = {"metadata": {"name": "gone", "namespace": "default"}}
        await cluster.create("ipaddresses", ip_address("10.0.0.200", stray), group="networking.k8s.io")
        allocations = Allocations(cluster, cluster.registry.store)
        await allocations.repair()
        assert await allocated_ports(cluster) == {port, 32000}
        assert cluster.get("ipaddresses", ip, group="networking.k8s.io") is not None
        await allocations.repair()
        assert await allocated_ports(cluster) == {port}
        assert cluster.get("ipaddresses", "10.0.0.200", group="networking.k8s.io") is None
        assert cluster.get("ipaddresses", "10.0.0.1", group="networking.k8s.io") is not None

    play(tmp_path, scene)


def test_port_claims_of_earlier_versions_are_migrated(tmp_path: Path) -> None:
    async def scene(cluster: ObjectClient) -> None:
        service = await create(cluster, "s", type="NodePort")
        port = service["spec"]["ports"][0]["nodePort"]
        store = cluster.registry.store
        record = await store.get(KEY)
        assert record is not None
        await store.delete(KEY, record.mod_revision)
        await store.create(f"{KEY}/{port}", b"default/s")
        wanted = [{"port": 80, "nodePort": port}]
        assert (await error_of(create(cluster, "t", type="NodePort", ports=wanted))).code == 422
        await Allocations(cluster, store).repair()
        assert await allocated_ports(cluster) == {port}
        assert (await store.scan(f"{KEY}/")).items == []

    play(tmp_path, scene)


def test_repair_adopts_a_changed_range(tmp_path: Path) -> None:
    async def scene(cluster: ObjectClient) -> None:
        service = await create(cluster, "s", type="NodePort")
        store = cluster.registry.store
        record = await store.get(KEY)
        assert record is not None
        other = (
            b'{"kind":"RangeAllocation","apiVersion":"v1","metadata":{},"range":"20000-20010","data":"Aw=="}'
        )
        await store.update(KEY, other, record.mod_revision)
        error = await error_of(create(cluster, "t", type="NodePort"))
        assert "the provided range does not match the current range" in error.message
        await Allocations(cluster, store).repair()
        assert await allocated_ports(cluster) == {service["spec"]["ports"][0]["nodePort"]}
        await create(cluster, "t", type="NodePort")

    play(tmp_path, scene)
