"""Namespace controller: deletes the content of terminating namespaces, pods first, then removes the
finalizer.

While content remains (grace periods, finalizers, errors), the conditions of the namespace say why.
"""

from __future__ import annotations

import asyncio
from collections import Counter

from kubist.api.object_client import ObjectClient
from kubist.api.object_store.registry import stored
from kubist.api.resources.resource import Resource
from kubist.cluster.control.loop import Loop
from kubist.model.meta import times
from kubist.model.meta.object import Object
from kubist.model.meta.objectmeta import NAMESPACE_FINALIZER
from kubist.model.meta.status import APIError
from kubist.storage.cache.cache import Change, Collection, Entry

TOGETHER = 64
"""Number of concurrent deletions. They share store transactions."""
FINE = {
    "NamespaceDeletionDiscoveryFailure": ("ResourcesDiscovered", "All resources successfully discovered"),
    "NamespaceDeletionGroupVersionParsingFailure": (
        "ParsedGroupVersions",
        "All legacy kube types successfully parsed",
    ),
    "NamespaceDeletionContentFailure": (
        "ContentDeleted",
        "All content successfully deleted, may be waiting on finalization",
    ),
    "NamespaceContentRemaining": ("ContentRemoved", "All content successfully removed"),
    "NamespaceFinalizersRemaining": ("ContentHasNoFinalizers", "All content-preserving finalizers finished"),
}
"""Conditions of a terminating namespace: reason and message while there is no problem."""


class Namespaces(Loop):
    name = "namespace"
    workers = 4

    def __init__(self, client: ObjectClient) -> None:
        super().__init__(client)
        self._terminating: set[str] = set()

    def follow(self) -> None:
        self.watch("namespaces", self._namespace_changed)
        self.client.registry.cache.followers.add(self)

    async def stop(self) -> None:
        self.client.registry.cache.followers.discard(self)
        await super().stop()

    def _namespace_changed(self, change: Change) -> None:
        entry = change.new
        if entry is None:
            assert change.old is not None
            self._terminating.discard(change.old.name)
        elif b'"deletionTimestamp":"' in entry.tail:
            self._terminating.add(entry.name)
            self.queue.add(entry.name)

    def filled(self, collection: Collection) -> None:
        """Objects of a newly loaded collection may belong to a terminating namespace."""
        for name in self._terminating:
            self.queue.add(name)

    def changed(self, collection: Collection, changes: list[Change]) -> None:
        if not self._terminating:
            return
        for change in changes:
            entry = change.old or change.new
            if entry is not None and entry.namespace in self._terminating:
                self.queue.add(entry.namespace)

    async def reconcile(self, key: str) -> None:
        namespace = self.client.get("namespaces", key)
        if namespace is None or "deletionTimestamp" not in namespace["metadata"]:
            return
        if NAMESPACE_FINALIZER not in (namespace["spec"].get("finalizers") or ()):
            return
        left = Content()
        await self._delete(left, self.client.resource("pods"), key)
        if not left.resources:
            others = [resource for resource in self._kinds() if resource.resource != "pods" or resource.group]
            for resource in others:
                await self._delete(left, resource, key)
        await self._write_conditions(key, left)
        if left.errors:
            raise left.errors[0]
        if not left.resources:
            await self.client.update("namespaces", key, "", _finalize, subresource="finalize")

    def _kinds(self) -> list[Resource]:
        """All namespaced resources that can be deleted, each once in its stored version."""
        kinds = {}
        for resource in self.client.resources:
            home = resource.storage_version == resource.api_version
            if resource.namespaced and home and stored(resource) and "delete" in resource.verbs:
                kinds[resource.prefix] = resource
        return list(kinds.values())

    async def _delete(self, left: Content, resource: Resource, namespace: str) -> None:
        """Deletes all objects of a resource that do not only wait for finalizers, and counts the remaining ones."""
        collection = self.client.registry.collection(resource)
        await collection.ready()
        prefix = f"{resource.prefix}{namespace}/"
        try:
            self.client.registry.readable(collection, prefix)
        except APIError as error:
            left.errors.append(error)
            return
        entries = iter(list(collection.below(prefix)))

        async def work() -> None:
            for entry in entries:
                if _has_finalizers(entry):
                    left.count(resource, entry)
                    continue
                try:
                    survivor = await self.client.delete_entry(resource, entry, propagationPolicy="Background")
                except APIError as error:
                    left.errors.append(error)
                    survivor = entry
                if survivor is not None:
                    left.count(resource, survivor)

        await asyncio.gather(*(work() for _ in range(TOGETHER)))

    async def _write_conditions(self, name: str, left: Content) -> None:
        conditions = left.conditions()
        now = times.now()

        def edit(namespace: Object) -> Object:
            stored_conditions = namespace["status"].setdefault("conditions", [])
            by_type = {condition["type"]: condition for condition in stored_conditions}
            for new in conditions:
                condition = by_type.get(new["type"])
                if condition is None:
                    stored_conditions.append({"type": new["type"], "lastTransitionTime": now, **new})
                    continue
                if condition["status"] != new["status"]:
                    condition["lastTransitionTime"] = now
                condition.update(new)
            return namespace

        if left.resources or left.errors or self._shows_conditions(name):
            await self.client.update("namespaces", name, "", edit, subresource="status")

    def _shows_conditions(self, name: str) -> bool:
        """Whether a namespace without content has conditions: it had some before, or its own finalizers keep it. A
        namespace that is deleted in one pass needs none."""
        namespace = self.client.get("namespaces", name)
        if namespace is None:
            return False
        return bool(namespace["status"].get("conditions") or namespace["metadata"].get("finalizers"))


class Content:
    """Remaining content of a namespace after a pass."""

    def __init__(self) -> None:
        self.resources: Counter[str] = Counter()
        self.finalizers: Counter[str] = Counter()
        self.errors: list[APIError] = []

    def count(self, resource: Resource, entry: Entry) -> None:
        self.resources[f"{resource.resource}.{resource.group}"] += 1
        self.finalizers.update(entry.object()["metadata"].get("finalizers") or ())

    def conditions(self) -> list[Object]:
        said: dict[str, tuple[str, str]] = {}
        if self.errors:
            texts = ", ".join(sorted(str(error) for error in self.errors))
            message = f"Failed to delete all resource types, {len(self.errors)} remaining: {texts}"
            said["NamespaceDeletionContentFailure"] = ("ContentDeletionFailed", message)
        if self.resources:
            texts = ", ".join(
                sorted(f"{name} has {n} resource instances" for name, n in self.resources.items())
            )
            message = f"Some resources are remaining: {texts}"
            said["NamespaceContentRemaining"] = ("SomeResourcesRemain", message)
        if self.finalizers:
            texts = ", ".join(
                sorted(f"{name} in {n} resource instances" for name, n in self.finalizers.items())
            )
            message = f"Some content in the namespace has finalizers remaining: {texts}"
            said["NamespaceFinalizersRemaining"] = ("SomeFinalizersRemain", message)
        conditions = []
        for kind, fine in FINE.items():
            reason, message = said.get(kind, fine)
            status = "True" if kind in said else "False"
            conditions.append({"type": kind, "status": status, "reason": reason, "message": message})
        return conditions


def _has_finalizers(entry: Entry) -> bool:
    """Whether only finalizers keep an object, so that another deletion would change nothing."""
    if b'"deletionTimestamp":"' not in entry.tail or b'"finalizers":[' not in entry.tail:
        return False
    metadata = entry.object()["metadata"]
    return "deletionTimestamp" in metadata and not metadata.get("deletionGracePeriodSeconds")


def _finalize(namespace: Object) -> Object:
    others = [name for name in namespace["spec"].get("finalizers") or [] if name != NAMESPACE_FINALIZER]
    if others:
        namespace["spec"]["finalizers"] = others
    else:
        namespace["spec"].pop("finalizers", None)
    return namespace
