"""Preemption: pods of lower priority that must be evicted so that a pod fits on a node."""

from __future__ import annotations

from dataclasses import dataclass

from kubist.cluster.simulation.scheduler.cycle import Cycle, Rejected
from kubist.cluster.simulation.scheduler.pod_info import PodInfo
from kubist.cluster.simulation.scheduler.refusal import Refusal, summary
from kubist.cluster.simulation.scheduler.snapshot import NodeInfo, Snapshot
from kubist.cluster.simulation.scheduler.volumes import Volumes
from kubist.model.meta.object import Object
from kubist.model.meta.selectors import LabelSelector, label_selector
from kubist.model.meta.times import parse_time

CANDIDATES = 100
"""Number of nodes with victims after which the search ends."""
NOT_HELPFUL = Refusal("", ("Preemption is not helpful for scheduling",), resolvable=False)
NO_VICTIMS = Refusal("", ("No preemption victims found for incoming pod",), resolvable=False)
NEVER = "not eligible due to preemptionPolicy=Never."
TERMINATING = "not eligible due to a terminating pod on the nominated node."


@dataclass
class Candidate:
    """A node, and the pods to evict, the most important one first."""

    node: str
    victims: list[PodInfo]
    violations: int
    """Number of victims that a PodDisruptionBudget protects."""


class Budget:
    """PodDisruptionBudget as far as preemption needs it."""

    def __init__(self, budget: Object) -> None:
        self.namespace: str = budget["metadata"]["namespace"]
        status = budget.get("status") or {}
        self.allowed: int = status.get("disruptionsAllowed", 0)
        self._disrupted = status.get("disruptedPods") or {}
        selector = budget["spec"].get("selector")
        self._selector = label_selector(selector) if selector else LabelSelector(())

    def covers(self, pod: PodInfo) -> bool:
        return (
            pod.namespace == self.namespace
            and bool(pod.labels)
            and not self._selector.empty
            and self._selector.matches(pod.labels)
            and pod.key[1] not in self._disrupted
        )


def find_candidate(
    pod: PodInfo,
    snapshot: Snapshot,
    volumes: Volumes,
    refusals: dict[str, Refusal],
    budgets: list[Budget],
) -> tuple[Candidate | None, str]:
    """Best node on which to make room, or the reason why there is none."""
    if pod.spec.get("preemptionPolicy") == "Never":
        return None, NEVER
    nominated = refusals.get(pod.nominated)
    if pod.nominated and (nominated is None or nominated.resolvable):
        info = snapshot.nodes.get(pod.nominated)
        if info and any(other.is_preempted and other.priority < pod.priority for other in info.pods.values()):
            return None, TERMINATING
    candidates = []
    answers = dict.fromkeys(snapshot.nodes, NOT_HELPFUL)
    for name, refusal in refusals.items():
        if not refusal.resolvable:
            continue
        answer = victims_on(pod, snapshot, volumes, snapshot.nodes[name], budgets)
        if isinstance(answer, Candidate):
            candidates.append(answer)
            if len(candidates) >= CANDIDATES:
                break
        else:
            answers[name] = answer
    if not candidates:
        return None, summary(len(answers), answers.values())
    return min(candidates, key=_cost), ""


def victims_on(
    pod: PodInfo, snapshot: Snapshot, volumes: Volumes, info: NodeInfo, budgets: list[Budget]
) -> Candidate | Refusal:
    """The fewest pods that must leave a node, or why no victims help."""
    if min(info.priorities, default=pod.priority) >= pod.priority:
        return NO_VICTIMS
    lower = [other for other in info.pods.values() if other.priority < pod.priority]
    lower.sort(key=_importance)
    with snapshot.without(lower):
        refusal = _refusal(pod, snapshot, volumes, info)
        if refusal is not None:
            return refusal
        protected, others = _by_budgets(lower, budgets)
        violations = 0
        victims = []
        for victim in (*protected, *others):
            snapshot.add(victim)
            if _refusal(pod, snapshot, volumes, info) is not None:
                snapshot.remove(victim.key)
                victims.append(victim)
                violations += victim in protected
    victims.sort(key=_importance)
    return Candidate(info.name, victims, violations)


def _refusal(pod: PodInfo, snapshot: Snapshot, volumes: Volumes, info: NodeInfo) -> Refusal | None:
    try:
        return Cycle(pod, snapshot, volumes).check(info)
    except Rejected as error:
        return Refusal(error.plugin, (str(error),), resolvable=False)


def _importance(pod: PodInfo) -> tuple[int, int]:
    """Sort key: high priority first, then the pod that runs for longer."""
    return -pod.priority, parse_time(pod.created)


def _by_budgets(pods: list[PodInfo], budgets: list[Budget]) -> tuple[list[PodInfo], list[PodInfo]]:
    """Pods whose eviction would violate a budget, and the others."""
    left = [budget.allowed for budget in budgets]
    protected: list[PodInfo] = []
    others: list[PodInfo] = []
    for pod in pods:
        violates = False
        for index, budget in enumerate(budgets):
            if budget.covers(pod):
                left[index] -= 1
                violates = violates or left[index] < 0
        (protected if violates else others).append(pod)
    return protected, others


def _cost(candidate: Candidate) -> tuple[int, int, int, int, int]:
    """Sort key: few violations, unimportant victims, few of them, and the ones that started last."""
    victims = candidate.victims
    highest = max((victim.priority for victim in victims), default=0)
    total = sum(victim.priority + (1 << 31) for victim in victims)
    of_highest = [parse_time(victim.created) for victim in victims if victim.priority == highest]
    return candidate.violations, highest, total, len(victims), -min(of_highest, default=0)
