"""Nodes and assigned pods in memory, with sums and counts that follow every change."""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Iterable, Iterator
from contextlib import contextmanager

from kubist.cluster.simulation.scheduler.pod_info import Key, PodInfo, Port, Term
from kubist.model.meta.object import Object
from kubist.model.meta.quantity import parse_quantity

CENSUSES = 256
"""Maximum number of sets of pods that are counted continuously."""
HARD_EFFECTS = ("NoSchedule", "NoExecute")


class NodeInfo:
    """A node and the pods on it. `node` is None while pods name a node that does not exist."""

    __slots__ = (
        "allocatable",
        "cpu",
        "hard_taints",
        "labels",
        "memory",
        "name",
        "node",
        "pods",
        "ports",
        "priorities",
        "requested",
        "soft_taints",
        "unschedulable",
    )

    def __init__(self, name: str) -> None:
        self.name = name
        self.pods: dict[Key, PodInfo] = {}
        self.requested: dict[str, int] = {}
        self.cpu = 0
        self.memory = 0
        """Requests of all pods, with defaults for containers without requests."""
        self.ports: dict[Port, int] = {}
        self.priorities: dict[int, int] = {}
        """Number of pods of each priority."""
        self.set_node(None)

    def set_node(self, node: Object | None) -> None:
        self.node = node
        spec, status = ((node or {}).get(part) or {} for part in ("spec", "status"))
        self.labels: dict[str, str] = ((node or {}).get("metadata") or {}).get("labels") or {}
        taints = spec.get("taints") or ()
        self.hard_taints = [taint for taint in taints if taint.get("effect") in HARD_EFFECTS]
        self.soft_taints = [taint for taint in taints if taint.get("effect") == "PreferNoSchedule"]
        self.unschedulable = bool(spec.get("unschedulable"))
        self.allocatable = {
            name: parse_quantity(text).milli_value() if name == "cpu" else parse_quantity(text).value()
            for name, text in (status.get("allocatable") or {}).items()
        }

    def count(self, pod: PodInfo, sign: int) -> None:
        requested = self.requested
        for name, amount in pod.requests.items():
            requested[name] = requested.get(name, 0) + sign * amount
        self.priorities[pod.priority] = self.priorities.get(pod.priority, 0) + sign
        if not self.priorities[pod.priority]:
            del self.priorities[pod.priority]
        self.cpu += sign * pod.cpu
        self.memory += sign * pod.memory
        for port in pod.ports:
            self.ports[port] = self.ports.get(port, 0) + sign
            if not self.ports[port]:
                del self.ports[port]


class Census:
    """Number of pods per node that match all of some terms."""

    __slots__ = ("by_node", "living", "terms")

    def __init__(self, terms: tuple[Term, ...], living: bool) -> None:
        self.terms = terms
        self.living = living
        """Whether terminating pods do not count."""
        self.by_node: dict[str, int] = {}


Counts = dict[str, int]
"""Numbers by node."""


class Snapshot:
    def __init__(self) -> None:
        self.nodes: dict[str, NodeInfo] = {}
        """Nodes that exist."""
        self.pods: dict[Key, PodInfo] = {}
        """Assigned and assumed pods that have not finished."""
        self.nominated: dict[Key, PodInfo] = {}
        """Unassigned pods for which room was made on a node."""
        self.namespaces: dict[str, dict[str, str]] = {}
        """Labels of the namespaces."""
        self.anti_affinity: dict[Term, Counts] = {}
        """Required anti-affinity of the pods: number of pods with a term, by node."""
        self.attraction: dict[tuple[int, Term], Counts] = {}
        """Terms of the pods that attract or repel others, with their weights."""
        self.owners: dict[str, Counts] = {}
        """Number of pods of a controller, by node."""
        self.claims: dict[Key, set[Key]] = {}
        """Pods that use a claim."""
        self._infos: dict[str, NodeInfo] = {}
        self._censuses: OrderedDict[tuple[tuple[Term, ...], bool], Census] = OrderedDict()

    def set_node(self, name: str, node: Object | None) -> None:
        if node is None:
            info = self.nodes.pop(name, None)
            if info is not None:
                info.set_node(None)
                if not info.pods:
                    del self._infos[name]
            return
        info = self._info(name)
        info.set_node(node)
        self.nodes[name] = info

    def set_namespace(self, name: str, labels: dict[str, str] | None) -> None:
        if labels is None:
            self.namespaces.pop(name, None)
        else:
            self.namespaces[name] = labels
        self._censuses.clear()

    def labels_of(self, namespace: str) -> dict[str, str]:
        return self.namespaces.get(namespace, {})

    def add(self, pod: PodInfo) -> None:
        """Adds a pod to its node. An earlier state of the pod is replaced."""
        if pod.key in self.pods:
            self.remove(pod.key)
        self.pods[pod.key] = pod
        info = self._info(pod.node)
        info.pods[pod.key] = pod
        self._count(info, pod, 1)

    def remove(self, key: Key) -> PodInfo | None:
        pod = self.pods.pop(key, None)
        if pod is not None:
            info = self._infos[pod.node]
            del info.pods[key]
            self._count(info, pod, -1)
            if info.node is None and not info.pods:
                del self._infos[pod.node]
        return pod

    def _info(self, name: str) -> NodeInfo:
        info = self._infos.get(name)
        if info is None:
            info = self._infos[name] = NodeInfo(name)
        return info

    def _count(self, info: NodeInfo, pod: PodInfo, sign: int) -> None:
        info.count(pod, sign)
        name = info.name
        if pod.owner:
            _adjust(self.owners, pod.owner, name, sign)
        for term in pod.required_anti_affinity:
            _adjust(self.anti_affinity, term, name, sign)
        for term in pod.required_affinity:
            _adjust(self.attraction, (1, term), name, sign)
        for weighted in pod.preferred_terms:
            _adjust(self.attraction, weighted, name, sign)
        for claim, _ in pod.claims:
            users = self.claims.setdefault((pod.namespace, claim), set())
            (users.add if sign > 0 else users.discard)(pod.key)
            if not users:
                del self.claims[pod.namespace, claim]
        for census in self._censuses.values():
            if self._is_member(pod, census):
                _add(census.by_node, name, sign)

    def _is_member(self, pod: PodInfo, census: Census) -> bool:
        if census.living and pod.terminating:
            return False
        return all(term.matches(pod.namespace, pod.labels, self.labels_of) for term in census.terms)

    def census(self, *terms: Term, living: bool = False) -> Counts:
        """Number of pods per node that match all terms. Unless a term is very long, it is counted once and then
        follows the changes."""
        key = (terms, living)
        census = self._censuses.get(key)
        if census is None:
            census = Census(terms, living)
            for pod in self.pods.values():
                if self._is_member(pod, census):
                    _add(census.by_node, pod.node, 1)
            if any(term.is_long for term in terms):
                return census.by_node
            if len(self._censuses) >= CENSUSES:
                self._censuses.popitem(last=False)
            self._censuses[key] = census
        else:
            self._censuses.move_to_end(key)
        return census.by_node

    @contextmanager
    def without(self, pods: Iterable[PodInfo]) -> Iterator[None]:
        """The snapshot as if these pods were gone, inside a with statement."""
        gone = [pod for pod in pods if self.remove(pod.key) is not None]
        try:
            yield
        finally:
            for pod in gone:
                if pod.key not in self.pods:
                    self.add(pod)

    @contextmanager
    def with_nominated(self, pod: PodInfo) -> Iterator[None]:
        """The snapshot as if nominated pods of at least this priority ran already."""
        added = []
        for key, other in self.nominated.items():
            if other.priority >= pod.priority and key != pod.key and key not in self.pods:
                other.node = other.nominated
                self.add(other)
                added.append(key)
        try:
            yield
        finally:
            for key in added:
                self.remove(key)
                self.nominated[key].node = ""


def _adjust(index: dict, key: object, node: str, sign: int) -> None:  # type: ignore[type-arg]
    counts = index.setdefault(key, {})
    _add(counts, node, sign)
    if not counts:
        del index[key]


def _add(counts: Counts, node: str, sign: int) -> None:
    number = counts.get(node, 0) + sign
    if number:
        counts[node] = number
    else:
        del counts[node]
