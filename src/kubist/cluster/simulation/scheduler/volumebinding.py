"""Binding of claims that waited for their first consumer: assigns a volume, or names the node for the provisioner."""

from __future__ import annotations

from kubist.api.objectclient import ObjectClient
from kubist.cluster.control.events import reference_to
from kubist.cluster.simulation.scheduler.podinfo import Key
from kubist.cluster.simulation.scheduler.volumes import SELECTED_NODE, Binding
from kubist.model.meta.object import Object

BOUND_BY_CONTROLLER = "pv.kubernetes.io/bound-by-controller"


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
        def select(held: Object) -> Object | None:
            annotations = held["metadata"].setdefault("annotations", {})
            if annotations.get(SELECTED_NODE) == node:
                return None
            annotations[SELECTED_NODE] = node
            return held

        metadata = claim["metadata"]
        await self._client.update("persistentvolumeclaims", metadata["name"], metadata["namespace"], select)

    async def _assign(self, claim: Object, volume: Object) -> None:
        metadata, name = claim["metadata"], volume["metadata"]["name"]
        reference = reference_to(claim)

        def take(held: Object) -> Object | None:
            if held["spec"].get("claimRef"):
                return None
            held["spec"]["claimRef"] = reference
            held["metadata"].setdefault("annotations", {})[BOUND_BY_CONTROLLER] = "yes"
            return held

        def use(held: Object) -> Object | None:
            if held["spec"].get("volumeName"):
                return None
            held["spec"]["volumeName"] = name
            return held

        if await self._client.update("persistentvolumes", name, "", take) is not None:
            place = (metadata["name"], metadata["namespace"])
            await self._client.update("persistentvolumeclaims", *place, use)
