"""Choice of the simulated scheduler: scores, preemption, volumes, and pods that wait."""

from __future__ import annotations

from collections import Counter
from typing import Any

import pytest

from kubist.cluster.simulation.scheduler import preemption
from kubist.cluster.simulation.scheduler.loop import FEW, PriorityOrder, Waiting
from kubist.cluster.simulation.scheduler.pod_info import PodInfo
from kubist.cluster.simulation.scheduler.preemption import Budget, Candidate, find_candidate
from kubist.model.meta.object import Object
from tests.simulation.scheduling import HOST, ZONE, Objects, World, node, pod

PREFERRED = "preferredDuringSchedulingIgnoredDuringExecution"
WEB = {"app": "web"}


def test_equal_pods_spread_evenly_over_equal_nodes() -> None:
    world = World(*(node(f"n{number}", pods="100") for number in range(7)))
    counts = Counter(world.place(pod(requests={"cpu": "10m"})) for _ in range(70))
    assert set(counts.values()) == {10}


def test_pods_of_a_controller_spread_even_if_others_are_unevenly_placed() -> None:
    world = World(node("a", pods="100"), node("b", pods="100"), pods=[pod(on="a") for _ in range(5)])

    def replica() -> PodInfo:
        made = pod()
        made.owner = "rs"
        return made

    assert Counter(world.place(replica()) for _ in range(6)) == {"a": 3, "b": 3}


def test_least_used_node_is_preferred() -> None:
    world = World(node("a"), node("b"), pods=[pod(on="a", requests={"cpu": "1", "memory": "2Gi"})])
    assert world.place(pod(requests={"cpu": "100m", "memory": "200Mi"})) == "b"


def test_preferred_node_affinity() -> None:
    term = {"matchExpressions": [{"key": "disk", "operator": "In", "values": ["ssd"]}]}
    affinity = {"nodeAffinity": {PREFERRED: [{"weight": 50, "preference": term}]}}
    world = World(node("a"), node("b", disk="ssd"), pods=[pod(on="b", requests={"cpu": "1"})])
    assert world.place(pod(affinity=affinity)) == "b"


def preferred(side: str) -> dict[str, Any]:
    term = {"topologyKey": HOST, "labelSelector": {"matchLabels": WEB}}
    return {side: {PREFERRED: [{"weight": 100, "podAffinityTerm": term}]}}


def test_preferred_pod_affinity_and_anti_affinity() -> None:
    world = World(node("a"), node("b"), node("c"), pods=[pod(on="b", labels=WEB)])
    assert world.place(pod(affinity=preferred("podAffinity"))) == "b"
    assert world.place(pod(affinity=preferred("podAntiAffinity"))) != "b"
    world = World(node("a"), node("b"), pods=[pod(on="a", affinity=preferred("podAntiAffinity"))])
    assert world.place(pod(labels=WEB)) == "b"


def test_soft_taints_are_avoided() -> None:
    soft = {"key": "k", "effect": "PreferNoSchedule"}
    world = World(node("a", taints=[soft]), node("b"), pods=[pod(on="b", requests={"cpu": "1"})])
    assert world.place(pod()) == "b"
    tolerant = pod(tolerations=[{"key": "k", "operator": "Exists", "effect": "PreferNoSchedule"}])
    assert world.place(tolerant) == "a"


def test_soft_spread_prefers_the_emptier_domain() -> None:
    constraint = {
        "maxSkew": 1,
        "topologyKey": ZONE,
        "whenUnsatisfiable": "ScheduleAnyway",
        "labelSelector": {"matchLabels": WEB},
    }
    world = World(node("a", zone="1"), node("b", zone="2"), pods=[pod(on="a", labels=WEB)])
    world.snapshot.add(pod(on="b", requests={"cpu": "2", "memory": "4Gi"}))
    assert world.place(pod(labels=WEB, topologySpreadConstraints=[constraint])) == "b"


def preempt(world: World, wanted: PodInfo, *budgets: Budget) -> Candidate | str:
    found, why = find_candidate(wanted, world.snapshot, world.volumes, world.refusals(wanted), list(budgets))
    return found or why


def names(found: Candidate | str) -> tuple[str, list[str]]:
    assert isinstance(found, Candidate), found
    return found.node, [victim.key[1] for victim in found.victims]


def test_preemption_takes_the_fewest_pods_of_lower_priority() -> None:
    held = [
        pod("low", on="a", priority=1, requests={"cpu": "2"}),
        pod("lower", on="a", priority=0, requests={"cpu": "2"}),
        pod("high", on="b", priority=9, requests={"cpu": "4"}),
    ]
    world = World(node("a"), node("b"), pods=held)
    before = dict(world.snapshot.nodes["a"].requested)
    assert names(preempt(world, pod(priority=5, requests={"cpu": "2"}))) == ("a", ["lower"])
    assert names(preempt(world, pod(priority=5, requests={"cpu": "3"}))) == ("a", ["low", "lower"])
    assert world.snapshot.nodes["a"].requested == before
    assert len(world.snapshot.pods) == 3


def test_preemption_chooses_the_node_with_the_least_important_victims() -> None:
    held = [
        pod("x", on="a", priority=3, requests={"cpu": "4"}),
        pod("y", on="b", priority=2, requests={"cpu": "2"}),
        pod("z", on="b", priority=2, requests={"cpu": "2"}),
        pod("new", on="c", priority=2, requests={"cpu": "4"}, started=9),
        pod("old", on="d", priority=2, requests={"cpu": "4"}, started=1),
    ]
    world = World(*(node(name) for name in "abcd"), pods=held)
    assert names(preempt(world, pod(priority=5, requests={"cpu": "4"}))) == ("c", ["new"])


def test_preemption_respects_budgets_if_it_can() -> None:
    budget = {
        "metadata": {"namespace": "default"},
        "spec": {"selector": {"matchLabels": WEB}},
        "status": {"disruptionsAllowed": 0},
    }
    held = [
        pod("guarded", on="a", labels=WEB, requests={"cpu": "4"}),
        pod("free", on="b", priority=1, requests={"cpu": "4"}),
    ]
    world = World(node("a"), node("b"), pods=held)
    wanted = pod(priority=5, requests={"cpu": "4"})
    assert names(preempt(world, wanted)) == ("a", ["guarded"])
    assert names(preempt(world, wanted, Budget(budget))) == ("b", ["free"])
    world.snapshot.remove(held[1].key)
    world.snapshot.set_node("b", None)
    assert names(preempt(world, wanted, Budget(budget))) == ("a", ["guarded"])


def test_reasons_without_victims() -> None:
    taint = {"key": "k", "effect": "NoSchedule"}
    world = World(node("a"), node("b", taints=[taint]), pods=[pod(on="a", requests={"cpu": "4"})])
    wanted = pod(requests={"cpu": "2"})
    assert preempt(world, wanted) == (
        "0/2 nodes are available: 1 No preemption victims found for incoming pod, "
        "1 Preemption is not helpful for scheduling."
    )
    never = pod(priority=5, preemptionPolicy="Never", requests={"cpu": "2"})
    assert preempt(world, never) == "not eligible due to preemptionPolicy=Never."


def test_no_second_preemption_while_victims_terminate() -> None:
    victim = pod(on="a", requests={"cpu": "4"}, terminating=True)
    victim.is_preempted = True
    world = World(node("a"), pods=[victim])
    wanted = pod(priority=5, requests={"cpu": "2"})
    wanted.nominated = "a"
    assert preempt(world, wanted) == preemption.TERMINATING


def test_priorities_of_a_node_follow_its_pods() -> None:
    held = [pod(on="a", priority=priority) for priority in (3, 3, 7)]
    world = World(node("a"), pods=held)
    info = world.snapshot.nodes["a"]
    assert info.priorities == {3: 2, 7: 1}
    for one in held[1:]:
        world.snapshot.remove(one.key)
    assert info.priorities == {3: 1}


def test_room_of_a_nominated_pod_is_not_given_away() -> None:
    world = World(node("a"))
    first = pod(priority=5, requests={"cpu": "3"})
    first.nominated = "a"
    world.snapshot.nominated[first.key] = first
    second, important = pod(requests={"cpu": "2"}), pod(priority=6, requests={"cpu": "2"})
    with world.snapshot.with_nominated(second):
        assert world.fitting(second) == []
    with world.snapshot.with_nominated(important):
        assert world.fitting(important) == ["a"]
    assert world.fitting(second) == ["a"]


def claim(name: str = "data", volume: str = "", storage_class: str = "", **metadata: Any) -> Object:
    spec: Object = {"accessModes": ["ReadWriteOnce"], "resources": {"requests": {"storage": "1Gi"}}}
    if storage_class:
        spec["storageClassName"] = storage_class
    if volume:
        spec["volumeName"] = volume
    return {
        "kind": "PersistentVolumeClaim",
        "metadata": {"name": name, "namespace": "default", "uid": name, **metadata},
        "spec": spec,
        "status": {"phase": "Bound" if volume else "Pending"},
    }


def volume(name: str, zone: str = "", storage_class: str = "", claimed: bool = True) -> Object:
    spec: Object = {"accessModes": ["ReadWriteOnce"], "capacity": {"storage": "5Gi"}}
    if zone:
        expression = {"key": ZONE, "operator": "In", "values": [zone]}
        spec["nodeAffinity"] = {"required": {"nodeSelectorTerms": [{"matchExpressions": [expression]}]}}
    if storage_class:
        spec["storageClassName"] = storage_class
    if claimed:
        spec["claimRef"] = {"name": "data"}
    return {"kind": "PersistentVolume", "metadata": {"name": name}, "spec": spec}


def storage_class(name: str, provisioner: str = "x/y", **more: Any) -> Object:
    mode = {"volumeBindingMode": "WaitForFirstConsumer"}
    return {"kind": "StorageClass", "metadata": {"name": name}, "provisioner": provisioner, **mode, **more}


def user(**spec: Any) -> PodInfo:
    volumes = [{"name": "v", "persistentVolumeClaim": {"claimName": "data"}}]
    return pod(volumes=volumes, **spec)


def zoned(*objects: Object) -> World:
    return World(node("a", zone="1"), node("b", zone="2"), objects=Objects(*objects))


@pytest.mark.parametrize(
    ("objects", "message"),
    [
        ((), 'persistentvolumeclaim "data" not found'),
        ((claim(),), "pod has unbound immediate PersistentVolumeClaims"),
        ((claim(deletionTimestamp="x"),), 'persistentvolumeclaim "data" is being deleted'),
    ],
)
def test_pod_without_its_claim_is_unschedulable(objects: tuple[Object, ...], message: str) -> None:
    assert zoned(*objects).why(user()) == message


def test_node_affinity_of_a_bound_volume() -> None:
    assert zoned(claim(volume="pv"), volume("pv", "2")).fitting(user()) == ["b"]
    message = "0/2 nodes are available: 2 node(s) didn't match PersistentVolume's node affinity."
    assert zoned(claim(volume="pv"), volume("pv", "3")).why(user()) == message
    missing = "0/2 nodes are available: 2 node(s) unavailable due to one or more pvc(s) bound to non-existent pv(s)."
    assert zoned(claim(volume="pv")).why(user()) == missing


def test_zone_label_of_a_bound_volume() -> None:
    held = volume("pv")
    held["metadata"]["labels"] = {ZONE: "3__4"}
    message = "0/2 nodes are available: 2 node(s) had no available volume zone."
    assert zoned(claim(volume="pv"), held).why(user()) == message
    held["metadata"]["labels"] = {ZONE: "2__4"}
    assert zoned(claim(volume="pv"), held).fitting(user()) == ["b"]


def test_waiting_claim_takes_a_volume_that_reaches_the_node() -> None:
    waiting, manual = claim(storage_class="local"), storage_class("local", "kubernetes.io/no-provisioner")
    free = volume("pv", "2", "local", claimed=False)
    assert zoned(waiting, manual, free).fitting(user()) == ["b"]
    message = "0/2 nodes are available: 2 node(s) didn't find available persistent volumes to bind."
    assert zoned(waiting, manual).why(user()) == message
    assert zoned(waiting, manual, volume("pv", "2", "local")).why(user()) == message


def test_waiting_claim_is_provisioned_where_the_class_allows_it() -> None:
    assert zoned(claim(storage_class="fast"), storage_class("fast")).fitting(user()) == ["a", "b"]
    allowed = [{"matchLabelExpressions": [{"key": ZONE, "values": ["1"]}]}]
    limited = storage_class("fast", allowedTopologies=allowed)
    assert zoned(claim(storage_class="fast"), limited).fitting(user()) == ["a"]
    selected = claim(storage_class="fast", annotations={"volume.kubernetes.io/selected-node": "b"})
    assert zoned(selected, storage_class("fast")).fitting(user()) == ["b"]


def test_claim_of_one_pod_is_exclusive() -> None:
    exclusive = claim(volume="pv")
    exclusive["spec"]["accessModes"] = ["ReadWriteOncePod"]
    world = zoned(exclusive, volume("pv"))
    assert world.fitting(user()) == ["a", "b"]
    world.snapshot.add(user(on="a"))
    message = (
        "0/2 nodes are available: 2 node(s) unavailable due to PersistentVolumeClaim with ReadWriteOncePod access "
        "mode already in-use by another pod."
    )
    assert world.why(user()) == message


def test_waiting_pods_are_released_by_the_plugins_that_refused_them() -> None:
    waiting = Waiting()
    waiting.add(("d", "a"), ["NodeResourcesFit"], 0.0)
    waiting.add(("d", "b"), ["TaintToleration", "InterPodAffinity"], 0.0)
    assert waiting.release(["NodePorts"], 0.0) == []
    assert waiting.release(["InterPodAffinity", "TaintToleration"], 0.0) == [(("d", "b"), 0.0)]
    assert waiting.release(None, 0.0) == [(("d", "a"), 0.0)]
    assert len(waiting) == 0


def test_many_waiting_pods_back_off() -> None:
    waiting = Waiting()
    for number in range(FEW + 1):
        for _ in range(3):
            waiting.add(("d", f"p{number:03}"), ["NodeResourcesFit"], 10.0)
    due = waiting.release(["NodeResourcesFit"], 11.0)
    assert len(due) == FEW + 1
    assert {seconds for _, seconds in due} == {3.0}


def test_queue_is_in_order_of_priority_then_of_arrival() -> None:
    priorities = {("d", "low"): 0, ("d", "first"): 5, ("d", "second"): 5}
    order = PriorityOrder(priorities.__getitem__)
    for key in (("d", "low"), ("d", "first"), ("d", "second")):
        order.append(key)
    assert [order.popleft()[1] for _ in range(len(order))] == ["first", "second", "low"]
