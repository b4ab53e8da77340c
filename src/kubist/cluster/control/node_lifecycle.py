"""Node lifecycle controller: monitors the heartbeats of nodes, and taints nodes that are not ready.

A node whose Lease and status are not renewed becomes unknown, and its pods are not ready. Taints follow the conditions
of the node. If no node is ready at all, the cause is assumed to be elsewhere, and no pods are evicted.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable

from kubist.api.object_client import ObjectClient
from kubist.cluster.control.indexes import PodsByNode
from kubist.cluster.control.loop import Loop, entry_of
from kubist.model.meta.conditions import find
from kubist.model.meta.object import Object
from kubist.model.meta.well_known import NODE_LEASES
from kubist.storage.cache.cache import Change

GRACE = 50.0
"""Seconds without a heartbeat after which the state of a node is unknown."""
STARTUP_GRACE = 60.0
"""Grace period in seconds for a node that has never reported a status."""
LATE = 5.0
"""Delay in seconds from which a check is late, because the clock was moved or the process was stopped."""
NOT_READY, UNREACHABLE = "node.kubernetes.io/not-ready", "node.kubernetes.io/unreachable"
UNSCHEDULABLE = "node.kubernetes.io/unschedulable"
TAINTS = {
    ("Ready", "False"): NOT_READY,
    ("Ready", "Unknown"): UNREACHABLE,
    ("MemoryPressure", "True"): "node.kubernetes.io/memory-pressure",
    ("DiskPressure", "True"): "node.kubernetes.io/disk-pressure",
    ("PIDPressure", "True"): "node.kubernetes.io/pid-pressure",
    ("NetworkUnavailable", "True"): "node.kubernetes.io/network-unavailable",
}
"""Taint of each condition and status."""
JUDGED = ("Ready", "MemoryPressure", "DiskPressure", "PIDPressure")
CHECK = ""
"""Key of the queue: check the heartbeats of all nodes. Other keys are names of nodes."""


class Heartbeats:
    """Heartbeats of the nodes that a server simulates."""

    renew: Callable[[], Awaitable[None]] | None = None
    """Renews the Leases of these nodes. Called before a late check."""


class NodeLifecycle(Loop):
    name = "node-lifecycle"
    component = "node-controller"

    def __init__(self, client: ObjectClient) -> None:
        super().__init__(client)
        self._pods = PodsByNode()
        self._beats: dict[str, float] = {}
        """Time of the last heartbeat of each node."""
        self._reported: dict[str, str] = {}
        """lastHeartbeatTime of the condition Ready of each node."""
        self._ready: dict[str, bool] = {}
        self._check_at = 0.0

    def follow(self) -> None:
        self.watch("pods", self._pod_changed)
        self.watch("nodes", self._node_changed)
        self.watch("leases", self._lease_changed, group="coordination.k8s.io")

    def _pod_changed(self, change: Change) -> None:
        self._pods.apply(change)

    def _lease_changed(self, change: Change) -> None:
        entry = entry_of(change)
        if entry.namespace == NODE_LEASES and change.new is not None and entry.name in self._beats:
            self._beats[entry.name] = self.clock.monotonic()

    def _node_changed(self, change: Change) -> None:
        name = entry_of(change).name
        if change.new is None:
            self._forget(self.client.parsed(entry_of(change)))
            return
        node = self.client.parsed(change.new)
        ready = find(node["status"].get("conditions"), "Ready") or {}
        if name not in self._beats:
            self._beats[name] = self.clock.monotonic()
            self._plan_check(GRACE)
            message = f"Node {name} event: Registered Node {name} in Controller"
            self.events.emit(node, "Normal", "RegisteredNode", message)
        elif ready.get("status") != "Unknown" and ready.get("lastHeartbeatTime") != self._reported.get(name):
            self._beats[name] = self.clock.monotonic()
        self._reported[name] = ready.get("lastHeartbeatTime", "")
        self._note_ready(name, ready.get("status") == "True")
        self.queue.add(name)

    def _note_ready(self, name: str, ready: bool) -> None:
        before = self.is_disrupted()
        self._ready[name] = ready
        if before != self.is_disrupted():
            for other in self._ready:
                self.queue.add(other)

    def is_disrupted(self) -> bool:
        """Whether no node is ready."""
        return not any(self._ready.values())

    def _forget(self, node: Object) -> None:
        name = node["metadata"]["name"]
        for by_node in (self._beats, self._reported, self._ready):
            by_node.pop(name, None)
        message = f"Node {name} event: Removing Node {name} from Controller"
        self.events.emit(node, "Normal", "RemovingNode", message)

    def _plan_check(self, seconds: float) -> None:
        self._check_at = self.clock.monotonic() + seconds
        self.queue.add_after(CHECK, seconds)

    async def reconcile(self, key: str) -> None:
        if key == CHECK:
            await self._check_heartbeats()
            return
        node = self.client.get("nodes", key)
        if node is not None:
            await self._set_taints(node)

    async def _check_heartbeats(self) -> None:
        renew = self.client.shared(Heartbeats).renew
        if renew is not None and self.clock.monotonic() > self._check_at + LATE:
            await renew()
        now = self.clock.monotonic()
        left = [GRACE]
        for name, beat in list(self._beats.items()):
            node = self.client.get("nodes", name)
            if node is None:
                continue
            ready = find(node["status"].get("conditions"), "Ready")
            remaining = beat + (GRACE if ready else STARTUP_GRACE) - now
            if remaining > 0:
                left.append(remaining)
            elif ready is None or ready["status"] != "Unknown":
                await self._lose(node)
        self._plan_check(min(left))

    async def _lose(self, node: Object) -> None:
        """Marks a node as unknown, and its pods as not ready."""
        name, now = node["metadata"]["name"], self.stamp()
        was_ready = (find(node["status"].get("conditions"), "Ready") or {}).get("status") == "True"
        written = await self.client.update(
            "nodes", name, "", lambda current: _unknown(current, now), subresource="status"
        )
        if written is None or not was_ready:
            return
        message = f"Node {name} status is now: NodeNotReady"
        self.events.emit(written, "Normal", "NodeNotReady", message)
        for namespace, pod in self._pods.on(name):
            changed = await self.client.update(
                "pods", pod, namespace, lambda current: _not_ready(current, now), subresource="status"
            )
            if changed is not None:
                self.events.emit(changed, "Warning", "NodeNotReady", "Node is not ready")

    async def _set_taints(self, node: Object) -> None:
        now, evict = self.stamp(), not self.is_disrupted()
        await self.client.update(
            "nodes", node["metadata"]["name"], "", lambda current: tainted(current, now, evict=evict)
        )


def tainted(node: Object, now: str, *, evict: bool) -> Object | None:
    """The node with the taints of its conditions. None if it has them. `evict`: taints may evict pods."""
    conditions = node["status"].get("conditions") or ()
    expected = {
        (TAINTS[condition["type"], condition["status"]], "NoSchedule")
        for condition in conditions
        if (condition.get("type"), condition.get("status")) in TAINTS
    }
    if node["spec"].get("unschedulable"):
        expected.add((UNSCHEDULABLE, "NoSchedule"))
    state = (find(list(conditions), "Ready") or {}).get("status", "")
    if evict and ("Ready", state) in TAINTS:
        expected.add((TAINTS["Ready", state], "NoExecute"))
    elif not state:
        # A node without status keeps the taint of admission.
        expected.add((NOT_READY, "NoSchedule"))
    ours = {(key, "NoSchedule") for key in (*TAINTS.values(), UNSCHEDULABLE)}
    ours |= {(NOT_READY, "NoExecute"), (UNREACHABLE, "NoExecute")}
    old_taints = node["spec"].get("taints") or []
    kept = [t for t in old_taints if (t["key"], t.get("effect")) not in ours - expected]
    missing = sorted(expected - {(taint["key"], taint.get("effect")) for taint in kept})
    taints = [*kept, *({"key": key, "effect": effect, "timeAdded": now} for key, effect in missing)]
    if taints == old_taints:
        return None
    if taints:
        node["spec"]["taints"] = taints
    else:
        node["spec"].pop("taints", None)
    return node


def _unknown(node: Object, now: str) -> Object:
    """The node whose kubelet does not respond. Conditions of others are kept."""
    conditions = node["status"].setdefault("conditions", [])
    created = node["metadata"]["creationTimestamp"]
    for kind in JUDGED:
        condition = find(conditions, kind)
        if condition is None:
            conditions.append(
                {
                    "type": kind,
                    "status": "Unknown",
                    "reason": "NodeStatusNeverUpdated",
                    "message": "Kubelet never posted node status.",
                    "lastHeartbeatTime": created,
                    "lastTransitionTime": now,
                }
            )
        elif condition["status"] != "Unknown":
            message = "Kubelet stopped posting node status."
            condition |= {"status": "Unknown", "reason": "NodeStatusUnknown", "message": message}
            condition["lastTransitionTime"] = now
    return node


def _not_ready(pod: Object, now: str) -> Object | None:
    ready = find(pod["status"].get("conditions"), "Ready")
    if ready is None or ready.get("status") == "False":
        return None
    ready |= {"status": "False", "lastTransitionTime": now}
    return pod
