"""Decisions of the DaemonSet controller: which nodes get a pod, which pods are deleted, and its status."""

from __future__ import annotations

import copy
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import NamedTuple

from kubist.cluster.control.node_fit import required_rule, tolerated
from kubist.cluster.control.values import pod_ready, scaled
from kubist.cluster.control.workloads.pods import available_in
from kubist.cluster.control.workloads.revisions import HASH_LABEL
from kubist.model.meta.object import Object

GENERATION = "deprecated.daemonset.template.generation"
GENERATION_LABEL = "pod-template-generation"
NODE_NAME = "metadata.name"
ALWAYS_TOLERATED = (
    ("node.kubernetes.io/not-ready", "NoExecute"),
    ("node.kubernetes.io/unreachable", "NoExecute"),
    ("node.kubernetes.io/disk-pressure", "NoSchedule"),
    ("node.kubernetes.io/memory-pressure", "NoSchedule"),
    ("node.kubernetes.io/pid-pressure", "NoSchedule"),
    ("node.kubernetes.io/unschedulable", "NoSchedule"),
)
HOST_NETWORK_TOLERATED = ("node.kubernetes.io/network-unavailable", "NoSchedule")

PodsByNode = dict[str, list[Object]]


class Fit(NamedTuple):
    """Whether a node gets a pod, and whether a pod that is there already may stay."""

    runs: bool
    stays: bool


@dataclass(slots=True)
class Plan:
    """Nodes that get a pod, pods to delete, and Events: their type, reason and message."""

    create: list[str] = field(default_factory=list)
    delete: list[Object] = field(default_factory=list)
    events: list[tuple[str, str, str]] = field(default_factory=list)


def tolerations(spec: Object) -> list[Object]:
    """Tolerations of a daemon pod: those of the template and those that every daemon pod has."""
    pod_tolerations: list[Object] = list(spec.get("tolerations") or ())
    added = (*ALWAYS_TOLERATED, HOST_NETWORK_TOLERATED) if spec.get("hostNetwork") else ALWAYS_TOLERATED
    for key, effect in added:
        toleration = {"key": key, "operator": "Exists", "effect": effect}
        if toleration not in pod_tolerations:
            pod_tolerations.append(toleration)
    return pod_tolerations


def fits(owner: Object) -> Callable[[Object], Fit]:
    """Function that compares a node with nodeName, nodeSelector, node affinity and tolerations of the template."""
    spec = owner["spec"]["template"]["spec"]
    rule, tolerances, name = required_rule(spec), tolerations(spec), spec.get("nodeName")

    def fit(node: Object) -> Fit:
        metadata = node["metadata"]
        if name and name != metadata["name"]:
            return Fit(runs=False, stays=False)
        if rule is not None and not rule(metadata["name"], metadata.get("labels") or {}):
            return Fit(runs=False, stays=False)
        harmful = [taint for taint in node["spec"].get("taints") or () if not tolerated(taint, tolerances)]
        return Fit(runs=not harmful, stays=all(taint.get("effect") != "NoExecute" for taint in harmful))

    return fit


def new_pod(template: Object, node: str, digest: str, generation: str) -> Object:
    """Template of the pod for one node, which its affinity names."""
    template = copy.deepcopy(template)
    labels = template.setdefault("metadata", {}).setdefault("labels", {})
    labels[HASH_LABEL] = digest
    if generation:
        labels[GENERATION_LABEL] = generation
    spec = template["spec"]
    spec["tolerations"] = tolerations(spec)
    term = {"matchFields": [{"key": NODE_NAME, "operator": "In", "values": [node]}]}
    affinity = spec.setdefault("affinity", {}).setdefault("nodeAffinity", {})
    affinity["requiredDuringSchedulingIgnoredDuringExecution"] = {"nodeSelectorTerms": [term]}
    return template


def target(pod: Object) -> str:
    """Node of a pod, or the node that its affinity names."""
    spec = pod["spec"]
    if spec.get("nodeName"):
        return str(spec["nodeName"])
    affinity = (spec.get("affinity") or {}).get("nodeAffinity") or {}
    required = affinity.get("requiredDuringSchedulingIgnoredDuringExecution") or {}
    for term in required.get("nodeSelectorTerms") or ():
        for named in term.get("matchFields") or ():
            if named.get("key") == NODE_NAME and named.get("operator") == "In":
                values = named.get("values") or []
                return str(values[0]) if len(values) == 1 else ""
    return ""


def by_node(pods: list[Object]) -> PodsByNode:
    """Pods of every node, oldest first. Finished pods that are being deleted do not count."""
    pods_by_node: PodsByNode = {}
    for pod in pods:
        is_finished = pod["status"].get("phase") in ("Failed", "Succeeded")
        if (node := target(pod)) and not (is_finished and "deletionTimestamp" in pod["metadata"]):
            pods_by_node.setdefault(node, []).append(pod)
    for node_pods in pods_by_node.values():
        node_pods.sort(
            key=lambda pod: (
                not pod["spec"].get("nodeName"),
                pod["metadata"]["creationTimestamp"],
                pod["metadata"]["name"],
            )
        )
    return pods_by_node


def is_updated(owner: Object, pod: Object, digest: str) -> bool:
    labels = pod["metadata"].get("labels") or {}
    generation = (owner["metadata"].get("annotations") or {}).get(GENERATION)
    return labels.get(HASH_LABEL) == digest or bool(generation and labels.get(GENERATION_LABEL) == generation)


def bounds(owner: Object, desired: int) -> tuple[int, int]:
    """maxSurge and maxUnavailable as numbers of pods."""
    rolling = (owner["spec"].get("updateStrategy") or {}).get("rollingUpdate") or {}
    surge = scaled(rolling.get("maxSurge"), desired, up=True)
    unavailable = scaled(rolling.get("maxUnavailable", 1), desired, up=True)
    return (surge, unavailable) if surge or unavailable else (0, 1)


def is_rolling(owner: Object) -> bool:
    return bool((owner["spec"].get("updateStrategy") or {}).get("type", "RollingUpdate") == "RollingUpdate")


def plan(
    owner: Object,
    nodes: dict[str, Fit],
    pods: PodsByNode,
    digest: str,
    may_replace: Callable[[str], bool],
    now: float,
) -> Plan:
    """One pod on every suitable node and none elsewhere. `may_replace` decides whether a failed pod of a node may be
    deleted now."""
    result = Plan()
    for node, fit in nodes.items():
        node_pods = pods.get(node, [])
        if fit.runs and not node_pods:
            result.create.append(node)
        elif fit.stays:
            running = [pod for pod in node_pods if _runs(pod, node, may_replace, result)]
            if not is_rolling(owner) or not bounds(owner, 1)[0]:
                result.delete += running[1:]
            elif not running:
                result.create += [node] if fit.runs else []
            else:
                _keep_two(owner, running, digest, now, result)
        else:
            result.delete += [pod for pod in node_pods if "deletionTimestamp" not in pod["metadata"]]
    for node, node_pods in pods.items():
        if node not in nodes:
            result.delete += [pod for pod in node_pods if not pod["spec"].get("nodeName")]
    return result


def _runs(pod: Object, node: str, may_replace: Callable[[str], bool], result: Plan) -> bool:
    """Whether a pod runs or will run. A finished pod is planned for deletion."""
    metadata, phase = pod["metadata"], pod["status"].get("phase")
    if "deletionTimestamp" in metadata:
        return False
    name = f"{metadata['namespace']}/{metadata['name']}"
    if phase == "Failed":
        if may_replace(node):
            text = f"Found failed daemon pod {name} on node {node}, will try to kill it"
            result.events.append(("Warning", "FailedDaemonPod", text))
            result.delete.append(pod)
        return False
    if phase == "Succeeded":
        text = f"Found succeeded daemon pod {name} on node {node}, will try to delete it"
        result.events.append(("Normal", "SucceededDaemonPod", text))
        result.delete.append(pod)
        return False
    return True


def _keep_two(owner: Object, running: list[Object], digest: str, now: float, result: Plan) -> None:
    """With maxSurge, a node keeps the oldest old and the oldest new pod until the new one is available."""
    new = [pod for pod in running if (pod["metadata"].get("labels") or {}).get(HASH_LABEL) == digest]
    old = [pod for pod in running if pod not in new]
    result.delete += new[1:] + old[1:]
    least = owner["spec"].get("minReadySeconds", 0)
    if new and old and (not pod_ready(old[0]) or available_in(new[0], least, now) == 0):
        result.delete.append(old[0])


def plan_update(owner: Object, nodes: dict[str, Fit], pods: PodsByNode, digest: str, now: float) -> Plan:
    """Replaces pods of an old template, as far as maxSurge or maxUnavailable allow."""
    desired = [node for node, fit in nodes.items() if fit.runs]
    surge, unavailable = bounds(owner, len(desired))
    states = {}
    for node in sorted({*pods, *desired}):
        alive = [pod for pod in pods.get(node, ()) if "deletionTimestamp" not in pod["metadata"]]
        new = [pod for pod in alive if is_updated(owner, pod, digest)]
        states[node] = (new, [pod for pod in alive if pod not in new])
    if surge:
        return _plan_surge(owner, nodes, states, surge, len(desired), now)
    return _plan_unavailable(owner, states, unavailable, now)


States = dict[str, tuple[list[Object], list[Object]]]
"""New and old pods of every node."""


def _plan_unavailable(owner: Object, states: States, unavailable: int, now: float) -> Plan:
    least = owner["spec"].get("minReadySeconds", 0)
    result, candidates = Plan(), []
    left = unavailable
    for new, old in states.values():
        if len(new) + len(old) != 1:
            left -= 1
        elif available_in((new or old)[0], least, now) != 0:
            left -= 1
            result.delete += old
        else:
            candidates += old
    result.delete += candidates[: max(left, 0)]
    return result


def _plan_surge(
    owner: Object, nodes: dict[str, Fit], states: States, surge: int, desired: int, now: float
) -> Plan:
    least = owner["spec"].get("minReadySeconds", 0)

    def is_available(pod: Object) -> bool:
        return available_in(pod, least, now) == 0

    result = Plan()
    candidates: list[str] = []
    misplaced: list[Object] = []
    left, available = surge, 0
    for node, (new, old) in states.items():
        if len(new) > 1 or len(old) > 1:
            left -= 1
            continue
        available += any(map(is_available, old or new))
        if not old:
            continue
        if new:
            if is_available(new[0]):
                result.delete += old
            else:
                left -= 1
        elif not nodes.get(node, Fit(runs=False, stays=False)).runs:
            (misplaced if is_available(old[0]) else result.delete).append(old[0])
        elif is_available(old[0]):
            candidates.append(node)
        else:
            result.create.append(node)
    result.delete += misplaced[: max(available - desired, 0)]
    result.create += candidates[: max(left, 0)]
    return result


def daemon_status(owner: Object, nodes: dict[str, Fit], pods: PodsByNode, digest: str, now: float) -> Object:
    """Status from the oldest pod of every node."""
    least = owner["spec"].get("minReadySeconds", 0)
    desired = [node for node, fit in nodes.items() if fit.runs]
    first = [pods[node][0] for node in desired if node in pods]
    available = sum(available_in(pod, least, now) == 0 for pod in first)
    return {
        "currentNumberScheduled": len(first),
        "numberMisscheduled": sum(node in pods for node, fit in nodes.items() if not fit.runs),
        "desiredNumberScheduled": len(desired),
        "numberReady": sum(pod_ready(pod) for pod in first),
        "observedGeneration": owner["metadata"].get("generation"),
        "updatedNumberScheduled": sum(is_updated(owner, pod, digest) for pod in first) or None,
        "numberAvailable": available or None,
        "numberUnavailable": max(len(desired) - available, 0) or None,
        "collisionCount": owner["status"].get("collisionCount"),
        "conditions": owner["status"].get("conditions"),
    }
