"""Scheduler loop: follows pods and nodes, assigns pods, and reports those that fit nowhere."""

from __future__ import annotations

import heapq
import itertools
from collections.abc import Callable, Iterable
from dataclasses import dataclass

from kubist.api.object_client import ObjectClient
from kubist.cluster.control.loop import Loop, entry_of
from kubist.cluster.control.queue import Queue
from kubist.cluster.simulation.actors import SCHEDULER
from kubist.cluster.simulation.scheduler import writes
from kubist.cluster.simulation.scheduler.cycle import NO_NODES, Cycle, Rejected, choose
from kubist.cluster.simulation.scheduler.pod_info import Key, PodInfo
from kubist.cluster.simulation.scheduler.preemption import TERMINATING, Budget, Candidate, find_candidate
from kubist.cluster.simulation.scheduler.refusal import Refusal, summary
from kubist.cluster.simulation.scheduler.snapshot import Snapshot
from kubist.cluster.simulation.scheduler.volumes import STORAGE, Volumes
from kubist.cluster.simulation.scheduler.writes import NAME, VolumeBinder
from kubist.model.meta.object import Object
from kubist.storage.cache.cache import Change, Entry

LONGEST_MESSAGE = 1024
NO_DEVICES = "no new claims to deallocate"
"""Message of kube-scheduler's plugin for dynamic resources, which precedes that of preemption."""
NO_STATE = "not found"
"""Message of the same plugin about a pod that was rejected before any node was checked. Preemption is not tried."""
_FINISHED = (b'"phase":"Succeeded"', b'"phase":"Failed"')


class Scheduler(Loop):
    """Assigns pods with the schedulerName default-scheduler. Others are left to their schedulers."""

    name = "simulated-scheduler"
    component = NAME
    actor = SCHEDULER
    workers = 32

    def __init__(self, client: ObjectClient) -> None:
        super().__init__(client)
        self.queue = Queue(self._start_worker, self.clock, PriorityOrder(self._priority_of))
        self.snapshot = Snapshot()
        self.volumes = Volumes(self.client)
        self._binder = VolumeBinder(self.client)
        self._waiting = Waiting()
        self._unassigned: dict[Key, PodInfo] = {}
        """Pods of this scheduler without a node."""
        self._assumed: set[Key] = set()
        """Pods that are counted on a node although their binding is not stored yet."""
        self._next_node = 0
        """Index of the node at which the next search begins."""

    def follow(self) -> None:
        self.watch("namespaces", self._namespace_changed)
        self.watch("nodes", self._node_changed)
        self.watch("pods", self._pod_changed)
        self.watch("persistentvolumeclaims", self._volume_changed)
        self.watch("persistentvolumes", self._volume_changed)
        self.watch("storageclasses", self._volume_changed, group=STORAGE)

    def _priority_of(self, key: Key) -> int:
        pod = self._unassigned.get(key)
        return pod.priority if pod is not None else 0

    # Changes of objects

    def _namespace_changed(self, change: Change) -> None:
        entry = entry_of(change)
        labels = change.new.labels if change.new is not None else None
        if self.snapshot.namespaces.get(entry.name) != labels:
            self.snapshot.set_namespace(entry.name, labels)
            self._retry(("InterPodAffinity",))

    def _node_changed(self, change: Change) -> None:
        entry = entry_of(change)
        if change.new is None:
            self.snapshot.set_node(entry.name, None)
            self._retry(("PodTopologySpread",))
            return
        node = self.client.parsed(change.new)
        info = self.snapshot.nodes.get(entry.name)
        if info is not None and info.node is not None and _for_scheduling(info.node) == _for_scheduling(node):
            return
        self.snapshot.set_node(entry.name, node)
        self._retry(None)

    def _volume_changed(self, change: Change) -> None:
        self._retry(_AFTER_VOLUME)

    def _pod_changed(self, change: Change) -> None:
        entry = entry_of(change)
        key = (entry.namespace, entry.name)
        new = change.new
        if new is None:
            self._drop_unassigned(key)
            self._drop_assigned(key)
        elif b'"nodeName":"' in new.tail:
            self._drop_unassigned(key)
            self._pod_assigned(key, new)
        else:
            self._pod_unassigned(key, new)

    def _pod_assigned(self, key: Key, entry: Entry) -> None:
        self._assumed.discard(key)
        pod = self.client.parsed(entry)
        if any(text in entry.tail for text in _FINISHED) and pod["status"]["phase"] in (
            "Succeeded",
            "Failed",
        ):
            self._drop_assigned(key)
            return
        metadata = pod["metadata"]
        info = self.snapshot.pods.get(key)
        if (
            info is not None
            and info.uid == metadata["uid"]
            and info.node == pod["spec"]["nodeName"]
            and info.terminating == ("deletionTimestamp" in metadata)
            and info.generation == metadata.get("generation", 0)
            and info.labels == (metadata.get("labels") or {})
        ):
            return
        self.snapshot.add(PodInfo(pod))
        self._retry(_AFTER_POD_CAME if info is None else _AFTER_POD_LEFT)

    def _drop_assigned(self, key: Key) -> None:
        self._assumed.discard(key)
        if self.snapshot.remove(key) is not None:
            self._retry(_AFTER_POD_LEFT)

    def _pod_unassigned(self, key: Key, entry: Entry) -> None:
        pod = self.client.parsed(entry)
        metadata, spec = pod["metadata"], pod["spec"]
        if (
            spec.get("schedulerName") != NAME
            or spec.get("schedulingGates")
            or "deletionTimestamp" in metadata
            or pod["status"].get("phase") in ("Succeeded", "Failed")
        ):
            self._drop_unassigned(key)
            return
        info = self._unassigned.get(key)
        if (
            info is not None
            and info.uid == metadata["uid"]
            and info.generation == metadata.get("generation", 0)
            and info.labels == (metadata.get("labels") or {})
        ):
            info.nominated = pod["status"].get("nominatedNodeName", "")
            info.pod = pod
            self._note_nomination(info)
            return
        made = self._unassigned[key] = PodInfo(pod)
        self._note_nomination(made)
        self._waiting.discard(key)
        self.queue.add(key)

    def _drop_unassigned(self, key: Key) -> None:
        if self._unassigned.pop(key, None) is not None:
            self._waiting.discard(key)
            self._binder.forget(key)
            if self.snapshot.nominated.pop(key, None) is not None:
                self._retry(_AFTER_POD_LEFT)

    def _note_nomination(self, pod: PodInfo) -> None:
        if pod.nominated:
            self.snapshot.nominated[pod.key] = pod
        else:
            self.snapshot.nominated.pop(pod.key, None)

    def _retry(self, plugins: tuple[str, ...] | None) -> None:
        """Tries the pods again that these plugins refused; None for all."""
        for key, seconds in self._waiting.release(plugins, self.clock.monotonic()):
            if seconds:
                self.queue.add_soon(key, seconds)
            else:
                self.queue.add(key)

    # One pod

    async def reconcile(self, key: Key) -> None:
        pod = self._unassigned.get(key)
        if pod is None or key in self._assumed:
            return
        try:
            node, cycle = self._find_node(pod)
        except Unschedulable as error:
            await self._report_failure(pod, error)
            return
        if cycle.volumes is not None and cycle.volumes.waiting:
            bindings = cycle.volumes.bindings(self.snapshot.nodes[node]) or []
            self._waiting.add(key, _AFTER_VOLUME, self.clock.monotonic())
            await self._binder.bind(key, node, bindings)
            return
        pod.node = node
        self._assumed.add(key)
        self.snapshot.add(pod)
        try:
            is_bound = await writes.bind(self.client, pod, node, self.stamp())
        except BaseException:
            self._forget_assumed(pod)
            raise
        if is_bound:
            message = f"Successfully assigned {pod.namespace}/{key[1]} to {node}"
            self.events.emit(pod.pod, "Normal", "Scheduled", message, action="Binding")
            self._retry(_AFTER_POD_CAME)
        else:
            self._forget_assumed(pod)

    def _forget_assumed(self, pod: PodInfo) -> None:
        if pod.key in self._assumed:
            self._drop_assigned(pod.key)
            pod.node = ""

    def _find_node(self, pod: PodInfo) -> tuple[str, Cycle]:
        """Name of the best node, and the checks that found it. Raises Unschedulable."""
        snapshot = self.snapshot
        if not snapshot.nodes:
            raise Unschedulable(NO_NODES, ("NodeAffinity",), {})
        with snapshot.with_nominated(pod):
            try:
                cycle = Cycle(pod, snapshot, self.volumes)
            except Rejected as error:
                why = f"0/{len(snapshot.nodes)} nodes are available: {error}. {NO_STATE}"
                raise Unschedulable(why, (error.plugin,), {}) from None
            node_name = self._binder.node_of(pod.key) or pod.nominated
            if node_name in snapshot.nodes and cycle.check(snapshot.nodes[node_name]) is None:
                return node_name, cycle
            fitting, refusals, seen = cycle.search(self._next_node)
            if not fitting:
                why = summary(len(snapshot.nodes), refusals.values())
                raise Unschedulable(why, (refusal.plugin for refusal in refusals.values()), refusals)
            if seen < len(snapshot.nodes):
                self._next_node = (self._next_node + seen) % len(snapshot.nodes)
            return choose(pod, snapshot, fitting).name, cycle

    # Pods that fit nowhere

    async def _report_failure(self, pod: PodInfo, error: Unschedulable) -> None:
        self._waiting.add(pod.key, error.plugins, self.clock.monotonic())
        self.queue.add_after(pod.key, _AGAIN)
        message, why = str(error), ""
        candidate = None
        if error.refusals:
            candidate, why = self._preempt(pod, error.refusals)
            message += f" {NO_DEVICES}, preemption: {why}" if why else ""
        self.events.emit(
            pod.pod, "Warning", "FailedScheduling", message[:LONGEST_MESSAGE], action="Scheduling"
        )
        if candidate is not None:
            pod.nominated = candidate.node
        elif why != TERMINATING:
            pod.nominated = ""
        self._note_nomination(pod)
        await writes.refuse(self.client, pod, message, self.stamp())
        if candidate is not None:
            await self._make_room(pod, candidate)

    def _preempt(self, pod: PodInfo, refusals: dict[str, Refusal]) -> tuple[Candidate | None, str]:
        budgets: list[Budget] = []
        if any(refusal.resolvable for refusal in refusals.values()):
            listed = self.client.list("poddisruptionbudgets", None, group="policy")
            budgets = [Budget(budget) for budget in listed]
        with self.snapshot.with_nominated(pod):
            return find_candidate(pod, self.snapshot, self.volumes, refusals, budgets)

    async def _make_room(self, pod: PodInfo, candidate: Candidate) -> None:
        """Deletes the victims, and withdraws nominations of less important pods for the node."""
        for other in list(self.snapshot.nominated.values()):
            if other.nominated == candidate.node and other.priority < pod.priority:
                other.nominated = ""
                self._note_nomination(other)
                await writes.withdraw(self.client, other)
                self.queue.add(other.key)
        for victim in candidate.victims:
            if not victim.terminating:
                await writes.evict(self.client, victim, self.stamp())
                message = f"Preempted by pod {pod.uid} on node {candidate.node}"
                self.events.emit(victim.pod, "Normal", "Preempted", message, action="Preempting")


class Unschedulable(Exception):
    """No node fits. `refusals` are those of the nodes that were examined."""

    def __init__(self, message: str, plugins: Iterable[str], refusals: dict[str, Refusal]) -> None:
        super().__init__(message)
        self.plugins = frozenset(plugins)
        self.refusals = refusals


def _for_scheduling(node: Object) -> tuple[object, ...]:
    """Parts of a node that affect scheduling."""
    spec, status = node["spec"], node.get("status") or {}
    return (
        node["metadata"]["uid"],
        node["metadata"].get("labels"),
        spec.get("taints"),
        spec.get("unschedulable"),
        status.get("allocatable"),
    )


# Unschedulable pods: which changes can make them schedulable, and when they are tried again

FIRST_DELAY, LONGEST_DELAY = 1.0, 10.0
"""Back-off of a pod after attempts without success, in seconds."""
FEW = 100
"""Number of waiting pods up to which there is no back-off, as in a kube-scheduler with an empty queue."""
_AGAIN = 300.0
"""Seconds after which a pod is tried again if nothing happened."""

_AFTER_POD_LEFT = (
    "NodeResourcesFit",
    "NodePorts",
    "InterPodAffinity",
    "PodTopologySpread",
    "VolumeRestrictions",
)
_AFTER_POD_CAME = ("InterPodAffinity", "PodTopologySpread")
_AFTER_VOLUME = ("VolumeBinding", "VolumeZone")


@dataclass(slots=True)
class _Record:
    plugins: frozenset[str]
    attempts: int
    tried: float


class Waiting:
    """Pods that did not fit, by the plugins that refused them."""

    def __init__(self) -> None:
        self._records: dict[Key, _Record] = {}
        self._by_plugin: dict[str, set[Key]] = {}
        self._attempts: dict[Key, int] = {}

    def __len__(self) -> int:
        return len(self._records)

    def __contains__(self, key: Key) -> bool:
        return key in self._records

    def add(self, key: Key, plugins: Iterable[str], now: float) -> None:
        self._leave(key)
        attempts = self._attempts[key] = self._attempts.get(key, 0) + 1
        record = self._records[key] = _Record(frozenset(plugins), attempts, now)
        for plugin in record.plugins:
            self._by_plugin.setdefault(plugin, set()).add(key)

    def discard(self, key: Key) -> None:
        """Forgets a pod that was scheduled or deleted."""
        self._leave(key)
        self._attempts.pop(key, None)

    def _leave(self, key: Key) -> None:
        record = self._records.pop(key, None)
        for plugin in record.plugins if record is not None else ():
            keys = self._by_plugin[plugin]
            keys.discard(key)
            if not keys:
                del self._by_plugin[plugin]

    def release(self, plugins: Iterable[str] | None, now: float) -> list[tuple[Key, float]]:
        """Pods that a change may help, and the seconds until they are due. None stands for all plugins."""
        if not self._records:
            return []
        if plugins is None:
            keys = list(self._records)
        else:
            groups = [self._by_plugin.get(plugin, ()) for plugin in plugins]
            keys = list(dict.fromkeys(itertools.chain(*map(sorted, groups))))
        patient = len(self._records) > FEW
        due = []
        for key in keys:
            record = self._records[key]
            delay = min(FIRST_DELAY * 2.0 ** min(record.attempts - 1, 10), LONGEST_DELAY)
            due.append((key, max(record.tried + delay - now, 0.0) if patient else 0.0))
            self._leave(key)
        return due


class PriorityOrder:
    """Ready keys of the queue: the pod of the highest priority first, then the one that came first."""

    def __init__(self, priority_of: Callable[[Key], int]) -> None:
        self._priority_of = priority_of
        self._heap: list[tuple[int, int, Key]] = []
        self._numbers = itertools.count()

    def __len__(self) -> int:
        return len(self._heap)

    def append(self, key: Key) -> None:
        heapq.heappush(self._heap, (-self._priority_of(key), next(self._numbers), key))

    def popleft(self) -> Key:
        return heapq.heappop(self._heap)[2]
