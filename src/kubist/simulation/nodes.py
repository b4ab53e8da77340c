"""Simulated node: it is registered and ready, and its Lease is renewed. No container runs."""

from __future__ import annotations

import ipaddress

from kubist.config import KUBERNETES_VERSION
from kubist.control.loop import Loop, entry_of
from kubist.meta import times
from kubist.meta.conditions import set_condition
from kubist.meta.object import Object
from kubist.meta.times import now_micro
from kubist.simulation.actors import KUBELET
from kubist.simulation.podstatus import NODE_ADDRESS
from kubist.storage.cache import Change

NAME = "kubist-node"
CAPACITY = {"cpu": "64", "memory": "256Gi", "ephemeral-storage": "1Ti", "pods": "10000"}
POD_NETWORK = ipaddress.IPv4Network("10.244.0.0/16")
SIMULATED = "kubist.io/simulated"
LEASE = ("leases", NAME)
"""Key in the queue of `Nodes`."""
LEASE_SECONDS = 40
RENEW_SECONDS = 10.0


class Nodes(Loop):
    """Keeps the simulated node. It is created again when it is deleted."""

    name = "simulated-node"
    component = "kubelet"
    actor = KUBELET

    def follow(self) -> None:
        self.queue.add(LEASE)
        self.queue.add(NAME)
        self.watch("nodes", self._node_changed)

    def _node_changed(self, change: Change) -> None:
        if entry_of(change).name == NAME and (change.new is None or change.old is None):
            self.queue.add(NAME)

    async def reconcile(self, key: str | tuple[str, str]) -> None:
        if isinstance(key, tuple):
            await self._renew_lease(NAME)
        else:
            await self._keep_node(key)

    async def _keep_node(self, key: str) -> None:
        if self.client.get("nodes", key) is None:
            labels = {
                "kubernetes.io/hostname": NAME,
                "kubernetes.io/os": "linux",
                "kubernetes.io/arch": "amd64",
                SIMULATED: "true",
            }
            node = {
                "metadata": {"name": NAME, "labels": labels},
                "spec": {"podCIDR": str(POD_NETWORK), "podCIDRs": [str(POD_NETWORK)]},
            }
            await self.client.create("nodes", node)
        await self.client.update("nodes", key, "", _without_taint)
        await self.client.update("nodes", key, "", _ready, subresource="status")

    async def _renew_lease(self, name: str) -> None:
        """Creates or renews the node's Lease, as a kubelet does. Other tools may judge the node by it."""
        self.queue.add_after(LEASE, RENEW_SECONDS)
        spec = {"holderIdentity": name, "leaseDurationSeconds": LEASE_SECONDS, "renewTime": now_micro()}
        place = ("leases", name, "kube-node-lease")
        if self.client.get(*place, group="coordination.k8s.io") is None:
            lease = {"metadata": {"name": name}, "spec": spec}
            await self.client.create("leases", lease, "kube-node-lease", group="coordination.k8s.io")
        else:
            await self.client.update(
                *place, lambda lease: {**lease, "spec": spec}, group="coordination.k8s.io"
            )


def _without_taint(node: Object) -> Object:
    """Removes the not-ready taint that admission adds to new nodes, because the simulated node is always ready."""
    taints = [t for t in node["spec"].get("taints") or () if t["key"] != "node.kubernetes.io/not-ready"]
    if taints:
        node["spec"]["taints"] = taints
    else:
        node["spec"].pop("taints", None)
    return node


def _ready(node: Object) -> Object:
    now, status = times.now(), node["status"]
    conditions = status.setdefault("conditions", [])
    for kind in ("MemoryPressure", "DiskPressure", "PIDPressure"):
        healthy = {"type": kind, "status": "False", "reason": f"KubeletHasNo{kind}", "message": "simulated"}
        set_condition(conditions, {**healthy, "lastHeartbeatTime": now}, now)
    ready = {"type": "Ready", "status": "True", "reason": "KubeletReady", "message": "this node is simulated"}
    set_condition(conditions, {**ready, "lastHeartbeatTime": now}, now)
    status["capacity"] = dict(CAPACITY)
    status["allocatable"] = dict(CAPACITY)
    status["addresses"] = [
        {"type": "InternalIP", "address": NODE_ADDRESS},
        {"type": "Hostname", "address": node["metadata"]["name"]},
    ]
    info = status.setdefault("nodeInfo", {})
    info.update(
        kubeletVersion=KUBERNETES_VERSION, osImage="simulated", operatingSystem="linux", architecture="amd64"
    )
    return node
