from typing import Any

import pytest
import yaml
from hypothesis import given
from hypothesis import strategies as st

from kubist.api.kinds.core import service_families


@pytest.fixture
def services(kind_of: Any) -> Any:
    return kind_of("v1", "Service")


@pytest.mark.parametrize(
    ("spec", "expected"),
    [
        ("selector: {a: b}", []),
        ("ports: []", [("spec.ports", "Required")]),
        (
            "ports: [{port: 1}, {port: 2}]",
            [("spec.ports[0].name", "Required"), ("spec.ports[1].name", "Required")],
        ),
        (
            "ports: [{port: 0, protocol: ICMP, targetPort: a--b}]",
            [
                ("spec.ports[0].port", "Invalid"),
                ("spec.ports[0].protocol", "NotSupported"),
                ("spec.ports[0].targetPort", "Invalid"),
            ],
        ),
        ("ports: [{name: a, port: 1}, {name: b, port: 1}]", [("spec.ports[1]", "Duplicate")]),
        ("ports: [{name: a, port: 1}, {name: b, port: 1, protocol: UDP}]", []),
        ("type: ExternalName", [("spec.externalName", "Required")]),
        ("{type: ExternalName, externalName: db.example.org.}", []),
        (
            "{type: ExternalName, externalName: db.example.org, internalTrafficPolicy: Odd}",
            [("spec.internalTrafficPolicy", "NotSupported")],
        ),
        ("type: Odd", [("spec.type", "NotSupported")]),
        (
            "{sessionAffinity: ClientIP, sessionAffinityConfig: {clientIP: {timeoutSeconds: 0}}}",
            [("spec.sessionAffinityConfig.clientIP.timeoutSeconds", "Invalid")],
        ),
        (
            "externalIPs: [127.0.0.1, nope, 010.0.0.1]",
            [
                ("spec.externalIPs[0]", "Invalid"),
                ("spec.externalIPs[1]", "Invalid"),
                ("spec.externalIPs[2]", "Invalid"),
            ],
        ),
        ("loadBalancerSourceRanges: [10.0.0.0/8]", [("spec.LoadBalancerSourceRanges", "Forbidden")]),
        (
            "{type: LoadBalancer, loadBalancerSourceRanges: [' 10.0.0.0/8 ', 10.0.0.1/8]}",
            [("spec.LoadBalancerSourceRanges[1]", "Invalid")],
        ),
        ("loadBalancerClass: example.com/x", [("spec.loadBalancerClass", "Forbidden")]),
        ("externalTrafficPolicy: Local", [("spec.externalTrafficPolicy", "Invalid")]),
        ("healthCheckNodePort: 30000", [("spec.healthCheckNodePort", "Invalid")]),
        ("trafficDistribution: Anywhere", [("spec.trafficDistribution", "NotSupported")]),
        ("allocateLoadBalancerNodePorts: true", [("spec.allocateLoadBalancerNodePorts", "Forbidden")]),
    ],
)
def test_invalid_service_is_rejected(services: Any, spec: str, expected: Any) -> None:
    given = {"spec": {"ports": [{"port": 80}], **yaml.safe_load(spec)}}
    assert services.create_errors(given) == expected


def test_type_change_drops_unchanged_fields_of_old_type(services: Any) -> None:
    old = """
        spec:
          type: LoadBalancer
          clusterIP: 10.0.0.5
          clusterIPs: [10.0.0.5]
          externalTrafficPolicy: Local
          healthCheckNodePort: 30001
          loadBalancerClass: example.com/x
          ports: [{port: 80, nodePort: 30000}]
        status: {loadBalancer: {ingress: [{ip: 1.2.3.4}]}}
    """
    plain = services.update(old, old.replace("type: LoadBalancer", "type: ClusterIP"))
    assert (
        plain["spec"].keys() & {"healthCheckNodePort", "loadBalancerClass", "externalTrafficPolicy"} == set()
    )
    assert "nodePort" not in plain["spec"]["ports"][0]
    assert plain["status"] == {"loadBalancer": {}}
    named = services.update(old, old.replace("type: LoadBalancer", "type: ExternalName"))
    assert named["spec"].keys() & {"clusterIP", "clusterIPs"} == set()


def test_changed_node_port_is_rejected_on_type_change(services: Any) -> None:
    old = "spec: {type: NodePort, ports: [{port: 80, nodePort: 30000}]}"
    new = "spec: {type: ClusterIP, ports: [{port: 80, nodePort: 30001}]}"
    assert ("spec.ports[0].nodePort", "Forbidden") in services.update_errors(old, new)


FAMILIES = st.lists(st.sampled_from(["IPv4", "IPv6"]), max_size=2, unique=True)
SPECS = st.fixed_dictionaries(
    {"type": st.sampled_from(["ClusterIP", "NodePort", "LoadBalancer", "ExternalName"])},
    optional={
        "clusterIP": st.sampled_from(["None", "10.0.0.1", "fd00::1"]),
        "ipFamilies": FAMILIES,
        "ipFamilyPolicy": st.sampled_from(["SingleStack", "PreferDualStack", "RequireDualStack"]),
        "selector": st.just({"a": "b"}),
    },
)


@given(spec=SPECS, configured=st.sampled_from([["IPv4"], ["IPv6"], ["IPv4", "IPv6"], ["IPv6", "IPv4"]]))
def test_initialized_families_fit_the_policy_and_are_stable(spec: Any, configured: list[str]) -> None:
    service_families.normalize_cluster_ips(spec, None)
    if service_families.init_families(spec, None, configured):
        return
    if spec["type"] != "ExternalName":
        dual = len(spec["ipFamilies"]) == 2
        assert not (dual and spec["ipFamilyPolicy"] == "SingleStack")
        assert dual or spec["ipFamilyPolicy"] != "RequireDualStack"
    again = {**spec}
    assert service_families.init_families(again, None, configured) == []
    assert again == spec


@pytest.mark.parametrize(
    ("spec", "policy", "families"),
    [
        ({"clusterIP": "None"}, "RequireDualStack", ["IPv4", "IPv6"]),
        ({"clusterIP": "None", "selector": {"a": "b"}}, "SingleStack", ["IPv4"]),
        ({}, "SingleStack", ["IPv4"]),
        ({"ipFamilyPolicy": "PreferDualStack"}, "PreferDualStack", ["IPv4"]),
    ],
)
def test_families_of_a_single_stack_cluster(spec: Any, policy: str, families: list[str]) -> None:
    spec = {"type": "ClusterIP", **spec}
    service_families.normalize_cluster_ips(spec, None)
    assert service_families.init_families(spec, None, ["IPv4"]) == []
    assert (spec["ipFamilyPolicy"], spec["ipFamilies"]) == (policy, families)


def test_reapplied_manifest_keeps_allocated_values() -> None:
    old = {
        "type": "NodePort",
        "clusterIP": "10.0.0.1",
        "clusterIPs": ["10.0.0.1"],
        "ports": [{"name": "a", "port": 1, "nodePort": 30001}, {"name": "b", "port": 2, "nodePort": 30002}],
    }
    new: dict[str, Any] = {
        "type": "NodePort",
        "ports": [{"name": "b", "port": 2}, {"name": "c", "port": 3, "nodePort": 30001}],
    }
    service_families.carry_over_allocated(new, old)
    assert new["clusterIP"] == "10.0.0.1"
    assert [port.get("nodePort") for port in new["ports"]] == [30002, 30001]
