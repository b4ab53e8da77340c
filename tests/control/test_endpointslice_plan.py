"""Endpoints of pods: conditions, ports, hints, and their distribution over slices and subsets."""

from __future__ import annotations

from typing import Any

import pytest

from kubist.cluster.control.workloads import endpointslice_mirroring, endpointslice_plan
from kubist.cluster.control.workloads.endpointslice_plan import distribute
from kubist.model.meta.object import Object

PORT = {"name": "web", "port": 80, "targetPort": "http", "protocol": "TCP"}


def service(**spec: Any) -> Object:
    body = {
        "selector": {"app": "web"},
        "ports": [PORT],
        "clusterIP": "10.0.0.1",
        "ipFamilies": ["IPv4"],
        **spec,
    }
    return {"metadata": {"name": "web", "namespace": "default"}, "spec": body}


def pod(
    name: str,
    *ips: str,
    ready: bool = True,
    gone: bool = False,
    phase: str = "Running",
    port: int = 8080,
    **spec: Any,
) -> Object:
    metadata = {"name": name, "namespace": "default", "uid": name}
    if gone:
        metadata["deletionTimestamp"] = "2030-01-01T00:00:00Z"
    ports = [{"name": "http", "containerPort": port}]
    return {
        "metadata": metadata,
        "spec": {"nodeName": "n", "containers": [{"name": "c", "ports": ports}], **spec},
        "status": {
            "phase": phase,
            "podIPs": [{"ip": ip} for ip in ips],
            "conditions": [{"type": "Ready", "status": "True" if ready else "False"}],
        },
    }


NODES = {"n": {"metadata": {"name": "n", "labels": {"topology.kubernetes.io/zone": "z"}}}}


@pytest.mark.parametrize(
    ("ready", "gone", "publish", "wanted"),
    [
        (True, False, False, (True, True, False)),
        (False, False, False, (False, False, False)),
        (True, True, False, (False, True, True)),
        (False, True, False, (False, False, True)),
        (False, False, True, (True, False, False)),
        (True, True, True, (True, True, True)),
    ],
)
def test_conditions_of_an_endpoint(
    ready: bool, gone: bool, publish: bool, wanted: tuple[bool, bool, bool]
) -> None:
    owner = service(publishNotReadyAddresses=publish)
    (group,) = endpointslice_plan.slice_groups(owner, [pod("p", "10.1.1.1", ready=ready, gone=gone)], NODES)
    (endpoint,) = group.endpoints
    found = endpoint["conditions"]
    assert (found["ready"], found["serving"], found["terminating"]) == wanted
    assert endpoint["zone"] == "z"
    assert endpoint["nodeName"] == "n"
    assert endpoint["targetRef"] == {"kind": "Pod", "namespace": "default", "name": "p", "uid": "p"}


def test_finished_pods_and_pods_without_address_are_left_out() -> None:
    pods = [pod("a"), pod("b", "10.1.1.1", phase="Succeeded"), pod("c", "10.1.1.2", nodeName="unknown")]
    assert endpointslice_plan.slice_groups(service(), pods, NODES) == []
    publishing = service(publishNotReadyAddresses=True)
    assert [len(group.endpoints) for group in endpointslice_plan.slice_groups(publishing, pods, NODES)] == [1]


def test_dual_stack_service_has_slices_of_both_types() -> None:
    owner = service(ipFamilies=["IPv6", "IPv4"])
    groups = endpointslice_plan.slice_groups(
        owner, [pod("p", "10.1.1.1", "fd00::1"), pod("q", "10.1.1.2")], NODES
    )
    found = {group.address_type: [e["addresses"] for e in group.endpoints] for group in groups}
    assert found == {"IPv6": [["fd00::1"]], "IPv4": [["10.1.1.1"], ["10.1.1.2"]]}


def test_pods_with_other_ports_get_other_slices() -> None:
    groups = endpointslice_plan.slice_groups(
        service(), [pod("p", "10.1.1.1"), pod("q", "10.1.1.2", port=9090)], NODES
    )
    assert [group.ports[0]["port"] for group in groups] == [8080, 9090]


def test_ports_are_found_in_sidecars_and_keep_their_application_protocol() -> None:
    sidecar = {"name": "s", "restartPolicy": "Always", "ports": [{"name": "side", "containerPort": 7}]}
    named = {**PORT, "targetPort": "side", "appProtocol": "http"}
    found = endpointslice_plan.ports_of(service(ports=[named]), pod("p", initContainers=[sidecar]))
    assert found == [{"name": "web", "port": 7, "protocol": "TCP", "appProtocol": "http"}]
    missing = {**PORT, "targetPort": "none"}
    assert endpointslice_plan.ports_of(service(ports=[missing]), pod("p")) == []
    other = {**PORT, "protocol": "UDP"}
    assert endpointslice_plan.ports_of(service(ports=[other]), pod("p")) == []


@pytest.mark.parametrize(
    ("distribution", "hints"),
    [
        (None, None),
        ("PreferClose", {"forZones": [{"name": "z"}]}),
        ("PreferSameZone", {"forZones": [{"name": "z"}]}),
        ("PreferSameNode", {"forZones": [{"name": "z"}], "forNodes": [{"name": "n"}]}),
    ],
)
def test_traffic_distribution_sets_hints(distribution: str | None, hints: Object | None) -> None:
    owner = service(trafficDistribution=distribution)
    pods = [pod("p", "10.1.1.1"), pod("q", "10.1.1.2", ready=False)]
    (group,) = endpointslice_plan.slice_groups(owner, pods, NODES)
    assert [endpoint.get("hints") for endpoint in group.endpoints] == [hints, None]


def test_hostname_is_set_below_the_service() -> None:
    named = pod("p", "10.1.1.1", hostname="web-0", subdomain="web")
    (group,) = endpointslice_plan.slice_groups(service(), [named], NODES)
    assert group.endpoints[0]["hostname"] == "web-0"


def endpoints(*numbers: int, ready: bool = True) -> list[Object]:
    return [{"addresses": [f"10.0.0.{number}"], "conditions": {"ready": ready}} for number in numbers]


def shown(parts: list[list[Object]]) -> list[list[int]]:
    return [[int(e["addresses"][0].rpartition(".")[2]) for e in part] for part in parts]


@pytest.mark.parametrize(
    ("held", "desired", "wanted"),
    [
        ([], [], []),
        ([], [1, 2, 3, 4], [[1, 2, 3], [4]]),
        ([[1, 2]], [1, 2], [[1, 2]]),
        ([[1, 2]], [1, 2, 3], [[1, 2, 3]]),
        ([[1, 2, 3]], [1, 2, 3, 4], [[1, 2, 3], [4]]),
        ([[1, 2, 3], [4]], [1, 2, 4, 5], [[1, 2, 5], [4]]),
        ([[1], [2, 3]], [1, 2, 3, 4], [[1], [2, 3, 4]]),
        ([[1, 2]], [], [[]]),
        ([[1], [2]], [2], [[], [2]]),
        ([[1, 2], [3, 4]], [1, 2, 3, 4, 5, 6], [[1, 2], [3, 4], [5, 6]]),
    ],
)
def test_endpoints_stay_in_their_slice(
    held: list[list[int]], desired: list[int], wanted: list[list[int]]
) -> None:
    parts = distribute([endpoints(*part) for part in held], endpoints(*desired), 3)
    assert shown(parts) == wanted


def test_changed_endpoint_is_updated_in_place() -> None:
    parts = distribute([endpoints(1, 2)], [*endpoints(1), *endpoints(2, ready=False)], 3)
    assert parts == [[*endpoints(1), *endpoints(2, ready=False)]]


def test_hundred_endpoints_per_slice() -> None:
    many = [{"addresses": [f"10.0.{n // 200}.{n % 200}"]} for n in range(250)]
    assert [len(part) for part in distribute([], many)] == [100, 100, 50]


def test_subsets_have_ready_and_other_addresses() -> None:
    pods = [pod("a", "10.1.1.1"), pod("b", "10.1.1.2", ready=False), pod("c", "10.1.1.3", gone=True)]
    (subset,) = endpointslice_plan.subsets_of(service(), pods)
    assert [address["ip"] for address in subset["addresses"]] == ["10.1.1.1"]
    assert [address["ip"] for address in subset["notReadyAddresses"]] == ["10.1.1.2"]
    assert subset["ports"] == [{"name": "web", "port": 8080, "protocol": "TCP"}]
    assert endpointslice_plan.subsets_of(service(), []) == []


def test_ports_with_the_same_addresses_share_a_subset() -> None:
    other = {"name": "other", "port": 81, "targetPort": 81, "protocol": "TCP"}
    owner = service(ports=[PORT, other])
    pods = [pod("a", "10.1.1.1"), pod("b", "10.1.1.2", port=9090)]
    found = endpointslice_plan.subsets_of(owner, pods)
    assert [([p["port"] for p in s["ports"]], len(s["addresses"])) for s in found] == [
        ([8080], 1),
        ([81], 2),
        ([9090], 1),
    ]
    (same,) = endpointslice_plan.subsets_of(owner, pods[:1])
    assert [port["port"] for port in same["ports"]] == [8080, 81]


def test_headless_service_without_ports_has_addresses() -> None:
    owner = service(ports=None, clusterIP="None")
    (subset,) = endpointslice_plan.subsets_of(owner, [pod("a", "10.1.1.1")])
    assert "ports" not in subset
    assert subset["addresses"][0]["ip"] == "10.1.1.1"


def test_endpoints_are_truncated_ready_ones_last() -> None:
    subset = {"addresses": endpoints(1, 2, 3), "notReadyAddresses": endpoints(4, 5, 6)}
    assert endpointslice_plan.truncate([subset], 6) == ([subset], False)
    (cut,), truncated = endpointslice_plan.truncate([subset], 4)
    assert truncated
    assert (len(cut["addresses"]), len(cut["notReadyAddresses"])) == (3, 1)
    (cut,), _ = endpointslice_plan.truncate([subset], 2)
    assert cut == {"addresses": endpoints(1, 2)}


def test_mirrored_endpoints_are_grouped_by_type_and_ports() -> None:
    subset = {
        "addresses": [{"ip": "10.1.1.1", "hostname": "h"}, {"ip": "fd00::1"}, {"ip": "x"}],
        "notReadyAddresses": [{"ip": "10.1.1.2", "nodeName": "n"}],
        "ports": [{"name": "web", "port": 80, "protocol": "TCP"}],
    }
    groups, invalid, skipped = endpointslice_mirroring.mirrored_groups({"subsets": [subset]})
    assert (invalid, skipped) == (1, 1)
    found = {group.address_type: group.endpoints for group in groups}
    assert found["IPv4"] == [
        {"addresses": ["10.1.1.1"], "conditions": {"ready": True}, "hostname": "h"},
        {"addresses": ["10.1.1.2"], "conditions": {"ready": False}, "nodeName": "n"},
    ]
    assert len(found["IPv6"]) == 1


def test_addresses_above_the_limit_are_not_mirrored() -> None:
    many = [{"ip": f"10.1.{n // 200}.{n % 200}"} for n in range(1200)]
    (group,), invalid, skipped = endpointslice_mirroring.mirrored_groups({"subsets": [{"addresses": many}]})
    assert (len(group.endpoints), invalid, skipped) == (1000, 0, 200)


def test_leader_election_and_labelled_endpoints_are_not_mirrored() -> None:
    assert endpointslice_mirroring.is_mirrored({"metadata": {}})
    assert not endpointslice_mirroring.is_mirrored(
        {"metadata": {"labels": {endpointslice_mirroring.SKIP: "true"}}}
    )
    assert not endpointslice_mirroring.is_mirrored(
        {"metadata": {"annotations": {endpointslice_mirroring.LEADER: "{}"}}}
    )
