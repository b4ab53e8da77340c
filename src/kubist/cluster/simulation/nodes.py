"""Simulated nodes: they report their status and renew their Leases as kubelets do. No container runs."""

from __future__ import annotations

import asyncio
import ipaddress
import itertools
import zlib

from kubist.api.object_client import ObjectClient
from kubist.cluster.control.loop import Loop, entry_of
from kubist.cluster.control.node_lifecycle import Heartbeats
from kubist.cluster.control.staging import governs, listen
from kubist.cluster.simulation.actors import KUBELET
from kubist.cluster.simulation.node_objects import (
    NOT_READY,
    SIMULATED,
    STATE,
    UNREACHABLE,
    new_node,
    node_address,
    number_of,
    pod_cidrs,
    pod_network,
    reported,
    states_of,
    template_of,
)
from kubist.model.meta.conditions import find
from kubist.model.meta.object import Object
from kubist.model.meta.status import APIError
from kubist.model.meta.times import format_micro_time
from kubist.model.meta.well_known import NODE_LEASES
from kubist.storage.cache.cache import Change, Entry

__all__ = [
    "NOT_READY",
    "POD_NETWORK",
    "SIMULATED",
    "UNREACHABLE",
    "Nodes",
    "node_address",
    "pod_network",
    "set_state",
]

POD_NETWORK = ipaddress.IPv4Network("10.244.0.0/16")
LEASE_GROUP = "coordination.k8s.io"
LEASE_SECONDS = 40
RENEW_SECONDS = 10.0
REPORT_SECONDS = 300.0
"""Time after which a kubelet reports an unchanged status again."""
ROUNDS = 10
"""Number of groups of Leases. The renewals of a group share a transaction, and the groups take turns."""

Key = tuple[str, str | int]
"""Keys of the queue: ("node", name) or ("leases", number of a round)."""


class Nodes(Loop):
    """Keeps the configured nodes, and all others with the label of simulated nodes. Deleted ones come back."""

    name = "simulated-node"
    component = "kubelet"
    actor = KUBELET
    workers = 8

    def __init__(self, client: ObjectClient) -> None:
        super().__init__(client)
        self.template = template_of(self.config)
        self._node_resource = self.client.resource("nodes")
        self._nodes = self.client.collection("nodes")
        self._own = {name: number for number, name in enumerate(self.template.names())}
        self._numbers: dict[str, int] = dict(self._own)
        """Numbers of all simulated nodes."""
        self._rounds: list[set[str]] = [set() for _ in range(ROUNDS)]
        """Nodes whose Leases are renewed."""
        self._reported: dict[str, float] = {}
        """Time of the last report of each node."""

    def follow(self) -> None:
        self.client.shared(Heartbeats).renew = self._renew_all
        listen(self.client, self)
        self.watch("nodes", self._node_changed)
        for name in self._own:
            self.queue.add(("node", name))

    def stages_changed(self) -> None:
        """Queues all nodes again, because Stages may now drive different ones."""
        for entry in self.client.collection("nodes").entries.values():
            self.queue.add(("node", entry.name))

    def _node_changed(self, change: Change) -> None:
        entry = entry_of(change)
        if (
            is_simulated(entry)
            or (change.old is not None and is_simulated(change.old))
            or self._is_staged(entry)
        ):
            self.queue.add(("node", entry.name))

    def _is_staged(self, entry: Entry) -> bool:
        """Whether Stages drive a node. If so, a user's node gets a Lease."""
        return entry.name in self._rounds[round_of(entry.name)] or governs(
            self.client, "nodes", self.client.parsed(entry)
        )

    async def reconcile(self, key: Key) -> None:
        _kind, which = key
        if isinstance(which, int):
            await self._renew_leases(which)
        else:
            await self._keep_node(which)

    async def _keep_node(self, name: str) -> None:
        node = self.client.get("nodes", name)
        if node is None and name in self._own:
            node = await self._register(name)
        if node is None or (node["metadata"].get("labels") or {}).get(SIMULATED) != "true":
            if node is not None and governs(self.client, "nodes", node):
                await self._beat(name)
            else:
                self._forget(name)
            return
        states, problem = states_of(node)
        if problem:
            self.events.emit(node, "Warning", "InvalidNodeState", problem, host=name)
        if UNREACHABLE in states:
            self._rounds[round_of(name)].discard(name)
            return
        if not governs(self.client, "nodes", node):
            await self._report(node)
        await self._beat(name)

    async def _register(self, name: str) -> Object | None:
        node = new_node(name, self._own[name], self.template, self.stamp())
        if governs(self.client, "nodes", node):
            node["status"] = {}
        try:
            made = await self.client.create("nodes", node)
        except APIError as error:
            if error.code != 409:
                raise
            return self.client.get("nodes", name)
        self._reported[name] = self.clock.now()
        self.events.emit(made, "Normal", "Starting", "Starting kubelet.", host=name)
        return made

    def _forget(self, name: str) -> None:
        self._rounds[round_of(name)].discard(name)
        self._reported.pop(name, None)
        if name not in self._own:
            self._numbers.pop(name, None)

    async def _report(self, node: Object, *, heartbeat: bool = False) -> None:
        """Writes the status of the kubelet if it differs from the stored one."""
        name, now = node["metadata"]["name"], self.stamp()
        number = self._number(node)
        if not node["spec"].get("podCIDR"):
            await self.client.update("nodes", name, "", lambda current: self._with_network(current, number))

        def edit(current: Object) -> Object:
            of_user = name not in self._own
            return reported(current, number, self.template, now, of_user=of_user, heartbeat=heartbeat)

        written = await self.client.update("nodes", name, "", edit, subresource="status")
        if written is None:
            self._reported.setdefault(name, self.clock.now())
            return
        self._reported[name] = self.clock.now()
        before, after = _ready(node), _ready(written)
        if before != after:
            reason = "NodeReady" if after == "True" else "NodeNotReady"
            message = f"Node {name} status is now: {reason}"
            self.events.emit(written, "Normal", reason, message, host=name)

    def _with_network(self, node: Object, number: int) -> Object | None:
        if node["spec"].get("podCIDR"):
            return None
        node["spec"] |= pod_cidrs(self.template, number)
        return node

    def _number(self, node: Object) -> int:
        """Number of a node: by its address, else the lowest one that is free."""
        name = node["metadata"]["name"]
        number = self._numbers.get(name)
        if number is None:
            number = number_of(node)
            taken = set(self._numbers.values())
            if number is None or number in taken:
                number = next(free for free in itertools.count() if free not in taken)
            self._numbers[name] = number
        return number

    async def _beat(self, name: str) -> None:
        """Begins to renew the Lease of a node."""
        members = self._rounds[round_of(name)]
        if name in members:
            return
        members.add(name)
        await self._renew_lease(name)
        self.queue.add_after(("leases", round_of(name)), RENEW_SECONDS)

    async def _renew_leases(self, number: int) -> None:
        """Renews the Leases of one round together, and reports the status of nodes that were silent for a long time."""
        members = self._rounds[number]
        if not members:
            return
        self.queue.add_after(("leases", number), RENEW_SECONDS)
        await asyncio.gather(*map(self._renew_lease, sorted(members)))
        due = self.clock.now() - REPORT_SECONDS
        for name in sorted(members):
            if self._reported.get(name, 0.0) <= due:
                node = self.client.get("nodes", name)
                if node is not None and not governs(self.client, "nodes", node):
                    await self._report(node, heartbeat=True)

    async def _renew_all(self) -> None:
        await asyncio.gather(
            *(self._renew_lease(name) for members in self._rounds for name in sorted(members))
        )

    async def _renew_lease(self, name: str) -> None:
        now = self.clock.now()
        renewed = format_micro_time(int(now), int(now % 1 * 1e6))
        node = self._nodes.get(self._node_resource.key("", name))
        if node is None or is_unreachable(node):
            return
        resource = self.client.resource("leases", LEASE_GROUP)
        registry = self.client.registry
        entry = registry.collection(resource).get(resource.key(NODE_LEASES, name))
        if entry is None:
            await self._create_lease(name, renewed)
            return
        lease = entry.object()
        lease["spec"] |= {"holderIdentity": name, "leaseDurationSeconds": LEASE_SECONDS, "renewTime": renewed}
        # Renewals bypass admission and managed fields, because thousands of nodes write most of the time.
        await registry.replace(resource, entry, lease)

    async def _create_lease(self, name: str, renewed: str) -> None:
        node = self.client.get("nodes", name)
        if node is None:
            return
        owner = {"apiVersion": "v1", "kind": "Node", "name": name, "uid": node["metadata"]["uid"]}
        spec = {"holderIdentity": name, "leaseDurationSeconds": LEASE_SECONDS, "renewTime": renewed}
        lease = {"metadata": {"name": name, "ownerReferences": [owner]}, "spec": spec}
        try:
            await self.client.create("leases", lease, NODE_LEASES, group=LEASE_GROUP)
        except APIError as error:
            if error.code != 409:
                raise


async def set_state(client: ObjectClient, name: str, *states: str) -> Object | None:
    """Makes a simulated node NotReady or Unreachable, or puts it under pressure. Without states it is healthy again.

    None if the node does not exist or is in this state already.
    """

    def edit(node: Object) -> Object:
        annotations = node["metadata"].setdefault("annotations", {})
        if states:
            annotations[STATE] = ",".join(states)
        else:
            annotations.pop(STATE, None)
        return node

    return await client.update("nodes", name, "", edit)


def is_simulated(entry: Entry) -> bool:
    return entry.labels.get(SIMULATED) == "true"


def is_unreachable(entry: Entry) -> bool:
    return STATE.encode() in entry.tail and UNREACHABLE in states_of(entry.object())[0]


def round_of(name: str) -> int:
    return zlib.crc32(name.encode()) % ROUNDS


def _ready(node: Object) -> str | None:
    return (find(node["status"].get("conditions"), "Ready") or {}).get("status")
