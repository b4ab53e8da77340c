"""One attempt to schedule a pod: checks of nodes in the order of kube-scheduler's plugins, and the choice among those
that fit: the highest sum of kube-scheduler's scores, else the least used one."""

from __future__ import annotations

from kubist.cluster.control.node_fit import tolerated
from kubist.cluster.simulation.scheduler.pod_affinity import PodAffinity, attraction
from kubist.cluster.simulation.scheduler.pod_info import MOST_TERMS, PodInfo, Port
from kubist.cluster.simulation.scheduler.refusal import Refusal
from kubist.cluster.simulation.scheduler.snapshot import NodeInfo, Snapshot
from kubist.cluster.simulation.scheduler.spread import Spread, soft_scores
from kubist.cluster.simulation.scheduler.volumes import PodVolumes, Volumes

ENOUGH = 50
"""Number of fitting nodes after which the search ends. The next search begins behind them."""
UNSCHEDULABLE_TAINT = {"key": "node.kubernetes.io/unschedulable", "effect": "NoSchedule"}
UNSCHEDULABLE = Refusal("NodeUnschedulable", ("node(s) were unschedulable",), resolvable=False)
TAINTED = Refusal("TaintToleration", ("node(s) had untolerated taint(s)",), resolvable=False)
_AFFINITY = Refusal("NodeAffinity", ("node(s) didn't match Pod's node affinity/selector",), resolvable=False)
UNNAMED = Refusal("NodeAffinity", ("node(s) didn't satisfy plugin(s) [NodeAffinity]",), resolvable=False)
PORTS = Refusal("NodePorts", ("node(s) didn't have free ports for the requested pod ports",))
ALL_ADDRESSES = "0.0.0.0"
NO_NODES = "no nodes available to schedule pods"


class Rejected(Exception):
    """No node was examined, because the pod itself cannot be scheduled. The message is the reason."""

    def __init__(self, plugin: str, message: str) -> None:
        super().__init__(message)
        self.plugin = plugin


class Cycle:
    """Prepared checks of one pod. They hold as long as the snapshot does not change."""

    def __init__(self, pod: PodInfo, snapshot: Snapshot, volumes: Volumes) -> None:
        """Raises Rejected if no node can be suitable."""
        self.pod = pod
        self.snapshot = snapshot
        self.tolerations = pod.spec.get("tolerations") or ()
        self.volumes: PodVolumes | None = volumes.of(pod, snapshot) if pod.claims else None
        if self.volumes is not None and self.volumes.problem:
            raise Rejected("VolumeBinding", self.volumes.problem)
        if pod.named_nodes is not None and not pod.named_nodes:
            raise Rejected("NodeAffinity", "pod affinity terms conflict")
        if pod.term_count > MOST_TERMS:
            raise Rejected(
                "InterPodAffinity",
                f"the pod has {pod.term_count} pod affinity terms and topology spread constraints, and a simulated "
                f"scheduler takes at most {MOST_TERMS}",
            )
        spread, affinity = Spread(pod, snapshot), PodAffinity(pod, snapshot)
        self._spread = None if spread.allows_all else spread
        self._affinity = None if affinity.allows_all else affinity

    def check(self, info: NodeInfo) -> Refusal | None:
        """Why the pod does not fit on a node. None if it fits."""
        pod = self.pod
        if pod.named_nodes is not None and info.name not in pod.named_nodes:
            return UNNAMED
        if info.unschedulable and not tolerated(UNSCHEDULABLE_TAINT, self.tolerations):
            return UNSCHEDULABLE
        for taint in info.hard_taints:
            if not tolerated(taint, self.tolerations):
                return TAINTED
        if pod.node_rule is not None and not pod.node_rule(info.name, info.labels):
            return _AFFINITY
        if pod.ports and info.ports and ports_conflict(pod.ports, info.ports):
            return PORTS
        refusal = check_resources(pod, info)
        if refusal is None and self.volumes is not None:
            refusal = self.volumes.check(info)
        if refusal is None and self._spread is not None:
            refusal = self._spread.check(info)
        if refusal is None and self._affinity is not None:
            refusal = self._affinity.check(info)
        return refusal

    def search(self, start: int = 0) -> tuple[list[NodeInfo], dict[str, Refusal], int]:
        """Nodes that fit, refusals by node, and the number of nodes examined, beginning at the start index."""
        nodes = list(self.snapshot.nodes.values())
        if start:
            start %= len(nodes)
            nodes = nodes[start:] + nodes[:start]
        fitting: list[NodeInfo] = []
        refusals: dict[str, Refusal] = {}
        check = self.check
        for info in nodes:
            refusal = check(info)
            if refusal is not None:
                refusals[info.name] = refusal
                continue
            fitting.append(info)
            if len(fitting) >= ENOUGH:
                break
        return fitting, refusals, len(fitting) + len(refusals)


def check_resources(pod: PodInfo, info: NodeInfo) -> Refusal | None:
    allocatable, requested = info.allocatable, info.requested
    short = []
    resolvable = True
    if len(info.pods) + 1 > allocatable.get("pods", 0):
        short.append("Too many pods")
    for name, amount in pod.requests.items():
        size = allocatable.get(name, 0)
        if amount > size - requested.get(name, 0):
            short.append(f"Insufficient {name}")
            resolvable = resolvable and amount <= size
    return Refusal("NodeResourcesFit", tuple(short), resolvable) if short else None


def ports_conflict(ports: tuple[Port, ...], used: dict[Port, int]) -> bool:
    """Whether a host port is in use. A port on all addresses conflicts with the same port on any address."""
    addresses: dict[tuple[str, int], set[str]] = {}
    for address, protocol, number in used:
        addresses.setdefault((protocol, number), set()).add(address)
    for address, protocol, number in ports:
        others = addresses.get((protocol, number))
        if others and (address == ALL_ADDRESSES or ALL_ADDRESSES in others or address in others):
            return True
    return False


# Scores. The weights are those of kube-scheduler. Scores are not rounded, so that equal pods spread evenly
# over equal nodes

_TAINTS_WEIGHT, _AFFINITY_WEIGHT, _SPREAD_WEIGHT, _NEIGHBOURS_WEIGHT = 3, 2, 2, 2


def choose(pod: PodInfo, snapshot: Snapshot, nodes: list[NodeInfo]) -> NodeInfo:
    """Best node for a pod. Among equal ones the node with the fewest pods, then the first."""
    if len(nodes) == 1:
        return nodes[0]
    totals = [_resource_score(pod, info) for info in nodes]
    if any(info.soft_taints for info in nodes):
        _add(totals, _TAINTS_WEIGHT, _inverse([_untolerated(pod, info) for info in nodes]))
    if pod.node_preferences:
        _add(totals, _AFFINITY_WEIGHT, _share([_preference(pod, info) for info in nodes]))
    if (spread := soft_scores(pod, snapshot, nodes)) is not None:
        _add(totals, _SPREAD_WEIGHT, spread)
    if (pod.preferred_terms or snapshot.attraction) and (weights := attraction(pod, snapshot)):
        keys = {key for key, _ in weights}
        near = [sum(weights.get((key, info.labels.get(key, "")), 0) for key in keys) for info in nodes]
        _add(totals, _NEIGHBOURS_WEIGHT, _range(near))
    return max(zip(totals, nodes, strict=True), key=lambda pair: (pair[0], -len(pair[1].pods)))[1]


def _resource_score(pod: PodInfo, info: NodeInfo) -> float:
    """Free share of CPU and memory, and how even the two shares are."""
    allocatable = info.allocatable
    cpu_size, memory_size = allocatable.get("cpu", 0), allocatable.get("memory", 0)
    cpu = min((info.cpu + pod.cpu) / cpu_size, 1.0) if cpu_size else 1.0
    memory = min((info.memory + pod.memory) / memory_size, 1.0) if memory_size else 1.0
    return 50 * (2 - cpu - memory) + 100 * (1 - abs(cpu - memory) / 2)


def _untolerated(pod: PodInfo, info: NodeInfo) -> int:
    """Number of PreferNoSchedule taints that the pod does not tolerate."""
    tolerations = pod.spec.get("tolerations") or ()
    # tolerated() ignores soft taints, so they are compared as hard ones.
    return sum(
        not any(
            toleration.get("effect") in (None, "", "PreferNoSchedule")
            and tolerated({**taint, "effect": "NoSchedule"}, [{**toleration, "effect": ""}])
            for toleration in tolerations
        )
        for taint in info.soft_taints
    )


def _preference(pod: PodInfo, info: NodeInfo) -> int:
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
