"""Resource quota controller: copies `spec.hard` to `status.hard` and counts `status.used` from the objects.

Admission charges creations and updates. This controller counts again after deletions and other changes.
"""

from __future__ import annotations

import time

from kubist.api.admission import amounts
from kubist.api.admission.amounts import Amounts
from kubist.api.admission.quota import Evaluator, evaluator_for
from kubist.api.object_client import ObjectClient
from kubist.api.object_store.registry import stored
from kubist.api.resources.resource import Resource
from kubist.cluster.control.indexes import NamesByNamespace
from kubist.cluster.control.loop import Loop, entry_of
from kubist.model.meta.object import Object
from kubist.model.meta.quantity import ZERO
from kubist.storage.cache.cache import Change, Collection

SETTLE_SECONDS = 0.05
"""Delay in seconds within which changes in a namespace are counted together."""
QUIET_SECONDS = 0.5
"""Seconds without a charge before usage is lowered, because an object that was just charged may not be visible yet."""


class ResourceQuotas(Loop):
    name = "resourcequota"

    def __init__(self, client: ObjectClient) -> None:
        super().__init__(client)
        self._quotas = NamesByNamespace()
        self._charged: dict[tuple[str, str], float] = {}
        """Monotonic time of the last change of a quota, by namespace and name."""

    def follow(self) -> None:
        self.watch("resourcequotas", self._quota_changed)
        self.client.registry.cache.followers.add(self)

    async def stop(self) -> None:
        self.client.registry.cache.followers.discard(self)
        await super().stop()

    def _quota_changed(self, change: Change) -> None:
        self._quotas.apply(change)
        entry = entry_of(change)
        key = (entry.namespace, entry.name)
        if change.new is not None:
            self._charged[key] = time.monotonic()
            self.queue.add(key)
        else:
            self._charged.pop(key, None)

    def filled(self, collection: Collection) -> None:
        """Does nothing: objects of a newly loaded collection are counted with the next change."""

    def changed(self, collection: Collection, changes: list[Change]) -> None:
        if not self._quotas or collection.kind.prefix == "/registry/resourcequotas/":
            return
        for change in changes:
            for key in self._quotas.keys(entry_of(change).namespace):
                self.queue.add_soon(key, SETTLE_SECONDS)

    async def reconcile(self, key: tuple[str, str]) -> None:
        namespace, name = key
        quota = self.client.get("resourcequotas", name, namespace)
        if quota is None:
            return
        hard = quota["spec"].get("hard") or {}
        probe = {**quota, "status": {"hard": hard}}
        used: Amounts = dict.fromkeys(hard, ZERO)
        for resource, evaluator in self._counted(hard):
            for obj in self.client.list(resource.resource, namespace, group=resource.group):
                if evaluator.matches(probe, obj):
                    amounts.add(used, amounts.mask(evaluator.usage(obj), hard))
        current = amounts.read((quota.get("status") or {}).get("used"))
        quiet = self._charged.get(key, 0.0) + QUIET_SECONDS - time.monotonic()
        if quiet > 0 and any(current.get(counted, ZERO) > amount for counted, amount in used.items()):
            used = {counted: max(current.get(counted, ZERO), amount) for counted, amount in used.items()}
            self.queue.add_soon(key, quiet)
        new_status = {"hard": hard, "used": amounts.write(used)} if hard else {}
        if quota.get("status") == new_status:
            return
        version = quota["metadata"]["resourceVersion"]

        def edit(current: Object) -> Object | None:
            if current["metadata"]["resourceVersion"] != version:
                self.queue.add(key)
                return None
            current["status"] = new_status
            return current

        await self.client.update("resourcequotas", name, namespace, edit, subresource="status")

    def _counted(self, hard: Object) -> list[tuple[Resource, Evaluator]]:
        """Resources with a usage that the quota limits, each with its evaluator."""
        counted = {}
        for resource in self.client.resources:
            if not resource.namespaced or not stored(resource):
                continue
            if resource.storage_version == resource.api_version:
                evaluator = evaluator_for(f"{resource.resource}.{resource.group}".rstrip("."))
                if evaluator.concerned(hard):
                    counted[resource.prefix] = (resource, evaluator)
        return list(counted.values())
