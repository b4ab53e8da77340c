"""Garbage collector: deletes objects without remaining owners, or orphans them, by the owner's
propagationPolicy.

Background deletion deletes dependents after their owners. The finalizer `foregroundDeletion` keeps an owner
until its blocking dependents are deleted. The finalizer `orphan` keeps it until no dependent refers to it.
"""

from __future__ import annotations

from collections import OrderedDict
from typing import NamedTuple

from kubist.api.object_client import ObjectClient
from kubist.api.resources.resource import Resource
from kubist.cluster.control import owners as ownership
from kubist.cluster.control.loop import Loop
from kubist.cluster.control.owners import Owners, Ref
from kubist.model.meta.object import Object
from kubist.model.meta.objectmeta import FOREGROUND_FINALIZER, ORPHAN_FINALIZER
from kubist.model.meta.status import APIError
from kubist.storage.cache.cache import Change, Collection, Entry

_FOREGROUND_JSON, _ORPHAN_JSON = (f'"{name}"'.encode() for name in (FOREGROUND_FINALIZER, ORPHAN_FINALIZER))
REMEMBERED = 5000
"""Maximum number of remembered UIDs of deleted owners, for references to kinds that are no longer served."""


class Links(NamedTuple):
    """Owner UIDs of an object: existing owners, missing owners, and owners that wait for it (foreground deletion)."""

    solid: list[str]
    dangling: list[str]
    waiting: list[str]


class GarbageCollector(Loop):
    name = "garbagecollector"
    workers = 20

    def __init__(self, client: ObjectClient) -> None:
        super().__init__(client)
        self.owners = Owners(self.client.parsed)
        self._gone: OrderedDict[str, None] = OrderedDict()
        self._resources: dict[str, Resource] = {}
        self._generation = -1
        self._foreground: dict[str, Ref] = {}
        """Owners in foreground deletion, by UID."""
        self._unresolved: set[Ref] = set()
        """Dependents with owners of kinds that are not served (yet)."""

    def follow(self) -> None:
        cache = self.client.registry.cache
        cache.followers.add(self)
        for collection in list(cache.collections.values()):
            if collection.loaded:
                self.filled(collection)

    async def stop(self) -> None:
        self.client.registry.cache.followers.discard(self)
        await super().stop()

    def filled(self, collection: Collection) -> None:
        prefix = collection.kind.prefix
        for ref in (*ownership.load(self.owners, collection), *self._unresolved):
            self.queue.add(ref)
        self._unresolved.clear()
        for entry in collection.entries.values():
            self._look_at_deletion(prefix, entry)

    def changed(self, collection: Collection, changes: list[Change]) -> None:
        prefix = collection.kind.prefix
        for change in changes:
            if change.new is not None:
                self._written(prefix, change.new)
            elif change.old is not None:
                self._removed(prefix, change, change.old)

    def _written(self, prefix: str, entry: Entry) -> None:
        before = self.owners.owned_by(prefix, entry.key)
        if self.owners.add(prefix, entry) and self.owners.owned_by(prefix, entry.key) != before:
            self.queue.add(Ref(prefix, entry.key))
        for uid in before:
            if uid in self._foreground:
                self.queue.add(self._foreground[uid])
        self._look_at_deletion(prefix, entry)

    def _removed(self, prefix: str, change: Change, entry: Entry) -> None:
        for uid in self.owners.owned_by(prefix, entry.key):
            if uid in self._foreground:
                self.queue.add(self._foreground[uid])
        self.owners.remove(prefix, entry.key)
        if not self.owners.may_own(entry):
            return
        uid = ownership.uid_of(change)
        self._foreground.pop(uid, None)
        self._gone[uid] = None
        if len(self._gone) > REMEMBERED:
            self._gone.popitem(last=False)
        for ref in self.owners.dependents(uid):
            self.queue.add(ref)

    def _look_at_deletion(self, prefix: str, entry: Entry) -> None:
        """Queues an owner that is being deleted with foreground or orphan policy, and its dependents."""
        tail = entry.tail
        if b'"deletionTimestamp":"' not in tail:
            return
        if _FOREGROUND_JSON in tail or _ORPHAN_JSON in tail:
            metadata = entry.object()["metadata"]
            ref = Ref(prefix, entry.key)
            if FOREGROUND_FINALIZER in (metadata.get("finalizers") or ()):
                self._foreground[metadata["uid"]] = ref
            self.queue.add(ref)
            for dependent in self.owners.dependents(metadata["uid"]):
                self.queue.add(dependent)

    async def reconcile(self, key: Ref) -> None:
        resource = self._resource(key.prefix)
        if resource is None:
            return
        collection = self.client.registry.collection(resource)
        await collection.ready()
        entry = collection.get(key.key)
        if entry is None:
            return
        obj = entry.object()
        metadata = obj["metadata"]
        if "deletionTimestamp" in metadata:
            finalizers = metadata.get("finalizers") or ()
            if ORPHAN_FINALIZER in finalizers:
                await self._orphan(resource, obj)
            elif FOREGROUND_FINALIZER in finalizers:
                await self._wait_for_dependents(resource, obj)
            return
        if metadata.get("ownerReferences"):
            await self._collect(resource, entry, obj)

    async def _collect(self, resource: Resource, entry: Entry, obj: Object) -> None:
        """Deletes an object without remaining owners, or removes its missing owners from ownerReferences."""
        metadata = obj["metadata"]
        links = await self._links(resource, obj)
        if links.solid:
            if links.dangling or links.waiting:
                await self._unlink(resource, obj, {*links.dangling, *links.waiting})
            return
        policy = "Background"
        finalizers = metadata.get("finalizers") or ()
        if links.waiting and self.owners.dependents(metadata["uid"]):
            policy = "Foreground"
            await self._break_cycle(metadata["uid"])
        elif ORPHAN_FINALIZER in finalizers:
            policy = "Orphan"
        elif FOREGROUND_FINALIZER in finalizers:
            policy = "Foreground"
        conditions = {"uid": metadata["uid"], "resourceVersion": metadata["resourceVersion"]}
        try:
            await self.client.delete_entry(
                resource, entry, propagationPolicy=policy, preconditions=conditions
            )
        except APIError as error:
            if error.code != 409:
                raise
            self.queue.add(Ref(resource.prefix, entry.key))

    async def _links(self, resource: Resource, obj: Object) -> Links:
        links = Links([], [], [])
        namespace = obj["metadata"].get("namespace", "")
        for reference in obj["metadata"]["ownerReferences"]:
            uid = reference.get("uid", "")
            if uid in self._gone:
                links.dangling.append(uid)
                continue
            group, _, version = reference.get("apiVersion", "").rpartition("/")
            kind = self.client.find_kind(group, version, reference.get("kind", ""))
            if kind is None or (kind.namespaced and not namespace):
                # It is unknown whether such an owner exists, so the object is kept.
                self._unresolved.add(Ref(resource.prefix, resource.key(namespace, obj["metadata"]["name"])))
                links.solid.append(uid)
                continue
            owner = await self.client.registry.read(
                kind, namespace if kind.namespaced else "", reference["name"]
            )
            meta = owner.object()["metadata"] if owner is not None else {}
            if meta.get("uid") != uid:
                links.dangling.append(uid)
            elif "deletionTimestamp" in meta and FOREGROUND_FINALIZER in (meta.get("finalizers") or ()):
                links.waiting.append(uid)
            else:
                links.solid.append(uid)
        return links

    async def _unlink(self, resource: Resource, obj: Object, uids: set[str]) -> None:
        """Removes ownerReferences from an object."""

        def edit(new: Object) -> Object | None:
            metadata = new["metadata"]
            if metadata.get("uid") != obj["metadata"]["uid"]:
                return None
            kept = [r for r in metadata.get("ownerReferences") or () if r.get("uid") not in uids]
            if kept:
                metadata["ownerReferences"] = kept
            else:
                metadata.pop("ownerReferences", None)
            return new

        metadata = obj["metadata"]
        await self.client.update_of(resource, metadata["name"], metadata.get("namespace", ""), edit)

    async def _break_cycle(self, uid: str) -> None:
        """Removes blockOwnerDeletion from dependents that wait for this object, because they would block each other."""
        for ref in self.owners.blocking(uid):
            dependent = self._object(ref)
            if dependent is None:
                continue
            resource, obj = dependent
            metadata = obj["metadata"]
            if "deletionTimestamp" not in metadata or FOREGROUND_FINALIZER not in (
                metadata.get("finalizers") or ()
            ):
                continue

            def edit(new: Object) -> Object:
                for reference in new["metadata"].get("ownerReferences") or ():
                    if reference.get("uid") == uid:
                        reference.pop("blockOwnerDeletion", None)
                return new

            await self.client.update_of(resource, metadata["name"], metadata.get("namespace", ""), edit)

    async def _wait_for_dependents(self, resource: Resource, obj: Object) -> None:
        uid = obj["metadata"]["uid"]
        blocking = self.owners.blocking(uid)
        if not blocking:
            await self._release(resource, obj, FOREGROUND_FINALIZER)
            return
        for ref in blocking:
            dependent = self._object(ref)
            if dependent is not None and "deletionTimestamp" not in dependent[1]["metadata"]:
                self.queue.add(ref)

    async def _orphan(self, resource: Resource, obj: Object) -> None:
        uid = obj["metadata"]["uid"]
        for ref in self.owners.dependents(uid):
            dependent = self._object(ref)
            if dependent is not None:
                await self._unlink(*dependent, {uid})
        await self._release(resource, obj, ORPHAN_FINALIZER)

    async def _release(self, resource: Resource, obj: Object, finalizer: str) -> None:
        """Removes the finalizer from an owner after its dependents were handled."""

        def edit(new: Object) -> Object | None:
            metadata = new["metadata"]
            if metadata.get("uid") != obj["metadata"]["uid"]:
                return None
            kept = [name for name in metadata.get("finalizers") or () if name != finalizer]
            if kept:
                metadata["finalizers"] = kept
            else:
                metadata.pop("finalizers", None)
            return new

        metadata = obj["metadata"]
        self._foreground.pop(metadata["uid"], None)
        await self.client.update_of(resource, metadata["name"], metadata.get("namespace", ""), edit)

    def _object(self, ref: Ref) -> tuple[Resource, Object] | None:
        resource = self._resource(ref.prefix)
        if resource is None:
            return None
        entry = self.client.registry.collection(resource).get(ref.key)
        return (resource, entry.object()) if entry is not None else None

    def _resource(self, prefix: str) -> Resource | None:
        """Resource of a collection in its stored version; None if it is no longer served."""
        served = self.client.resources
        if served.generation != self._generation:
            self._generation = served.generation
            self._resources = {resource.prefix: resource for resource in served}
            self._resources |= {r.prefix: r for r in served if r.storage_version == r.api_version}
        return self._resources.get(prefix)
