"""Pods of workload controllers: creation from a template, lookup by owner, adoption and release by selector, Events."""

from __future__ import annotations

import asyncio
import copy
import hashlib
from collections.abc import Awaitable, Callable, Iterable
from typing import NamedTuple

import orjson

from kubist.api.object_client import ObjectClient
from kubist.cluster.control.loop import Loop, controller_of, entry_of
from kubist.cluster.control.values import pod_ready
from kubist.model.meta.conditions import find
from kubist.model.meta.names import SAFE_CHARACTERS
from kubist.model.meta.object import Object
from kubist.model.meta.selectors import LabelSelector, label_selector
from kubist.model.meta.status import APIError
from kubist.model.meta.times import parse_time
from kubist.storage.cache.cache import Change, Entry

WANTED = ("generation", "deletionTimestamp", "finalizers", "labels")
"""Metadata fields that trigger a reconcile. The generation stands for the spec."""
Edit = Callable[[Object], Object | None]
DELETED = b'"deletionTimestamp":"'
NOTHING = label_selector({"matchExpressions": [{"key": "a", "operator": "In", "values": []}]})
"""Selector that matches no object."""


def owner_reference(owner: Object) -> Object:
    metadata = owner["metadata"]
    return {
        "apiVersion": owner["apiVersion"],
        "kind": owner["kind"],
        "name": metadata["name"],
        "uid": metadata["uid"],
        "controller": True,
        "blockOwnerDeletion": True,
    }


def owned(obj: Object, owner: Object) -> bool:
    reference = controller_of(obj)
    return reference is not None and reference.get("uid") == owner["metadata"]["uid"]


def from_template(template: Object, owner: Object, name: str = "") -> Object:
    """Pod from a template, controlled by `owner`. It gets a generated name if it has none."""
    template = copy.deepcopy(template)
    kept = template.get("metadata") or {}
    metadata: Object = {
        part: kept[part] for part in ("labels", "annotations", "finalizers") if kept.get(part)
    }
    metadata["ownerReferences"] = [owner_reference(owner)]
    if name:
        metadata["name"] = name
    else:
        metadata["generateName"] = f"{owner['metadata']['name']}-"
    return {"metadata": metadata, "spec": template["spec"]}


def template_hash(template: Object, collisions: int = 0) -> str:
    """Short hash of a template for names and labels. `collisions` is the collisionCount of its owner."""
    text = orjson.dumps(template, option=orjson.OPT_SORT_KEYS)
    digest = hashlib.sha256(text + str(collisions or "").encode()).digest()
    return "".join(SAFE_CHARACTERS[byte % len(SAFE_CHARACTERS)] for byte in digest[:10])


async def adopt(
    client: ObjectClient, resource: str, group: str, obj: Object, owner: Object, finalizer: str = ""
) -> Object | None:
    def edit(current: Object) -> Object | None:
        if controller_of(current) is not None or "deletionTimestamp" in current["metadata"]:
            return None
        current["metadata"].setdefault("ownerReferences", []).append(owner_reference(owner))
        if finalizer and finalizer not in current["metadata"].setdefault("finalizers", []):
            current["metadata"]["finalizers"].append(finalizer)
        return current

    metadata = obj["metadata"]
    return await client.update(resource, metadata["name"], metadata["namespace"], edit, group=group)


async def _release(
    client: ObjectClient, resource: str, group: str, obj: Object, uid: str, finalizer: str = ""
) -> None:
    def edit(current: Object) -> Object:
        kept = [r for r in current["metadata"].get("ownerReferences") or () if r.get("uid") != uid]
        current["metadata"]["ownerReferences"] = kept
        if not kept:
            del current["metadata"]["ownerReferences"]
        if finalizer in (current["metadata"].get("finalizers") or ()):
            current["metadata"]["finalizers"].remove(finalizer)
            if not current["metadata"]["finalizers"]:
                del current["metadata"]["finalizers"]
        return current

    metadata = obj["metadata"]
    await client.update(resource, metadata["name"], metadata["namespace"], edit, group=group)


async def delete(client: ObjectClient, obj: Object, resource: str = "pods", *, group: str = "") -> None:
    metadata = obj["metadata"]
    try:
        await client.delete(
            resource,
            metadata["name"],
            metadata.get("namespace", ""),
            group=group,
            propagationPolicy="Background",
            preconditions={"uid": metadata["uid"]},
        )
    except APIError as error:
        if error.code not in (404, 409):
            raise


def available_in(pod: Object, least: int, now: float) -> float | None:
    """Seconds until a pod has been ready for `least` seconds; 0 if it has, None if it is not ready."""
    if not pod_ready(pod):
        return None
    if not least:
        return 0.0
    condition = find(pod["status"].get("conditions"), "Ready") or {}
    since = condition.get("lastTransitionTime")
    return max(parse_time(since) + least - now, 0.0) if since else 0.0


def is_namespace_terminating(error: APIError) -> bool:
    causes = (error.details or {}).get("causes") or ()
    return any(cause.get("reason") == "NamespaceTerminating" for cause in causes)


async def slow_start(count: int, step: Callable[[int], Awaitable[object]]) -> None:
    """Calls `step` with the numbers below `count`, in concurrent batches of 1, 2, 4 and at most AT_ONCE. A failure ends
    the batches. The first error is raised after its batch has ended."""
    done, size = 0, 1
    while done < count:
        batch = range(done, min(done + size, count))
        results = await asyncio.gather(*(step(number) for number in batch), return_exceptions=True)
        for result in results:
            if isinstance(result, BaseException):
                raise result
        done, size = batch.stop, min(size * 2, AT_ONCE)


AT_ONCE = 8
"""Writes that one controller begins in one turn of the event loop. More would delay requests of clients."""


class PodOwnerLoop(Loop):
    """Controller of objects that manage pods (or ReplicaSets) by a selector."""

    resource: str
    group: str = "apps"
    managed: str = "pods"
    managed_group: str = ""
    finalizer: str = ""
    """Finalizer that adopted objects get and released ones lose."""
    workers = 16

    def __init__(self, client: ObjectClient) -> None:
        super().__init__(client)
        self._written: dict[tuple[str, str], tuple[Object, Object]] = {}
        """Status and annotations that this controller wrote last, by namespace and name."""
        self.index = OwnedIndex(self.client.resource(self.resource, self.group).kind, self.client.parsed)

    def follow(self) -> None:
        self.watch(self.resource, self._manager_changed, group=self.group)
        self.watch(self.managed, self._managed_changed, group=self.managed_group)

    def _manager_changed(self, change: Change) -> None:
        """Queues the object unless the change is a status that this controller wrote itself."""
        entry = entry_of(change)
        if change.new is None:
            self._written.pop((entry.namespace, entry.name), None)
        elif change.old is not None and (written := self._written.get((entry.namespace, entry.name))):
            new = change.new.object()
            before, after = change.old.object()["metadata"], new["metadata"]
            status, annotations = written
            own = status == new.get("status") and annotations == (after.get("annotations") or {})
            if own and all(before.get(part) == after.get(part) for part in WANTED):
                return
        self.enqueue(change)

    def _managed_changed(self, change: Change) -> None:
        """Queues the controllers of the object before and after the change. An orphan queues all objects with a
        matching selector."""
        entry = entry_of(change)
        before, after = self.index.apply(change)
        for owner in {before, after}:
            if owner is not None and owner is not ORPHAN:
                collection = self.client.collection(self.managed, group=self.managed_group)
                self.enqueue_soon((entry.namespace, owner.name), collection)
        if after is ORPHAN and (
            before is not ORPHAN or change.old is None or change.old.labels != entry.labels
        ):
            for manager in self.client.labelled(self.resource, entry.namespace, group=self.group):
                if self.selector(self.client.parsed(manager)).matches(entry.labels):
                    self.queue.add((entry.namespace, manager.name))

    def find(self, key: tuple[str, str]) -> Object | None:
        namespace, name = key
        return self.client.get(self.resource, name, namespace, group=self.group)

    def selector(self, owner: Object) -> LabelSelector:
        """Selector of an owner. An empty selector matches nothing."""
        selector = label_selector(owner["spec"].get("selector") or {})
        return NOTHING if selector.empty else selector

    def may_claim(self, owner: Object, obj: Object) -> bool:
        """Whether the controller is responsible for an object that its selector matches."""
        return True

    async def claim(self, owner: Object) -> list[Object]:
        """Objects that an owner controls and its selector matches. Orphans that match are adopted; controlled
        objects that no longer match are released. The objects are shared and must not be changed."""
        namespace, uid = owner["metadata"]["namespace"], owner["metadata"]["uid"]
        selector = self.selector(owner)
        terminating = "deletionTimestamp" in owner["metadata"]
        mine = []
        for entry in self.index.owned(uid):
            obj = self.client.parsed(entry)
            if not self.may_claim(owner, obj):
                continue
            if selector.matches(entry.labels):
                mine.append(obj)
            elif not terminating:
                await _release(self.client, self.managed, self.managed_group, obj, uid, self.finalizer)
        if terminating:
            return mine
        for entry in self.index.orphans(namespace):
            if not selector.matches(entry.labels) or DELETED in entry.tail:
                continue
            if self.may_claim(owner, obj := self.client.parsed(entry)):
                adopted = await adopt(
                    self.client, self.managed, self.managed_group, obj, owner, self.finalizer
                )
                if adopted is not None:
                    mine.append(adopted)
        return mine

    async def create_pod(self, owner: Object, pod: Object) -> None:
        """Creates a pod and records an Event. Nothing happens in a namespace that is being deleted."""
        try:
            made = await self.client.create("pods", pod, owner["metadata"]["namespace"])
        except APIError as error:
            if is_namespace_terminating(error):
                return
            self.events.emit(owner, "Warning", "FailedCreate", f"Error creating: {error}")
            raise
        self.events.emit(owner, "Normal", "SuccessfulCreate", f"Created pod: {made['metadata']['name']}")

    async def delete_pod(self, owner: Object, pod: Object) -> None:
        """Deletes a pod and records an Event."""
        try:
            await delete(self.client, pod)
        except APIError as error:
            self.events.emit(owner, "Warning", "FailedDelete", f"Error deleting: {error}")
            raise
        self.events.emit(owner, "Normal", "SuccessfulDelete", f"Deleted pod: {pod['metadata']['name']}")

    def check_later(self, key: tuple[str, str], pods: list[Object], least: int, counted: float) -> None:
        """Queues the key for the time at which the next ready pod becomes available. `counted` is the time at which
        pods were counted; the clock may have been moved since."""
        if not least:
            return
        waits = [wait for pod in pods if (wait := available_in(pod, least, counted))]
        if waits:
            self.queue.add_after(key, max(counted + min(waits) - self.clock.now(), 0.0) + 0.01)

    async def write_status(self, obj: Object, status: Object, annotations: Object | None = None) -> None:
        """Writes the status, and annotations if given, unless they are the same. If the object has changed since it
        was read, nothing is written and the object is queued again."""
        metadata = obj["metadata"]
        key = (metadata["namespace"], metadata["name"])
        new_status = {name: value for name, value in status.items() if value not in (None, [], {})}
        held_annotations = metadata.get("annotations") or {}
        new_annotations = held_annotations if annotations is None else annotations
        if new_status == obj.get("status") and new_annotations == held_annotations:
            return

        def edit(current: Object) -> Object | None:
            if current["metadata"]["resourceVersion"] != metadata["resourceVersion"]:
                self.queue.add(key)
                return None
            current["status"] = dict(new_status)
            if new_annotations:
                current["metadata"]["annotations"] = dict(new_annotations)
            return current

        self._written[key] = (new_status, new_annotations)
        await self.client.update(self.resource, key[1], key[0], edit, group=self.group, subresource="status")


# Index of managed objects by the UID of their controller, and of orphans by namespace

OWNERS = b'"ownerReferences":['


class Owner(NamedTuple):
    """Controller of an object, from its ownerReference. Orphans have an empty name."""

    uid: str
    name: str


ORPHAN = Owner("", "")


class OwnedIndex:
    """Objects of one resource that controllers of one kind own, and objects without any controller."""

    def __init__(self, kind: str, parse: Callable[[Entry], Object]) -> None:
        self._kind = kind
        self._parse = parse
        self._owners: dict[str, Owner] = {}
        """Owner of every indexed object, by the key of the object."""
        self._owned: dict[str, dict[str, Entry]] = {}
        """By the UID of the owner."""
        self._orphans: dict[str, dict[str, Entry]] = {}
        """By namespace."""

    def apply(self, change: Change) -> tuple[Owner | None, Owner | None]:
        """Records a change. Returns the owner before and after it; None for an object that is not indexed."""
        entry = entry_of(change)
        before = self._owners.pop(entry.key, None)
        if before is not None:
            group = self._group(before, entry.namespace)
            group.pop(entry.key, None)
            if not group:
                (self._owned if before.uid else self._orphans).pop(before.uid or entry.namespace, None)
        after = self._owner(change.new) if change.new is not None else None
        if after is not None:
            self._owners[entry.key] = after
            self._group(after, entry.namespace)[entry.key] = entry
        return before, after

    def owned(self, uid: str) -> Iterable[Entry]:
        return list(self._owned.get(uid, {}).values())

    def orphans(self, namespace: str) -> Iterable[Entry]:
        return list(self._orphans.get(namespace, {}).values())

    def _group(self, owner: Owner, namespace: str) -> dict[str, Entry]:
        if owner.uid:
            return self._owned.setdefault(owner.uid, {})
        return self._orphans.setdefault(namespace, {})

    def _owner(self, entry: Entry) -> Owner | None:
        reference = controller_of(self._parse(entry)) if OWNERS in entry.tail else None
        if reference is None:
            return ORPHAN
        if reference.get("kind") != self._kind:
            return None
        return Owner(reference.get("uid", ""), reference.get("name", ""))
