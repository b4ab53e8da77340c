"""Pods of workload controllers: creation from a template, lookup by owner, adoption and release by selector."""

from __future__ import annotations

import copy
import hashlib
import time

import orjson

from kubist.control.loop import Loop, controller_of, entry_of
from kubist.control.values import pod_ready
from kubist.meta.conditions import find
from kubist.meta.object import Object
from kubist.meta.selectors import label_selector
from kubist.meta.status import APIError
from kubist.meta.times import parse_time
from kubist.objectclient import ObjectClient
from kubist.storage.cache import Change

WANTED = ("generation", "deletionTimestamp", "finalizers", "annotations", "labels")
"""Metadata fields that trigger a reconcile. The generation stands for the spec."""
_LETTERS = "bcdfghjklmnpqrstvwxz2456789"


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
    """Pod from a template, controlled by `owner`; with a generated name if none is given."""
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


def template_hash(template: Object) -> str:
    """Short hash of a template for names and labels."""
    digest = hashlib.sha256(orjson.dumps(template, option=orjson.OPT_SORT_KEYS)).digest()
    return "".join(_LETTERS[byte % len(_LETTERS)] for byte in digest[:10])


async def claim(client: ObjectClient, resource: str, owner: Object, *, group: str = "") -> list[Object]:
    """Objects that an owner controls and its selector matches. Orphans that match are adopted; controlled
    objects that no longer match are released."""
    namespace, uid = owner["metadata"]["namespace"], owner["metadata"]["uid"]
    selector = label_selector(owner["spec"].get("selector") or {})
    terminating = "deletionTimestamp" in owner["metadata"]
    mine = []
    for entry in client.labelled(resource, namespace, group=group):
        matches = not selector.empty and selector.matches(entry.labels)
        if not matches and uid.encode() not in entry.tail:
            continue
        obj = client.parsed(entry)
        reference = controller_of(obj)
        if reference is not None:
            if reference.get("uid") == uid:
                if matches:
                    mine.append(obj)
                elif not terminating:
                    await _release(client, resource, group, obj, uid)
        elif matches and not terminating and "deletionTimestamp" not in obj["metadata"]:
            adopted = await _adopt(client, resource, group, obj, owner)
            if adopted is not None:
                mine.append(adopted)
    return mine


async def _adopt(
    client: ObjectClient, resource: str, group: str, obj: Object, owner: Object
) -> Object | None:
    def edit(held: Object) -> Object | None:
        if controller_of(held) is not None or "deletionTimestamp" in held["metadata"]:
            return None
        held["metadata"].setdefault("ownerReferences", []).append(owner_reference(owner))
        return held

    metadata = obj["metadata"]
    return await client.update(resource, metadata["name"], metadata["namespace"], edit, group=group)


async def _release(client: ObjectClient, resource: str, group: str, obj: Object, uid: str) -> None:
    def edit(held: Object) -> Object:
        kept = [r for r in held["metadata"].get("ownerReferences") or () if r.get("uid") != uid]
        held["metadata"]["ownerReferences"] = kept
        if not kept:
            del held["metadata"]["ownerReferences"]
        return held

    metadata = obj["metadata"]
    await client.update(resource, metadata["name"], metadata["namespace"], edit, group=group)


async def delete(client: ObjectClient, obj: Object, resource: str = "pods", *, group: str = "") -> None:
    metadata = obj["metadata"]
    try:
        await client.delete(
            resource,
            metadata["name"],
            metadata["namespace"],
            group=group,
            propagationPolicy="Background",
            preconditions={"uid": metadata["uid"]},
        )
    except APIError as error:
        if error.code not in (404, 409):
            raise


def available_in(pod: Object, least: int) -> float | None:
    """Seconds until a pod has been ready for `least` seconds; 0 if it has, None if it is not ready."""
    if not pod_ready(pod):
        return None
    if not least:
        return 0.0
    condition = find(pod["status"].get("conditions"), "Ready") or {}
    since = condition.get("lastTransitionTime")
    return max(parse_time(since) + least - time.time(), 0.0) if since else 0.0


class PodOwnerLoop(Loop):
    """Controller of objects that manage pods (or ReplicaSets) by a selector."""

    resource: str
    group: str = "apps"
    managed: str = "pods"
    managed_group: str = ""
    workers = 4

    def __init__(self, client: ObjectClient) -> None:
        super().__init__(client)
        self._written: dict[tuple[str, str], Object] = {}
        """Status that this controller wrote last, by namespace and name."""

    def follow(self) -> None:
        self.watch(self.resource, self._manager_changed, group=self.group)
        self.watch(self.managed, self._managed_changed, group=self.managed_group)

    def _manager_changed(self, change: Change) -> None:
        """Queues the object unless the change is a status that this controller wrote itself."""
        entry = entry_of(change)
        if change.new is None:
            self._written.pop((entry.namespace, entry.name), None)
        elif change.old is not None:
            new = change.new.object()
            before, after = change.old.object()["metadata"], new["metadata"]
            own = self._written.get((entry.namespace, entry.name)) == new.get("status")
            if own and all(before.get(part) == after.get(part) for part in WANTED):
                return
        self.enqueue(change)

    def _managed_changed(self, change: Change) -> None:
        """Queues the controller of the object, or without one all objects with a matching selector."""
        entry = entry_of(change)
        collection = self.client.collection(self.managed, group=self.managed_group)
        for version in (change.old, change.new):
            if version is None or b'"ownerReferences":[' not in version.tail:
                continue
            reference = controller_of(self.client.parsed(version))
            if (
                reference is not None
                and reference.get("kind") == self.client.resource(self.resource, self.group).kind
            ):
                self.enqueue_soon((entry.namespace, reference["name"]), collection)
                return
        if change.new is not None and controller_of(change.new.object()) is None:
            for manager in self.client.list(self.resource, entry.namespace, group=self.group):
                selector = label_selector(manager["spec"].get("selector") or {})
                if not selector.empty and selector.matches(entry.labels):
                    self.queue.add((entry.namespace, manager["metadata"]["name"]))

    def find(self, key: tuple[str, str]) -> Object | None:
        namespace, name = key
        return self.client.get(self.resource, name, namespace, group=self.group)

    async def write_status(self, obj: Object, status: Object) -> None:
        """Writes the status if it differs."""
        metadata = obj["metadata"]
        shown = {name: value for name, value in status.items() if value not in (None, [], {})}

        def edit(held: Object) -> Object | None:
            if held["metadata"]["uid"] != metadata["uid"]:
                return None
            held["status"] = dict(shown)
            return held

        if shown != obj.get("status"):
            self._written[metadata["namespace"], metadata["name"]] = shown
            await self.client.update(
                self.resource,
                metadata["name"],
                metadata["namespace"],
                edit,
                group=self.group,
                subresource="status",
            )
