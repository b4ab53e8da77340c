"""Writes of the scheduler: binding of pods and of their claims, the reason of a failure, and eviction."""

from __future__ import annotations

from kubist.api.kinds.shared.pod_conditions import mark_disrupted, observe_generation, set_pod_condition
from kubist.api.object_client import Edit, ObjectClient
from kubist.cluster.control.events import reference_to
from kubist.cluster.simulation.scheduler.pod_info import Key, PodInfo
from kubist.cluster.simulation.scheduler.volumes import SELECTED_NODE, Binding
from kubist.model.meta.conditions import find
from kubist.model.meta.object import Object
from kubist.model.meta.status import APIError

NAME = "default-scheduler"


async def bind(client: ObjectClient, pod: PodInfo, node: str, now: str) -> bool:
    """Stores the assignment with one write. False if the pod was changed, assigned or deleted meanwhile."""
    bound = False

    def edit(current: Object) -> Object | None:
        nonlocal bound
        spec = current["spec"]
        bound = not (
            spec.get("nodeName") or spec.get("schedulingGates") or "deletionTimestamp" in current["metadata"]
        )
        if not bound:
            return None
        spec["nodeName"] = node
        status = current.setdefault("status", {})
        status.pop("nominatedNodeName", None)
        set_pod_condition(status, {"type": "PodScheduled", "status": "True"}, now)
        return current

    await _edit(client, pod, edit)
    return bound


async def refuse(client: ObjectClient, pod: PodInfo, message: str, now: str) -> None:
    """Stores why the pod has no node, and the node on which room is being made for it."""

    def edit(current: Object) -> Object | None:
        if current["spec"].get("nodeName"):
            return None
        status = current.setdefault("status", {})
        condition = {"type": "PodScheduled", "status": "False", "reason": "Unschedulable", "message": message}
        observe_generation(condition, current)
        before = find(status.get("conditions"), "PodScheduled") or {}
        if condition.items() <= before.items() and status.get("nominatedNodeName", "") == pod.nominated:
            return None
        set_pod_condition(status, condition, now)
        if pod.nominated:
            status["nominatedNodeName"] = pod.nominated
        else:
            status.pop("nominatedNodeName", None)
        return current

    await _edit(client, pod, edit)


async def withdraw(client: ObjectClient, pod: PodInfo) -> None:
    """Removes the nomination of a pod."""

    def edit(current: Object) -> Object | None:
        return current if current["status"].pop("nominatedNodeName", None) else None

    await _edit(client, pod, edit)


async def evict(client: ObjectClient, victim: PodInfo, now: str) -> None:
    """Marks a pod as preempted, and deletes it with its grace period."""

    def mark(current: Object) -> Object:
        message = f"{NAME}: preempting to accommodate a higher priority pod"
        mark_disrupted(current, "PreemptionByScheduler", message, now)
        return current

    await _edit(client, victim, mark)
    try:
        only = {"uid": victim.uid}
        await client.delete("pods", victim.key[1], victim.namespace, preconditions=only)
    except APIError as error:
        if error.code not in (404, 409):
            raise


async def _edit(client: ObjectClient, pod: PodInfo, edit: Edit) -> None:
    """Changes a pod that still exists. Another pod of the same name is left alone."""

    def same(current: Object) -> Object | None:
        return edit(current) if current["metadata"]["uid"] == pod.uid else None

    try:
        await client.mutate("pods", pod.key[1], pod.namespace, same)
    except APIError as error:
        if error.code != 404:
            raise


# Claims that waited for their first consumer

_BOUND_BY_CONTROLLER = "pv.kubernetes.io/bound-by-controller"


class VolumeBinder:
    """Writes bindings, and remembers the node of pods whose claims are being bound."""

    def __init__(self, client: ObjectClient) -> None:
        self._client = client
        self._nodes: dict[Key, str] = {}

    def node_of(self, pod: Key) -> str:
        """Node for which the claims of a pod were bound, or an empty string."""
        return self._nodes.get(pod, "")

    def forget(self, pod: Key) -> None:
        self._nodes.pop(pod, None)

    async def bind(self, pod: Key, node: str, bindings: list[Binding]) -> None:
        self._nodes[pod] = node
        for claim, volume in bindings:
            if volume is None:
                await self._provision(claim, node)
            else:
                await self._assign(claim, volume)

    async def _provision(self, claim: Object, node: str) -> None:
        def select(current: Object) -> Object | None:
            annotations = current["metadata"].setdefault("annotations", {})
            if annotations.get(SELECTED_NODE) == node:
                return None
            annotations[SELECTED_NODE] = node
            return current

        metadata = claim["metadata"]
        await self._client.update("persistentvolumeclaims", metadata["name"], metadata["namespace"], select)

    async def _assign(self, claim: Object, volume: Object) -> None:
        metadata, name = claim["metadata"], volume["metadata"]["name"]
        reference = reference_to(claim)

        def take(current: Object) -> Object | None:
            if current["spec"].get("claimRef"):
                return None
            current["spec"]["claimRef"] = reference
            current["metadata"].setdefault("annotations", {})[_BOUND_BY_CONTROLLER] = "yes"
            return current

        def use(current: Object) -> Object | None:
            if current["spec"].get("volumeName"):
                return None
            current["spec"]["volumeName"] = name
            return current

        if await self._client.update("persistentvolumes", name, "", take) is not None:
            place = (metadata["name"], metadata["namespace"])
            await self._client.update("persistentvolumeclaims", *place, use)
