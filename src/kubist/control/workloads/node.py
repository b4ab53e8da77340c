"""Simulated node: it is registered and ready, and its pods are reported as running. No container runs.

`Nodes` keeps the Node object, `Scheduler` binds pods, `Kubelet` writes their status and completes their
deletion.
"""

from __future__ import annotations

import ipaddress
import time
from collections.abc import Iterator
from typing import Any

from kubist.config import KUBERNETES_VERSION
from kubist.control.loop import Loop, controller_of, entry_of
from kubist.control.workloads import podstatus
from kubist.control.workloads.podstatus import NODE_ADDRESS
from kubist.meta import times
from kubist.meta.conditions import find, set_condition
from kubist.meta.object import Object
from kubist.meta.status import APIError
from kubist.meta.times import now_micro, parse_time
from kubist.objectclient import ObjectClient
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


class Scheduler(Loop):
    """Binds pods to the first node that is ready, not cordoned, and allowed by nodeSelector and tolerations."""

    name = "simulated-scheduler"

    def follow(self) -> None:
        self.watch("pods", self._pod_changed)
        self.watch("nodes", self._node_changed)

    def _pod_changed(self, change: Change) -> None:
        if change.new is not None and b'"nodeName":"' not in change.new.tail:
            self.enqueue(change)

    def _node_changed(self, change: Change) -> None:
        for entry in self.client.collection("pods").entries.values():
            if b'"nodeName":"' not in entry.tail:
                self.queue.add((entry.namespace, entry.name))

    async def reconcile(self, key: tuple[str, str]) -> None:
        namespace, name = key
        pod = self.client.get("pods", name, namespace)
        if pod is None or pod["spec"].get("nodeName") or "deletionTimestamp" in pod["metadata"]:
            return
        if pod["spec"].get("schedulerName") != "default-scheduler" or pod["spec"].get("schedulingGates"):
            return
        node = next((node for node in self.client.list("nodes") if fits(pod, node)), None)
        now = times.now()

        def bind(held: Object) -> Object | None:
            if held["spec"].get("nodeName"):
                return None
            conditions = held["status"].setdefault("conditions", [])
            if node is None:
                why = {"status": "False", "reason": "Unschedulable", "message": "no node is suitable"}
                return held if set_condition(conditions, {"type": "PodScheduled", **why}, now) else None
            held["spec"]["nodeName"] = node["metadata"]["name"]
            set_condition(conditions, {"type": "PodScheduled", "status": "True"}, now)
            return held

        try:
            await self.client.mutate("pods", name, namespace, bind)
        except APIError as error:
            if error.code != 404:
                raise


def fits(pod: Object, node: Object) -> bool:
    spec = node["spec"]
    if (
        spec.get("unschedulable")
        or (find(node["status"].get("conditions"), "Ready") or {}).get("status") != "True"
    ):
        return False
    labels = node["metadata"].get("labels") or {}
    if any(labels.get(key) != value for key, value in (pod["spec"].get("nodeSelector") or {}).items()):
        return False
    return all(tolerated(taint, pod["spec"].get("tolerations") or ()) for taint in spec.get("taints") or ())


def tolerated(taint: Object, tolerations: Any) -> bool:
    if taint.get("effect") == "PreferNoSchedule":
        return True
    for toleration in tolerations:
        if toleration.get("effect") not in (None, "", taint.get("effect")):
            continue
        if toleration.get("key", "") not in ("", taint["key"]):
            continue
        if toleration.get("operator") == "Exists" or toleration.get("value", "") == taint.get("value", ""):
            return True
    return False


class Kubelet(Loop):
    """Reports the pods of simulated nodes as running, and those of Jobs then as succeeded."""

    name = "simulated-kubelet"
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
        if "deletionTimestamp" in pod["metadata"]:
            await self._remove(pod)
            return
        phase = pod["status"].get("phase", "Pending")
        if phase in ("Succeeded", "Failed"):
            return
        if self.config.workload_delay:
            left = self._scheduled_at(pod) + self.config.workload_delay - time.time()
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
            noted = self._scheduled[key] = (uid, min(stated + 1, time.time()))
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
