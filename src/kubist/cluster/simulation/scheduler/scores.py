"""Choice among the nodes that fit: the highest sum of kube-scheduler's scores, else the least used one.

The weights are those of kube-scheduler. Scores are not rounded, so that equal pods spread evenly over equal nodes.
"""

from __future__ import annotations

from kubist.cluster.control.tolerations import tolerated
from kubist.cluster.simulation.scheduler.podaffinity import attraction
from kubist.cluster.simulation.scheduler.podinfo import PodInfo
from kubist.cluster.simulation.scheduler.snapshot import NodeInfo, Snapshot
from kubist.cluster.simulation.scheduler.spread import soft_scores

TAINTS, AFFINITY, SPREAD, NEIGHBOURS = 3, 2, 2, 2


def choose(pod: PodInfo, snapshot: Snapshot, nodes: list[NodeInfo]) -> NodeInfo:
    """Best node for a pod. Among equal ones the node with the fewest pods, then the first."""
    if len(nodes) == 1:
        return nodes[0]
    totals = [resource_score(pod, info) for info in nodes]
    if any(info.soft_taints for info in nodes):
        _add(totals, TAINTS, _inverse([untolerated(pod, info) for info in nodes]))
    if pod.node_preferences:
        _add(totals, AFFINITY, _share([preference(pod, info) for info in nodes]))
    if (spread := soft_scores(pod, snapshot, nodes)) is not None:
        _add(totals, SPREAD, spread)
    if (pod.preferred_terms or snapshot.attraction) and (weights := attraction(pod, snapshot)):
        keys = {key for key, _ in weights}
        near = [sum(weights.get((key, info.labels.get(key, "")), 0) for key in keys) for info in nodes]
        _add(totals, NEIGHBOURS, _range(near))
    return max(zip(totals, nodes, strict=True), key=lambda pair: (pair[0], -len(pair[1].pods)))[1]


def resource_score(pod: PodInfo, info: NodeInfo) -> float:
    """Free share of CPU and memory, and how even the two shares are."""
    allocatable = info.allocatable
    cpu_size, memory_size = allocatable.get("cpu", 0), allocatable.get("memory", 0)
    cpu = min((info.cpu + pod.cpu) / cpu_size, 1.0) if cpu_size else 1.0
    memory = min((info.memory + pod.memory) / memory_size, 1.0) if memory_size else 1.0
    return 50 * (2 - cpu - memory) + 100 * (1 - abs(cpu - memory) / 2)


def untolerated(pod: PodInfo, info: NodeInfo) -> int:
    """Number of PreferNoSchedule taints that the pod does not tolerate."""
    tolerations = pod.spec.get("tolerations") or ()
    # tolerated() ignores soft taints, so they are compared as hard ones.
    return sum(
        not any(
            held.get("effect") in (None, "", "PreferNoSchedule")
            and tolerated({**taint, "effect": "NoSchedule"}, [{**held, "effect": ""}])
            for held in tolerations
        )
        for taint in info.soft_taints
    )


def preference(pod: PodInfo, info: NodeInfo) -> int:
    return sum(weight for weight, rule in pod.node_preferences if rule(info.name, info.labels))


def _add(totals: list[float], weight: int, scores: list[float]) -> None:
    for index, score in enumerate(scores):
        totals[index] += weight * score


def _share(values: list[int]) -> list[float]:
    """Values as shares of the highest one."""
    most = max(values)
    return [100 * value / most if most else 0.0 for value in values]


def _inverse(values: list[int]) -> list[float]:
    return [100 - share for share in _share(values)]


def _range(values: list[int]) -> list[float]:
    """Values between the lowest (0) and the highest one (100)."""
    least, most = min(values), max(values)
    return [100 * (value - least) / (most - least) if most > least else 0.0 for value in values]
