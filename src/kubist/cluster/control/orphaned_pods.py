"""Garbage collection of orphaned pods: deletes pods whose node no longer exists."""

from __future__ import annotations

from kubist.api.kinds.shared.pod_conditions import mark_disrupted
from kubist.api.object_client import ObjectClient
from kubist.cluster.control.indexes import Key, PodsByNode
from kubist.cluster.control.loop import Loop, entry_of
from kubist.model.meta.object import Object
from kubist.model.meta.status import APIError
from kubist.storage.cache.cache import Change

QUARANTINE = 40.0
"""Seconds in which a node may appear before its pods are deleted."""


class OrphanedPods(Loop):
    name = "orphaned-pods"
    component = "pod-garbage-collector-controller"

    def __init__(self, client: ObjectClient) -> None:
        super().__init__(client)
        self._pods = PodsByNode()
        self._nodes: set[str] = set()
        self._missing: dict[str, float] = {}
        """Missing nodes that pods name, and the time at which each was noticed."""

    def follow(self) -> None:
        self.watch("nodes", self._node_changed)
        self.watch("pods", self._pod_changed)

    def _node_changed(self, change: Change) -> None:
        name = entry_of(change).name
        if change.new is not None:
            self._nodes.add(name)
            self._missing.pop(name, None)
        else:
            self._nodes.discard(name)
            for key in self._pods.on(name):
                self._note_missing(name, key)

    def _pod_changed(self, change: Change) -> None:
        node = self._pods.apply(change)
        if node and node not in self._nodes:
            entry = entry_of(change)
            self._note_missing(node, (entry.namespace, entry.name))
        elif self._missing and change.new is None:
            self._missing = {name: since for name, since in self._missing.items() if self._pods.on(name)}

    def _note_missing(self, node: str, key: Key) -> None:
        since = self._missing.setdefault(node, self.clock.monotonic())
        self.queue.add_after(key, max(since + QUARANTINE - self.clock.monotonic(), 0.0))

    async def reconcile(self, key: Key) -> None:
        pod = self.client.get("pods", key[1], key[0])
        since = self._missing.get(pod["spec"].get("nodeName", "")) if pod is not None else None
        if pod is None or since is None:
            return
        left = since + QUARANTINE - self.clock.monotonic()
        if left > 0:
            self.queue.add_after(key, left)
            return
        now = self.stamp()
        await self.client.update(
            "pods", key[1], key[0], lambda current: _failed(current, now), subresource="status"
        )
        try:
            only = {"uid": pod["metadata"]["uid"]}
            await self.client.delete("pods", key[1], key[0], gracePeriodSeconds=0, preconditions=only)
        except APIError as error:
            if error.code not in (404, 409):
                raise


def _failed(pod: Object, now: str) -> Object | None:
    status = pod["status"]
    if status.get("phase") in ("Succeeded", "Failed"):
        return None
    status["phase"] = "Failed"
    mark_disrupted(pod, "DeletionByPodGC", "PodGC: node no longer exists", now)
    return pod
