"""Simulated kubelet: takes the pods of simulated nodes through their states. No container runs.

`pod_machine` decides what happens to a pod. The loop supplies the facts, writes the status and waits for the time of
the next step. A waiting pod costs one timer, or an entry in the index of the objects that pods wait for.
"""

from __future__ import annotations

import ipaddress
import math
from collections.abc import Container, Iterator
from functools import partial

from kubist.api.object_client import ObjectClient
from kubist.cluster.control import usage
from kubist.cluster.control.loop import Loop, controller_of, entry_of
from kubist.cluster.control.staging import governs, listen
from kubist.cluster.simulation import outcomes, pod_needs, scripting
from kubist.cluster.simulation.actors import KUBELET
from kubist.cluster.simulation.commands import Run, file_scopes, run_of
from kubist.cluster.simulation.container_machine import Memory, Surroundings
from kubist.cluster.simulation.containers import PodEvent
from kubist.cluster.simulation.nodes import POD_NETWORK, SIMULATED
from kubist.cluster.simulation.outcome_defaults import annotations_above, defaults_for
from kubist.cluster.simulation.pod_admission import needs_admission, rejection_of
from kubist.cluster.simulation.pod_machine import advance
from kubist.cluster.simulation.pod_status import NODE_ADDRESS, TERMINAL
from kubist.model.meta.conditions import find
from kubist.model.meta.object import Object
from kubist.model.meta.status import APIError
from kubist.storage.cache.cache import Change, Entry

Key = tuple[str, str]
"""Namespace and name of a pod."""
CHECKED = (outcomes.ANNOTATION.encode(), usage.ANNOTATION.encode())


class Kubelet(Loop):
    """Runs the state machine of every pod that is bound to a simulated node that is ready."""

    name = "simulated-kubelet"
    component = "kubelet"
    actor = KUBELET
    workers = 8

    def __init__(self, client: ObjectClient) -> None:
        super().__init__(client)
        self._pods = self.client.collection("pods")
        self._nodes = self.client.collection("nodes")
        self._needed = {resource: self.client.resource(resource) for resource in pod_needs.RESOURCES}
        self._addresses = Addresses(self.client)
        self._files = Files()
        self._memories: dict[Key, tuple[str, Memory]] = {}
        """UID and memory of the pods that change again without a change of any object."""
        self._writing: dict[Key, int] = {}
        """Pods whose status is being written, and their revision until now."""
        self._needs: dict[Key, set[tuple[str, str]]] = {}
        """Resource and name of missing objects by pod."""
        self._waiting: dict[tuple[str, str, str], set[Key]] = {}
        """Pods by resource, namespace and name of a missing object."""
        self._problems: dict[Key, tuple[str, ...]] = {}
        """Faults of annotations that an Event reported."""

    def follow(self) -> None:
        listen(self.client, self)
        self.watch("nodes", self._node_changed)
        self.watch("pods", self._pod_changed)
        for resource in pod_needs.RESOURCES:
            self.watch(resource, partial(self._needed_changed, resource))

    def stages_changed(self) -> None:
        """Queues all pods again, because Stages may now drive different ones."""
        for entry in self._pods.entries.values():
            if b'"nodeName":"' in entry.tail:
                self.queue.add((entry.namespace, entry.name))

    def _pod_changed(self, change: Change) -> None:
        if change.new is None:
            if change.old is not None:
                self._forget((change.old.namespace, change.old.name))
        elif b'"nodeName":"' in change.new.tail:
            key = (change.new.namespace, change.new.name)
            if change.old is None or self._writing.get(key) != change.old.revision:
                self.queue.add(key)

    def _node_changed(self, change: Change) -> None:
        """Wakes up the pods of a node that becomes ready. A kubelet that is not ready leaves its pods alone."""
        if change.new is None or not is_served(self.client, self.client.parsed(change.new)):
            return
        if change.old is None or not is_served(self.client, change.old.object()):
            name = change.new.name
            for entry in self._pods.entries.values():
                if entry.fields.get("spec.nodeName") == name:
                    self.queue.add((entry.namespace, entry.name))

    def _needed_changed(self, resource: str, change: Change) -> None:
        if self._waiting:
            entry = entry_of(change)
            for key in self._waiting.get((resource, entry.namespace, entry.name), ()):
                self.queue.add(key)

    def _forget(self, key: Key) -> None:
        self._addresses.release(key)
        self._problems.pop(key, None)
        self._set_needs(key, set())
        uid, _ = self._memories.pop(key, ("", None))
        self._files.forget(uid)

    async def reconcile(self, key: Key) -> None:
        namespace, name = key
        entry = self._pods.get(self.client.resource("pods").key(namespace, name))
        if entry is None:
            return
        pod = self.client.parsed(entry)
        node = self._node_of(pod)
        if node is None or governs(self.client, "pods", pod):
            return
        if any(annotation in entry.tail for annotation in CHECKED):
            self._report_problems(key, pod)
        if needs_admission(pod) and await self._reject(key, entry, pod, node):
            return
        if "startTime" not in pod["status"] and await self._inherit(pod):
            return
        memory = self._memory(key, pod)
        now = self.clock.now()
        step = advance(pod, self._surroundings(key, pod, node, memory), memory, now)
        if step.status is not None and not await self._write_status(key, entry, step.status):
            # Another client was faster.
            memory.said.clear()
            self.queue.add(key)
            return
        self._emit(pod, step.events)
        if step.is_stopped:
            await self._remove(pod)
        elif math.isinf(step.wake):
            self._settle(key, memory)
        elif step.wake <= now:
            # Not through the clock, which may be frozen.
            self.queue.add(key)
        else:
            self.queue.add_after(key, step.wake - now)

    async def _inherit(self, pod: Object) -> bool:
        """Gives a pod that starts the default outcome of its owners and its namespace. Returns whether the pod has
        changed."""
        defaults = defaults_for(pod, annotations_above(self.client, pod))
        try:
            return bool(defaults) and await scripting.annotate(self.client, pod, defaults)
        except APIError as error:
            if error.code == 409:
                raise
            text = f"default outcome: {error.message}"
            self.events.emit(pod, "Warning", "InvalidAnnotation", text, host=pod["spec"]["nodeName"])
            return False

    async def _reject(self, key: Key, entry: Entry, pod: Object, node: Object) -> bool:
        """Fails a pod that does not fit on its node. Only pods that no scheduler saw are checked."""
        name = node["metadata"]["name"]
        others = (
            other
            for other_entry in self._pods.entries.values()
            if other_entry.fields.get("spec.nodeName") == name
            and other_entry.fields.get("status.phase") not in TERMINAL
            and other_entry.key != entry.key
            and "startTime" in (other := self.client.parsed(other_entry))["status"]
        )
        rejection = rejection_of(pod, node, others)
        if rejection is None:
            return False
        if await self._write_status(key, entry, rejection.status(pod, self.stamp())):
            self._emit(pod, [rejection.event()])
        else:
            self.queue.add(key)
        return True

    def _node_of(self, pod: Object) -> Object | None:
        """The pod's node if it is simulated and ready."""
        entry = self._nodes.get(self.client.resource("nodes").key("", pod["spec"].get("nodeName", "")))
        if entry is None:
            return None
        node = self.client.parsed(entry)
        return node if is_served(self.client, node) else None

    def _memory(self, key: Key, pod: Object) -> Memory:
        uid = pod["metadata"]["uid"]
        known = self._memories.get(key)
        if known is None or known[0] != uid:
            known = self._memories[key] = (uid, Memory())
        return known[1]

    def _settle(self, key: Key, memory: Memory) -> None:
        """Forgets a pod that needs no step until it changes, unless its memory decides about its next start."""
        if (
            not memory.calm
            and not memory.pulls
            and not any(run and run.files for run in memory.runs.values())
        ):
            self._memories.pop(key, None)

    def _surroundings(self, key: Key, pod: Object, node: Object, memory: Memory) -> Surroundings:
        missing = pod_needs.missing_for(pod, lambda resource, name: self._look_up(resource, key[0], name))
        self._set_needs(key, missing.objects if missing is not None else set())
        owner = controller_of(pod)

        def run(container: Object, attempt: int) -> Run | None:
            place = (container["name"], attempt)
            if place not in memory.runs:
                memory.runs[place] = self._run(pod, container, attempt)
                memory.runs.pop((container["name"], attempt - 2), None)  # no step needs it any more
            return memory.runs[place]

        return Surroundings(
            host_addresses(node),
            lambda: self._addresses.of(key, node),
            run,
            self.config.workload_delay,
            is_of_job=owner is not None and owner.get("kind") == "Job",
            missing=missing,
            allocatable=node["status"].get("allocatable"),
        )

    def _run(self, pod: Object, container: Object, attempt: int) -> Run | None:
        run = run_of(pod, container, attempt, self._files.seen_by(pod, container))
        if run is not None and run.files:
            self._files.keep(pod, container, run.files)
        return run

    def _look_up(self, resource: str, namespace: str, name: str) -> Object | None:
        kind = self._needed[resource]
        entry = self.client.registry.collection(kind).get(kind.key(namespace, name))
        return self.client.parsed(entry) if entry is not None else None

    def _set_needs(self, key: Key, needs: set[tuple[str, str]]) -> None:
        """Keeps the index of the objects that pods wait for."""
        old = self._needs.get(key, set())
        if needs == old:
            return
        for resource, name in old - needs:
            place = (resource, key[0], name)
            self._waiting[place].discard(key)
            if not self._waiting[place]:
                del self._waiting[place]
        for resource, name in needs - old:
            self._waiting.setdefault((resource, key[0], name), set()).add(key)
        if needs:
            self._needs[key] = needs
        else:
            self._needs.pop(key, None)

    def _report_problems(self, key: Key, pod: Object) -> None:
        texts = outcomes.problems(pod)
        if problem := usage.usage_problem(pod["metadata"].get("annotations") or {}):
            texts.append(problem)
        problems = tuple(texts)
        if self._problems.get(key, ()) != problems:
            self._problems[key] = problems
            for text in problems:
                self.events.emit(pod, "Warning", "InvalidAnnotation", text, host=pod["spec"]["nodeName"])

    def _emit(self, pod: Object, events: list[PodEvent]) -> None:
        node = pod["spec"]["nodeName"]
        for event in events:
            self.events.emit(
                pod, event.type, event.reason, event.message, host=node, field_path=event.field_path
            )

    async def _write_status(self, key: Key, entry: Entry, status: Object) -> bool:
        """Writes a status unless the pod has changed. The loop does not react to this write."""
        namespace, name = key
        version = str(entry.revision)

        def edit(current: Object) -> Object | None:
            if current["metadata"]["resourceVersion"] != version:
                return None
            current["status"] = status
            return current

        self._writing[key] = entry.revision
        try:
            return bool(await self.client.update("pods", name, namespace, edit, subresource="status"))
        finally:
            del self._writing[key]

    async def _remove(self, pod: Object) -> None:
        """Completes the deletion of a pod. Finalizers may still keep it."""
        metadata = pod["metadata"]
        if metadata.get("deletionGracePeriodSeconds") == 0:
            return
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


def is_served(client: ObjectClient, node: Object) -> bool:
    """Whether the simulated kubelet works for a node: the node is simulated, or Stages drive it, and no condition says
    that it is not ready."""
    labels = node["metadata"].get("labels") or {}
    if labels.get(SIMULATED) != "true" and not governs(client, "nodes", node):
        return False
    ready = find((node.get("status") or {}).get("conditions"), "Ready")
    return ready is None or ready.get("status") == "True"


# Addresses of pods, from the pod networks of their nodes

Network = ipaddress.IPv4Network | ipaddress.IPv6Network


class Addresses:
    """Gives every pod an address that no other pod has."""

    def __init__(self, client: ObjectClient) -> None:
        self._client = client
        self._taken: dict[tuple[str, str], str] = {}
        """First addresses that were given to pods."""
        self._free: dict[str, Iterator[str]] = {}
        """Addresses of each network that were free when the present round through it began."""

    def of(self, key: tuple[str, str], node: Object) -> list[str]:
        """Addresses of a pod: one in each network of its node."""
        spec = node["spec"]
        networks = spec.get("podCIDRs") or ([spec["podCIDR"]] if spec.get("podCIDR") else [str(POD_NETWORK)])
        if key not in self._taken:
            self._taken[key] = self._next(networks[0])
        first = self._taken[key]
        return [first, *(_counterpart(first, networks[0], other) for other in networks[1:])]

    def release(self, key: tuple[str, str]) -> None:
        self._taken.pop(key, None)

    def _next(self, network: str) -> str:
        for _ in range(2):
            address = next(self._free.get(network, iter(())), None)
            if address is not None:
                return address
            entries = self._client.collection("pods").entries.values()
            taken = {entry.fields.get("status.podIP") for entry in entries} | set(self._taken.values())
            hosts = ipaddress.ip_network(network, strict=False).hosts()
            self._free[network] = (text for host in hosts if (text := str(host)) not in taken)
        raise LookupError(f"all addresses of {network} are taken")


def _counterpart(address: str, network: str, other: str) -> str:
    """Address at the same place in another network. Pods of a dual-stack cluster have one in each family."""
    offset = int(ipaddress.ip_address(address)) - int(ipaddress.ip_network(network, strict=False)[0])
    return str(ipaddress.ip_network(other, strict=False)[offset])


def host_addresses(node: Object) -> list[str]:
    """Addresses of a node, at most one of each family."""
    listed = (node.get("status") or {}).get("addresses") or ()
    internal = [entry["address"] for entry in listed if entry.get("type") == "InternalIP"]
    return internal[:2] or [NODE_ADDRESS]


# Files that simulated commands created on volumes: an emptyDir keeps them for the pod, a hostPath for the
# node

MAX_SIZE = 4 << 20
"""Maximum size of all paths that are remembered, in characters. Then all are forgotten."""
MAX_SEEN = 1_000_000
"""Maximum size of the paths that one container sees. A volume may be mounted thousands of times."""
_MAX_PATH = 4096
"""Maximum length of a path on Linux."""
_OVERHEAD = 100
"""Characters that each path counts in addition to its own."""


class Files:
    def __init__(self) -> None:
        self._kept: dict[str, set[str]] = {}
        """Paths below a directory, by the key of the directory."""
        self._size = 0

    def seen_by(self, pod: Object, container: Object) -> set[str]:
        """Paths that exist in a container that starts."""
        if not self._kept:
            return set()
        paths: set[str] = set()
        left = MAX_SEEN
        for mount, scope in file_scopes(pod, container):
            for path in self._kept.get(scope, ()):
                left -= len(mount) + len(path)
                if left < 0:
                    return paths
                paths.add(mount + path)
        return paths

    def keep(self, pod: Object, container: Object, paths: set[str]) -> None:
        """Remembers the files of a container that are on volumes."""
        scopes = dict(reversed(file_scopes(pod, container)))
        for path in paths if scopes else ():
            mount = _mount_of(path, scopes)
            if mount is None:
                continue
            scope = scopes[mount]
            kept = self._kept.setdefault(scope, set())
            below = path[len(mount) :]
            if below in kept:
                continue
            self._size += len(below) + len(scope) + _OVERHEAD
            if self._size > MAX_SIZE:
                self._kept, self._size, kept = {}, 0, set()
                self._kept[scope] = kept
            kept.add(below)

    def forget(self, uid: str) -> None:
        """Forgets the files of a pod."""
        if uid and self._kept:
            for scope in [scope for scope in self._kept if scope.startswith(f"pod/{uid}/")]:
                self._size -= sum(len(path) + len(scope) + _OVERHEAD for path in self._kept.pop(scope))


def _mount_of(path: str, mounts: Container[str]) -> str | None:
    """Longest mount path above a path."""
    end = path.rfind("/") if len(path) <= _MAX_PATH else -1
    while end >= 0:
        if path[:end] in mounts:
            return path[:end]
        end = path.rfind("/", 0, end)
    return None
