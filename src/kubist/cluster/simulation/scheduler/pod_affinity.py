"""Pod affinity and anti-affinity: which topology domains a pod must share with others, or avoid."""

from __future__ import annotations

from kubist.cluster.simulation.scheduler.pod_info import PodInfo, Term
from kubist.cluster.simulation.scheduler.refusal import Refusal
from kubist.cluster.simulation.scheduler.snapshot import Counts, NodeInfo, Snapshot

PLUGIN = "InterPodAffinity"
AFFINITY = Refusal(PLUGIN, ("node(s) didn't match pod affinity rules",), resolvable=False)
ANTI_AFFINITY = Refusal(PLUGIN, ("node(s) didn't match pod anti-affinity rules",))
EXISTING = Refusal(PLUGIN, ("node(s) didn't satisfy existing pods anti-affinity rules",))

Domain = tuple[str, str]
"""Topology key and value."""


class PodAffinity:
    """Domains that the required terms of a pod and of its neighbours allow."""

    def __init__(self, pod: PodInfo, snapshot: Snapshot) -> None:
        self._affinity = pod.required_affinity
        self._near: set[Domain] = set()
        self._alone = False
        if self._affinity:
            counts = snapshot.census(*self._affinity)
            for term in self._affinity:
                self._near |= _domains(term, counts, snapshot)
            # The first pod of a group with affinity to itself may run anywhere.
            self._alone = not self._near and all(_matches(term, pod, snapshot) for term in self._affinity)
        self._far: set[Domain] = set()
        for term in pod.required_anti_affinity:
            self._far |= _domains(term, snapshot.census(term), snapshot)
        self._forbidden: set[Domain] = set()
        for term, counts in snapshot.anti_affinity.items():
            if _matches(term, pod, snapshot):
                self._forbidden |= _domains(term, counts, snapshot)
        self._anti_affinity = pod.required_anti_affinity

    @property
    def allows_all(self) -> bool:
        return not (self._affinity or self._far or self._forbidden)

    def check(self, info: NodeInfo) -> Refusal | None:
        labels = info.labels
        for term in self._affinity:
            value = labels.get(term.topology_key)
            if value is None or not (self._alone or (term.topology_key, value) in self._near):
                return AFFINITY
        if self._far and any(
            (term.topology_key, labels.get(term.topology_key)) in self._far for term in self._anti_affinity
        ):
            return ANTI_AFFINITY
        if any((key, labels.get(key)) in self._forbidden for key in {key for key, _ in self._forbidden}):
            return EXISTING
        return None


def _matches(term: Term, pod: PodInfo, snapshot: Snapshot) -> bool:
    return term.matches(pod.namespace, pod.labels, snapshot.labels_of)


def _domains(term: Term, counts: Counts, snapshot: Snapshot) -> set[Domain]:
    """Domains of the nodes on which there are pods."""
    domains = set()
    for name in counts:
        info = snapshot.nodes.get(name)
        if info is not None and term.topology_key in info.labels:
            domains.add((term.topology_key, info.labels[term.topology_key]))
    return domains


def attraction(pod: PodInfo, snapshot: Snapshot) -> dict[Domain, int]:
    """Weights of domains by the preferences of the pod, and of the pods that run there already."""
    weights: dict[Domain, int] = {}
    terms = [(weight, term, snapshot.census(term)) for weight, term in pod.preferred_terms]
    terms += [
        (weight, term, counts)
        for (weight, term), counts in snapshot.attraction.items()
        if _matches(term, pod, snapshot)
    ]
    for weight, term, counts in terms:
        for name, number in counts.items():
            info = snapshot.nodes.get(name)
            if info is not None and term.topology_key in info.labels:
                domain = (term.topology_key, info.labels[term.topology_key])
                weights[domain] = weights.get(domain, 0) + weight * number
    return weights
