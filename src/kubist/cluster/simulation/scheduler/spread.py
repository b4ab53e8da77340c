"""Topology spread constraints: how unevenly the pods of a selector may be distributed."""

from __future__ import annotations

import math
from collections.abc import Iterable

from kubist.cluster.control.node_fit import tolerated
from kubist.cluster.simulation.scheduler.pod_info import Constraint, PodInfo
from kubist.cluster.simulation.scheduler.refusal import Refusal
from kubist.cluster.simulation.scheduler.snapshot import Counts, NodeInfo, Snapshot

PLUGIN = "PodTopologySpread"
SKEWED = Refusal(PLUGIN, ("node(s) didn't match pod topology spread constraints",))
UNLABELLED = Refusal(
    PLUGIN,
    ("node(s) didn't match pod topology spread constraints (missing required label)",),
    resolvable=False,
)
HOSTNAME = "kubernetes.io/hostname"
ZONE = "topology.kubernetes.io/zone"
BY_DEFAULT = ((HOSTNAME, 3), (ZONE, 5))
"""Topology keys and skews by which pods of one controller are spread if they have no constraints."""


class Spread:
    """Hard constraints of a pod against the present distribution."""

    def __init__(self, pod: PodInfo, snapshot: Snapshot) -> None:
        self._checks: list[tuple[Constraint, dict[str, int], int, int]] = []
        """Constraint, pods in each domain, fewest pods of a domain, and whether the pod itself counts."""
        constraints = pod.constraints("DoNotSchedule")
        for constraint in constraints:
            counts = snapshot.census(constraint.term, living=True)
            domains: dict[str, int] = {}
            for info in snapshot.nodes.values():
                if _has_all(info, constraints) and _included(constraint, pod, info):
                    value = info.labels[constraint.topology_key]
                    domains[value] = domains.get(value, 0) + counts.get(info.name, 0)
            fewest = min(domains.values(), default=0) if len(domains) >= constraint.min_domains else 0
            own = int(constraint.term.matches(pod.namespace, pod.labels, snapshot.labels_of))
            self._checks.append((constraint, domains, fewest, own))

    @property
    def allows_all(self) -> bool:
        return not self._checks

    def check(self, info: NodeInfo) -> Refusal | None:
        for constraint, domains, fewest, own in self._checks:
            value = info.labels.get(constraint.topology_key)
            if value is None:
                return UNLABELLED
            if domains.get(value, 0) + own - fewest > constraint.max_skew:
                return SKEWED
        return None


def _has_all(info: NodeInfo, constraints: Iterable[Constraint]) -> bool:
    return all(constraint.topology_key in info.labels for constraint in constraints)


def _included(constraint: Constraint, pod: PodInfo, info: NodeInfo) -> bool:
    """Whether a node counts for a constraint, by nodeAffinityPolicy and nodeTaintsPolicy."""
    if constraint.honours_affinity and pod.node_rule and not pod.node_rule(info.name, info.labels):
        return False
    if not constraint.honours_taints:
        return True
    tolerations = pod.spec.get("tolerations") or ()
    return all(tolerated(taint, tolerations) for taint in info.hard_taints)


def soft_scores(pod: PodInfo, snapshot: Snapshot, nodes: list[NodeInfo]) -> list[float] | None:
    """Score of each node from 0 to 100 by the soft constraints of a pod, or by its controller. None without either."""
    if pod.spec.get("topologySpreadConstraints"):
        constraints = pod.constraints("ScheduleAnyway")
        if not constraints:
            return None
        counted: list[tuple[str, int, Counts, Constraint | None]] = [
            (
                constraint.topology_key,
                constraint.max_skew,
                snapshot.census(constraint.term, living=True),
                constraint,
            )
            for constraint in constraints
        ]
        ignored = {info.name for info in nodes if not _has_all(info, constraints)}
    elif pod.owner:
        counts = snapshot.owners.get(pod.owner)
        if counts is None:
            return None
        counted = [(key, skew, counts, None) for key, skew in BY_DEFAULT]
        ignored = set()
    else:
        return None
    raw = [0.0] * len(nodes)
    for key, skew, counts, constraint in counted:
        if constraint is not None:
            counts = _counts_included(constraint, pod, snapshot, counts)
        _add_scores(raw, nodes, ignored, snapshot, key, skew, counts)
    scored = [score for score, info in zip(raw, nodes, strict=True) if info.name not in ignored]
    least, most = min(scored, default=0.0), max(scored, default=0.0)
    return [
        0.0 if info.name in ignored else 100 * (most + least - score) / most if most else 100.0
        for score, info in zip(raw, nodes, strict=True)
    ]


def _counts_included(constraint: Constraint, pod: PodInfo, snapshot: Snapshot, counts: Counts) -> Counts:
    """Numbers of the nodes that count for a constraint."""
    return {
        name: number
        for name, number in counts.items()
        if name in snapshot.nodes and _included(constraint, pod, snapshot.nodes[name])
    }


def _add_scores(
    raw: list[float],
    nodes: list[NodeInfo],
    ignored: set[str],
    snapshot: Snapshot,
    key: str,
    skew: int,
    counts: Counts,
) -> None:
    """Adds the number of pods in the domain of each node, with more weight the more domains there are."""
    domains: dict[str, int] = {}
    for info in nodes:
        if key in info.labels and info.name not in ignored:
            domains[info.labels[key]] = 0
    for name, number in counts.items():
        node = snapshot.nodes.get(name)
        if node is not None and node.labels.get(key) in domains:
            domains[node.labels[key]] += number
    weight = math.log(len(domains) + 2)
    for index, info in enumerate(nodes):
        value = info.labels.get(key)
        if value in domains and info.name not in ignored:
            raw[index] += domains[value] * weight + skew - 1
