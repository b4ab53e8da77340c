"""Requirements of a pod, in the form in which the scheduler compares them with nodes."""

from __future__ import annotations

from collections.abc import Callable
from typing import NamedTuple

import orjson

from kubist.api.admission.amounts import pod_requests
from kubist.base.caching import bounded_cache
from kubist.cluster.control.node_fit import NodeRule, named_nodes, preferred_rules, required_rule
from kubist.model.meta.conditions import find
from kubist.model.meta.object import Object
from kubist.model.meta.selectors import LabelSelector, Requirement, label_selector

Key = tuple[str, str]
"""Namespace and name of a pod."""
Port = tuple[str, str, int]
"""Address, protocol and number of a host port."""

DEFAULT_CPU = 100
DEFAULT_MEMORY = 200 << 20
"""Requests that scoring assumes for a container without requests, in thousandths of a CPU and in bytes."""
MOST_TERMS = 100
"""Pod affinity terms and topology spread constraints of a pod. A pod with more is not scheduled, and its terms do not
count for others, because each is compared with all pods."""
REQUIRED = "requiredDuringSchedulingIgnoredDuringExecution"
PREFERRED = "preferredDuringSchedulingIgnoredDuringExecution"


class Constraint(NamedTuple):
    """Topology spread constraint."""

    term: Term
    topology_key: str
    max_skew: int
    min_domains: int
    honours_affinity: bool
    honours_taints: bool


class PodInfo:
    """A pod as the scheduler sees it. It does not change, except for the node."""

    __slots__ = (
        "_constraints",
        "claims",
        "cpu",
        "created",
        "generation",
        "is_preempted",
        "key",
        "labels",
        "memory",
        "named_nodes",
        "namespace",
        "node",
        "node_preferences",
        "node_rule",
        "nominated",
        "owner",
        "pod",
        "ports",
        "preferred_terms",
        "priority",
        "requests",
        "required_affinity",
        "required_anti_affinity",
        "spec",
        "term_count",
        "terminating",
        "uid",
    )

    def __init__(self, pod: Object) -> None:
        metadata, spec, status = pod["metadata"], pod["spec"], pod.get("status") or {}
        self.pod = pod
        self.spec = spec
        self.key: Key = (metadata["namespace"], metadata["name"])
        self.namespace: str = metadata["namespace"]
        self.uid: str = metadata["uid"]
        self.labels: dict[str, str] = metadata.get("labels") or {}
        self.generation: int = metadata.get("generation", 0)
        self.created: str = status.get("startTime") or metadata.get("creationTimestamp", "")
        self.terminating = "deletionTimestamp" in metadata
        self.is_preempted = self.terminating and _is_preempted(status)
        self.node: str = spec.get("nodeName", "")
        self.nominated: str = status.get("nominatedNodeName", "")
        self.priority: int = spec.get("priority", 0)
        self.owner = _owner(metadata)
        self.requests = _requests(pod)
        containers = spec["containers"]
        self.cpu = self.requests.get("cpu", 0) + DEFAULT_CPU * _without(containers, "cpu")
        self.memory = self.requests.get("memory", 0) + DEFAULT_MEMORY * _without(containers, "memory")
        self.ports = _host_ports(spec)
        self.claims = _claims(pod) if spec.get("volumes") else ()
        self._constraints: dict[str, tuple[Constraint, ...]] | None = None
        self.term_count = len(spec.get("topologySpreadConstraints") or ())
        """Number of pod affinity terms and topology spread constraints."""
        affinity = spec.get("affinity")
        self.node_rule = required_rule(spec) if affinity or spec.get("nodeSelector") else None
        self.named_nodes: frozenset[str] | None = None
        self.node_preferences: tuple[tuple[int, NodeRule], ...] = ()
        self.required_affinity: tuple[Term, ...] = ()
        self.required_anti_affinity: tuple[Term, ...] = ()
        self.preferred_terms: tuple[tuple[int, Term], ...] = ()
        """Weights and terms of the preferred pod affinity. Anti-affinity has negative weights."""
        if affinity:
            self._read_affinity(affinity)

    def _read_affinity(self, affinity: Object) -> None:
        self.named_nodes = named_nodes(self.spec)
        self.node_preferences = preferred_rules(self.spec)
        near, far = affinity.get("podAffinity") or {}, affinity.get("podAntiAffinity") or {}
        self.term_count += sum(
            len(side.get(rule) or ()) for side in (near, far) for rule in (REQUIRED, PREFERRED)
        )
        if self.term_count > MOST_TERMS:
            return
        self.required_affinity = tuple(affinity_term(t, self.namespace) for t in near.get(REQUIRED) or ())
        self.required_anti_affinity = tuple(affinity_term(t, self.namespace) for t in far.get(REQUIRED) or ())
        self.preferred_terms = tuple(
            (sign * term["weight"], affinity_term(term["podAffinityTerm"], self.namespace))
            for sign, side in ((1, near), (-1, far))
            for term in side.get(PREFERRED) or ()
        )

    def constraints(self, action: str) -> tuple[Constraint, ...]:
        """Topology spread constraints with this value of whenUnsatisfiable."""
        if self._constraints is None:
            self._constraints = {}
        constraints = self._constraints.get(action)
        if constraints is None:
            constraints = self._constraints[action] = tuple(
                Constraint(
                    spread_term(constraint, self.namespace, self.labels),
                    constraint["topologyKey"],
                    constraint["maxSkew"],
                    constraint.get("minDomains") or 1,
                    constraint.get("nodeAffinityPolicy", "Honor") == "Honor",
                    constraint.get("nodeTaintsPolicy", "Ignore") == "Honor",
                )
                for constraint in self.spec.get("topologySpreadConstraints") or ()
                if constraint.get("whenUnsatisfiable") == action
            )
        return constraints


def _is_preempted(status: Object) -> bool:
    disrupted = find(status.get("conditions"), "DisruptionTarget") or {}
    return disrupted.get("status") == "True" and disrupted.get("reason") == "PreemptionByScheduler"


def _owner(metadata: Object) -> str:
    for reference in metadata.get("ownerReferences") or ():
        if reference.get("controller"):
            return str(reference["uid"])
    return ""


def _requests(pod: Object) -> dict[str, int]:
    """Amounts that the pod needs: CPU in thousandths, other resources in their units."""
    return {
        name: amount.milli_value() if name == "cpu" else amount.value()
        for name, amount in pod_requests(pod, running=bool(pod["spec"].get("nodeName"))).items()
        if amount
    }


def _without(containers: list[Object], resource: str) -> int:
    """Number of containers without a request for a resource."""
    return sum(resource not in ((each.get("resources") or {}).get("requests") or ()) for each in containers)


def _host_ports(spec: Object) -> tuple[Port, ...]:
    sidecars = [entry for entry in spec.get("initContainers") or () if entry.get("restartPolicy") == "Always"]
    return tuple(
        (port.get("hostIP") or "0.0.0.0", port.get("protocol") or "TCP", port["hostPort"])
        for container in (*spec["containers"], *sidecars)
        for port in container.get("ports") or ()
        if port.get("hostPort")
    )


def _claims(pod: Object) -> tuple[tuple[str, bool], ...]:
    """Names of the claims that the volumes use, and whether they belong to the pod alone."""
    claims = []
    for volume in pod["spec"]["volumes"]:
        if "persistentVolumeClaim" in volume:
            claims.append((volume["persistentVolumeClaim"]["claimName"], False))
        elif "ephemeral" in volume:
            claims.append((f"{pod['metadata']['name']}-{volume['name']}", True))
    return tuple(claims)


# Terms of pod affinity and of topology spread: sets of pods by namespace and labels

_TEXT_LENGTH, _KEY_LENGTH = 1024, 2048
"""Maximum length of the text of a term, and of the text together with a namespace, that is kept in caches."""
_NamespaceLabels = Callable[[str], dict[str, str]]
"""Labels of a namespace."""


class Term:
    """Set of pods, and the node label that defines a topology domain. Equal terms are the same object."""

    __slots__ = ("is_long", "namespace_selector", "namespaces", "selector", "topology_key")

    def __init__(
        self,
        namespaces: frozenset[str],
        namespace_selector: LabelSelector | None,
        selector: LabelSelector | None,
        topology_key: str,
        *,
        is_long: bool,
    ) -> None:
        """`is_long`: the text of the term is so long that nothing about it is kept."""
        self.is_long = is_long
        self.namespaces = namespaces
        self.namespace_selector = namespace_selector
        self.selector = selector
        self.topology_key = topology_key

    def matches(self, namespace: str, labels: dict[str, str], labels_of: _NamespaceLabels) -> bool:
        if namespace not in self.namespaces:
            selector = self.namespace_selector
            if selector is None or not selector.matches(labels_of(namespace)):
                return False
        return self.selector is not None and self.selector.matches(labels)


def affinity_term(term: Object, namespace: str) -> Term:
    """Term of the pod affinity of a pod in a namespace."""
    return _affinity_term(orjson.dumps(term, option=orjson.OPT_SORT_KEYS).decode(), namespace)


@bounded_cache(entries=4096, key_length=_KEY_LENGTH)
def _affinity_term(text: str, namespace: str) -> Term:
    term = orjson.loads(text)
    chosen = term.get("namespaceSelector")
    listed = frozenset(term.get("namespaces") or ())
    if not listed and chosen is None:
        listed = frozenset((namespace,))
    selector = term.get("labelSelector")
    return Term(
        listed,
        label_selector(chosen) if chosen is not None else None,
        label_selector(selector) if selector is not None else None,
        term.get("topologyKey", ""),
        is_long=len(text) > _TEXT_LENGTH,
    )


def spread_term(constraint: Object, namespace: str, labels: dict[str, str]) -> Term:
    """Pods that a topology spread constraint of a pod counts: those of its namespace that match the selector."""
    kept = {key: labels[key] for key in constraint.get("matchLabelKeys") or () if key in labels}
    fields = {"topologyKey": constraint["topologyKey"], "labelSelector": constraint.get("labelSelector")}
    text = orjson.dumps([fields, kept], option=orjson.OPT_SORT_KEYS).decode()
    return _spread_term(text, namespace)


@bounded_cache(entries=4096, key_length=_KEY_LENGTH)
def _spread_term(text: str, namespace: str) -> Term:
    fields, kept = orjson.loads(text)
    selector_object = fields["labelSelector"]
    selector = label_selector(selector_object) if selector_object is not None else None
    if selector is not None and kept:
        more = [Requirement(key, "=", (value,)) for key, value in kept.items()]
        selector = LabelSelector([*selector.requirements, *more])
    long = len(text) > _TEXT_LENGTH
    return Term(frozenset((namespace,)), None, selector, fields["topologyKey"], is_long=long)
