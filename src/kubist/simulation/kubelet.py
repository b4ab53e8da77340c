"""Simulated kubelet: reports the pods of simulated nodes as running and completes their deletion. No container runs."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from kubist.control.loop import Loop, controller_of
from kubist.meta.conditions import find
from kubist.meta.object import Object
from kubist.meta.status import APIError
from kubist.meta.times import parse_time
from kubist.objectclient import ObjectClient
from kubist.simulation import podstatus
from kubist.simulation.actors import KUBELET
from kubist.simulation.nodes import POD_NETWORK, SIMULATED
from kubist.simulation.podstatus import NODE_ADDRESS
from kubist.simulation.stages.ownership import governs
from kubist.storage.cache import Change


class Kubelet(Loop):
    """Reports the pods of simulated nodes as running, and those of Jobs then as succeeded."""

    name = "simulated-kubelet"
    component = "kubelet"
    actor = KUBELET
    workers = 8

    def __init__(self, client: ObjectClient) -> None:
        super().__init__(client)
        self._taken: dict[str, str] = {}
        """Addresses given to pods, by namespace and name."""
        self._addresses: Iterator[str] = iter(())
        self._scheduled: dict[tuple[str, str], tuple[str, float]] = {}
        """Pods that must not run yet, by namespace and name: their UID and the time at which they were scheduled."""

    def follow(self) -> None:
        self.watch("pods", self._pod_changed)

    def _pod_changed(self, change: Change) -> None:
        if change.new is not None and b'"nodeName":"' in change.new.tail:
            self.enqueue(change)

    async def reconcile(self, key: tuple[str, str]) -> None:
        namespace, name = key
        pod = self.client.get("pods", name, namespace)
        if pod is None:
            self._taken.pop(f"{namespace}/{name}", None)
            self._scheduled.pop(key, None)
            return
        node = self.client.get("nodes", pod["spec"].get("nodeName", ""))
        if node is None or (node["metadata"].get("labels") or {}).get(SIMULATED) != "true":
            return
        if governs(self.client, "pods", pod):
            return
        if "deletionTimestamp" in pod["metadata"]:
            await self._remove(pod)
            return
        phase = pod["status"].get("phase", "Pending")
        if phase in ("Succeeded", "Failed"):
            return
        if self.config.workload_delay:
            left = self._scheduled_at(pod) + self.config.workload_delay - self.clock.now()
            if left > 0:
                self.queue.add_after(key, left)
                return
            self._scheduled.pop(key, None)
        if phase == "Pending":
            await self._update_status(pod, podstatus.running)
        elif podstatus.is_outdated(pod):
            await self._update_status(pod, podstatus.observed)
        reference = controller_of(pod)
        if reference is not None and reference.get("kind") == "Job":
            await self._update_status(pod, podstatus.succeeded)

    def _scheduled_at(self, pod: Object) -> float:
        """Time at which a pod was scheduled, recorded when the pod is first seen. Timestamps have whole
        seconds, so the pod may have been scheduled up to one second after its own timestamp."""
        metadata = pod["metadata"]
        key, uid = (metadata["namespace"], metadata["name"]), metadata["uid"]
        noted = self._scheduled.get(key)
        if noted is None or noted[0] != uid:
            scheduled = find(pod["status"].get("conditions"), "PodScheduled") or {}
            stated = parse_time(scheduled.get("lastTransitionTime") or metadata["creationTimestamp"])
            noted = self._scheduled[key] = (uid, min(stated + 1, self.clock.now()))
        return noted[1]

    async def _update_status(self, pod: Object, change: Any) -> None:
        metadata = pod["metadata"]
        address = self._address(f"{metadata['namespace']}/{metadata['name']}", pod)
        await self.client.update(
            "pods",
            metadata["name"],
            metadata["namespace"],
            lambda held: change(held, address) if held["metadata"]["uid"] == metadata["uid"] else None,
            subresource="status",
        )

    def _address(self, key: str, pod: Object) -> str:
        """An address that no other pod has; the node's address for pods with hostNetwork."""
        if pod["spec"].get("hostNetwork"):
            return NODE_ADDRESS
        if pod["status"].get("podIP"):
            return str(pod["status"]["podIP"])
        if key not in self._taken:
            self._taken[key] = self._free_address()
        return self._taken[key]

    def _free_address(self) -> str:
        """The next address that no pod had when the present round over the network began."""
        for _ in range(2):
            address = next(self._addresses, None)
            if address is not None:
                return address
            taken = {e.fields.get("status.podIP") for e in self.client.collection("pods").entries.values()}
            taken.update(self._taken.values())
            self._addresses = (str(ip) for ip in POD_NETWORK.hosts() if str(ip) not in taken)
        raise LookupError(f"all addresses of {POD_NETWORK} are taken")

    async def _remove(self, pod: Object) -> None:
        metadata = pod["metadata"]
        self._taken.pop(f"{metadata['namespace']}/{metadata['name']}", None)
        try:
            await self.client.delete(
                "pods",
                metadata["name"],
                metadata["namespace"],
                gracePeriodSeconds=0,
                preconditions={"uid": metadata["uid"]},
            )
        except APIError as error:
            if error.code not in (404, 409):
                raise
