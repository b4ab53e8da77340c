"""Checks of the simulated scheduler: which nodes a pod fits on, and the words about those on which it does not."""

from __future__ import annotations

from typing import Any

import pytest

from kubist.cluster.simulation.scheduler.pod_info import MOST_TERMS, PodInfo
from tests.simulation.scheduling import HOST, ZONE, World, node, pod

REQUIRED = "requiredDuringSchedulingIgnoredDuringExecution"
TAINT = {"key": "k", "value": "v", "effect": "NoSchedule"}


def container(cpu: str, **more: Any) -> dict[str, Any]:
    return {"name": f"c{cpu}", "image": "i", "resources": {"requests": {"cpu": cpu}}, **more}


def required(*expressions: dict[str, Any], **parts: Any) -> dict[str, Any]:
    terms = [{"matchExpressions": [expression]} for expression in expressions]
    return {"nodeAffinity": {REQUIRED: {"nodeSelectorTerms": [*terms, *parts.get("terms", [])]}}}


def test_requests_are_compared_with_allocatable() -> None:
    world = World(node("a"), node("b", cpu="8"), pods=[pod(on="a", requests={"cpu": "3500m"})])
    assert world.fitting(pod(requests={"cpu": "500m"})) == ["a", "b"]
    assert world.fitting(pod(requests={"cpu": "501m"})) == ["b"]
    message = "0/2 nodes are available: 1 Insufficient memory, 2 Insufficient cpu."
    world = World(node("a"), node("b", memory="64Gi"))
    assert world.why(pod(requests={"cpu": "5", "memory": "9Gi"})) == message


def test_number_of_pods_is_limited() -> None:
    world = World(node("a", pods="1"), pods=[pod(on="a")])
    assert world.why(pod()) == "0/1 nodes are available: 1 Too many pods."


def test_extended_resources_need_a_node_that_has_them() -> None:
    world = World(node("a"))
    wanted = pod(requests={"example.com/gpu": "1"})
    assert world.why(wanted) == "0/1 nodes are available: 1 Insufficient example.com/gpu."


@pytest.mark.parametrize(
    ("spec", "fits"),
    [
        ({"containers": [container("2"), container("2")]}, True),
        ({"containers": [container("2"), container("2100m")]}, False),
        ({"containers": [container("1")], "initContainers": [container("4")]}, True),
        ({"containers": [container("1")], "initContainers": [container("4100m")]}, False),
        ({"containers": [container("2")], "initContainers": [container("2", restartPolicy="Always")]}, True),
        ({"containers": [container("3")], "initContainers": [container("2", restartPolicy="Always")]}, False),
        (
            {
                "containers": [container("1")],
                "initContainers": [container("2", restartPolicy="Always"), container("3")],
            },
            False,
        ),
        ({"containers": [container("4")], "overhead": {"cpu": "1m"}}, False),
        ({"containers": [container("1")], "resources": {"requests": {"cpu": "5"}}}, False),
    ],
)
def test_sum_of_init_sidecar_overhead_and_pod_level_requests(spec: dict[str, Any], fits: bool) -> None:
    world = World(node("a"))
    assert world.fitting(pod(**spec)) == (["a"] if fits else [])


def test_finished_and_removed_pods_free_their_resources() -> None:
    held = pod(on="a", requests={"cpu": "4"})
    world = World(node("a"), pods=[held])
    assert world.fitting(pod(requests={"cpu": "1"})) == []
    world.snapshot.remove(held.key)
    assert world.fitting(pod(requests={"cpu": "4"})) == ["a"]


def test_node_selector_and_required_affinity() -> None:
    world = World(node("a", disk="ssd", cores="8"), node("b", disk="hdd", cores="4"), node("c"))
    assert world.fitting(pod(nodeSelector={"disk": "ssd"})) == ["a"]
    cases: list[tuple[dict[str, Any], list[str]]] = [
        ({"key": "disk", "operator": "In", "values": ["ssd", "hdd"]}, ["a", "b"]),
        ({"key": "disk", "operator": "NotIn", "values": ["ssd"]}, ["b", "c"]),
        ({"key": "disk", "operator": "Exists"}, ["a", "b"]),
        ({"key": "disk", "operator": "DoesNotExist"}, ["c"]),
        ({"key": "cores", "operator": "Gt", "values": ["4"]}, ["a"]),
        ({"key": "cores", "operator": "Lt", "values": ["8"]}, ["b"]),
    ]
    for expression, names in cases:
        assert world.fitting(pod(affinity=required(expression))) == names
    either = required(cases[3][0], cases[4][0])
    assert world.fitting(pod(affinity=either)) == ["a", "c"]
    assert world.fitting(pod(affinity=either, nodeSelector={"disk": "ssd"})) == ["a"]
    assert world.fitting(pod(affinity=required(terms=[{}]))) == []
    message = "0/3 nodes are available: 3 node(s) didn't match Pod's node affinity/selector."
    assert world.why(pod(nodeSelector={"disk": "tape"})) == message


def test_affinity_to_the_name_of_a_node() -> None:
    world = World(node("a"), node("b"))
    field = {"key": "metadata.name", "operator": "In", "values": ["b"]}
    wanted = pod(affinity=required(terms=[{"matchFields": [field]}]))
    assert world.fitting(wanted) == ["b"]
    field["values"] = ["c"]
    wanted = pod(affinity=required(terms=[{"matchFields": [field]}]))
    assert world.why(wanted) == "0/2 nodes are available: 2 node(s) didn't satisfy plugin(s) [NodeAffinity]."


@pytest.mark.parametrize(
    ("toleration", "fits"),
    [
        ({"key": "k", "operator": "Equal", "value": "v", "effect": "NoSchedule"}, True),
        ({"key": "k", "operator": "Exists"}, True),
        ({"operator": "Exists"}, True),
        ({"key": "k", "operator": "Equal", "value": "w"}, False),
        ({"key": "k", "operator": "Exists", "effect": "NoExecute"}, False),
    ],
)
def test_taints_need_tolerations(toleration: dict[str, Any], fits: bool) -> None:
    world = World(node("a", taints=[TAINT]))
    assert world.why(pod()) == "0/1 nodes are available: 1 node(s) had untolerated taint(s)."
    assert bool(world.fitting(pod(tolerations=[toleration]))) is fits


def test_soft_taints_do_not_forbid_a_node() -> None:
    assert World(node("a", taints=[{**TAINT, "effect": "PreferNoSchedule"}])).fitting(pod()) == ["a"]


def test_cordoned_node_takes_only_pods_that_tolerate_it() -> None:
    world = World(node("a", unschedulable=True))
    assert world.why(pod()) == "0/1 nodes are available: 1 node(s) were unschedulable."
    toleration = {"key": "node.kubernetes.io/unschedulable", "operator": "Exists"}
    assert world.fitting(pod(tolerations=[toleration])) == ["a"]


def ports(*listed: dict[str, Any]) -> list[dict[str, Any]]:
    return [{"name": "c", "image": "i", "ports": [{"containerPort": 80, **port} for port in listed]}]


@pytest.mark.parametrize(
    ("wanted", "fits"),
    [
        ({"hostPort": 80}, False),
        ({"hostPort": 81}, True),
        ({"hostPort": 80, "protocol": "UDP"}, True),
        ({"hostPort": 80, "hostIP": "10.0.0.1"}, False),
        ({"hostPort": 90, "hostIP": "10.0.0.2"}, True),
        ({"hostPort": 90, "hostIP": "10.0.0.1"}, False),
        ({"hostPort": 90}, False),
        ({}, True),
    ],
)
def test_host_ports_are_exclusive(wanted: dict[str, Any], fits: bool) -> None:
    held = pod(on="a", containers=ports({"hostPort": 80}, {"hostPort": 90, "hostIP": "10.0.0.1"}))
    world = World(node("a"), pods=[held])
    assert bool(world.fitting(pod(containers=ports(wanted)))) is fits
    if not fits:
        message = "0/1 nodes are available: 1 node(s) didn't have free ports for the requested pod ports."
        assert world.why(pod(containers=ports(wanted))) == message


def near(side: str, key: str = HOST, **term: Any) -> dict[str, Any]:
    selector = term.pop("selector", {"matchLabels": {"app": "web"}})
    return {side: {REQUIRED: [{"topologyKey": key, "labelSelector": selector, **term}]}}


WEB = {"app": "web"}


def zones() -> tuple[Any, ...]:
    return node("a", zone="1"), node("b", zone="1"), node("c", zone="2")


def test_pod_affinity_requires_a_neighbour_in_the_domain() -> None:
    world = World(*zones(), pods=[pod(on="a", labels=WEB)])
    assert world.fitting(pod(affinity=near("podAffinity"))) == ["a"]
    assert world.fitting(pod(affinity=near("podAffinity", ZONE))) == ["a", "b"]
    assert world.fitting(pod(affinity=near("podAffinity", ZONE), namespace="other")) == []
    message = "0/3 nodes are available: 3 node(s) didn't match pod affinity rules."
    assert world.why(pod(affinity=near("podAffinity", "rack"))) == message


def test_first_pod_with_affinity_to_itself_fits() -> None:
    world = World(*zones())
    assert world.fitting(pod(affinity=near("podAffinity", ZONE))) == []
    assert world.fitting(pod(affinity=near("podAffinity", ZONE), labels=WEB)) == ["a", "b", "c"]


def test_pod_anti_affinity_avoids_neighbours() -> None:
    world = World(*zones(), pods=[pod(on="a", labels=WEB)])
    assert world.fitting(pod(affinity=near("podAntiAffinity"))) == ["b", "c"]
    assert world.fitting(pod(affinity=near("podAntiAffinity", ZONE))) == ["c"]
    world = World(node("a"), pods=[pod(on="a", labels=WEB)])
    message = "0/1 nodes are available: 1 node(s) didn't match pod anti-affinity rules."
    assert world.why(pod(affinity=near("podAntiAffinity"))) == message


def test_anti_affinity_of_running_pods_is_respected() -> None:
    world = World(*zones(), pods=[pod(on="a", affinity=near("podAntiAffinity", ZONE))])
    assert world.fitting(pod(labels=WEB)) == ["c"]
    assert world.fitting(pod(labels={"app": "db"})) == ["a", "b", "c"]
    world = World(node("a"), pods=[pod(on="a", affinity=near("podAntiAffinity"))])
    message = "0/1 nodes are available: 1 node(s) didn't satisfy existing pods anti-affinity rules."
    assert world.why(pod(labels=WEB)) == message


def test_namespaces_of_affinity_terms() -> None:
    world = World(*zones(), pods=[pod(on="a", labels=WEB, namespace="blue")])
    world.snapshot.set_namespace("blue", {"team": "x"})
    by_name = near("podAffinity", namespaces=["blue"])
    by_label = near("podAffinity", namespaceSelector={"matchLabels": {"team": "x"}})
    of_all = near("podAffinity", namespaceSelector={})
    for affinity in (by_name, by_label, of_all):
        assert world.fitting(pod(affinity=affinity)) == ["a"]
    world.snapshot.set_namespace("blue", {"team": "y"})
    assert world.fitting(pod(affinity=by_label)) == []


def spread(key: str = ZONE, **constraint: Any) -> list[dict[str, Any]]:
    base = {
        "maxSkew": 1,
        "topologyKey": key,
        "whenUnsatisfiable": "DoNotSchedule",
        "labelSelector": {"matchLabels": WEB},
    }
    return [{**base, **constraint}]


def web(**spec: Any) -> PodInfo:
    return pod(labels=WEB, **spec)


def test_spread_limits_the_skew_between_domains() -> None:
    world = World(*zones(), pods=[web(on="a")])
    assert world.fitting(web(topologySpreadConstraints=spread())) == ["c"]
    assert world.fitting(web(topologySpreadConstraints=spread(maxSkew=2))) == ["a", "b", "c"]
    assert world.fitting(web(topologySpreadConstraints=spread(HOST))) == ["b", "c"]
    other = pod(labels={"app": "db"}, topologySpreadConstraints=spread())
    assert world.fitting(other) == ["a", "b", "c"]


def test_spread_ignores_terminating_pods_and_other_namespaces() -> None:
    held = [web(on="a", terminating=True), pod(on="a", labels=WEB, namespace="other")]
    world = World(*zones(), pods=held)
    assert world.fitting(web(topologySpreadConstraints=spread())) == ["a", "b", "c"]


def test_spread_needs_the_label() -> None:
    world = World(node("a"), node("b", zone="1"), pods=[web(on="b")])
    message = "1 node(s) didn't match pod topology spread constraints (missing required label)."
    assert World(node("a")).why(web(topologySpreadConstraints=spread())).endswith(f": {message}")
    assert world.fitting(web(topologySpreadConstraints=spread())) == ["b"]


def test_spread_with_min_domains() -> None:
    world = World(*zones(), pods=[web(on="a"), web(on="c")])
    assert world.fitting(web(topologySpreadConstraints=spread(minDomains=2))) == ["a", "b", "c"]
    message = "0/3 nodes are available: 3 node(s) didn't match pod topology spread constraints."
    assert world.why(web(topologySpreadConstraints=spread(minDomains=3))) == message


def test_spread_counts_nodes_by_affinity_and_taints_policies() -> None:
    full = [web(on="a"), web(on="b")]
    world = World(node("a", zone="1"), node("b", zone="2"), node("c", zone="3", taints=[TAINT]), pods=full)
    assert world.fitting(web(topologySpreadConstraints=spread())) == []
    honour = spread(nodeTaintsPolicy="Honor")
    assert world.fitting(web(topologySpreadConstraints=honour)) == ["a", "b"]
    only = {"nodeSelector": {ZONE: "1"}}
    assert world.fitting(web(topologySpreadConstraints=spread(), **only)) == ["a"]
    assert world.fitting(web(topologySpreadConstraints=spread(nodeAffinityPolicy="Ignore"), **only)) == []


def test_spread_with_match_label_keys() -> None:
    def revision(number: str, on: str = "") -> PodInfo:
        constraint = spread(matchLabelKeys=["hash"])
        return pod(on=on, labels={**WEB, "hash": number}, topologySpreadConstraints=constraint)

    world = World(*zones(), pods=[revision("1", "a")])
    assert world.fitting(revision("1")) == ["c"]
    assert world.fitting(revision("2")) == ["a", "b", "c"]


def test_counts_follow_every_change() -> None:
    """A census that was counted once equals one that is counted anew."""
    world = World(*zones())
    wanted = web(topologySpreadConstraints=spread(HOST), affinity=near("podAntiAffinity"))
    assert world.fitting(wanted) == ["a", "b", "c"]
    first, second = web(on="a"), web(on="b")
    world.snapshot.add(first)
    world.snapshot.add(second)
    assert world.fitting(wanted) == ["c"]
    world.snapshot.remove(first.key)
    assert world.fitting(wanted) == ["a", "c"]
    world.snapshot.remove(second.key)
    world.snapshot.set_node("c", None)
    assert world.fitting(wanted) == ["a", "b"]


@pytest.mark.parametrize("kind", ["podAffinity", "podAntiAffinity", "topologySpreadConstraints"])
def test_pod_with_very_many_terms_is_not_scheduled(kind: str) -> None:
    """Each term is compared with all pods."""
    terms = [
        {"topologyKey": HOST, "labelSelector": {"matchLabels": {f"k{n}": "v"}}} for n in range(MOST_TERMS + 1)
    ]
    spec: dict[str, Any] = {"affinity": {kind: {REQUIRED: terms}}}
    if kind == "topologySpreadConstraints":
        spec = {kind: [{**term, "maxSkew": 1, "whenUnsatisfiable": "ScheduleAnyway"} for term in terms]}
    world = World(node("a"))
    assert f"has {MOST_TERMS + 1} pod affinity terms" in world.why(pod(**spec))
    world.snapshot.add(pod(on="a", **spec))
    assert not world.snapshot.anti_affinity
    assert world.fitting(pod(labels={"k0": "v"})) == ["a"]
