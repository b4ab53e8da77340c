"""Service account controller: creates the service account `default` in every namespace, and again after a deletion."""

from __future__ import annotations

from kubist.cluster.control.loop import Loop, entry_of
from kubist.model.meta.status import APIError
from kubist.storage.cache.cache import Change

NAME = "default"


class ServiceAccounts(Loop):
    name = "serviceaccount"

    def follow(self) -> None:
        self.watch("namespaces", self._namespace_changed)
        self.watch("serviceaccounts", self._account_changed)

    def _namespace_changed(self, change: Change) -> None:
        if change.new is not None:
            self.queue.add(change.new.name)

    def _account_changed(self, change: Change) -> None:
        entry = entry_of(change)
        if change.new is None and entry.name == NAME:
            self.queue.add(entry.namespace)

    async def reconcile(self, key: str) -> None:
        namespace = self.client.get("namespaces", key)
        if namespace is None or "deletionTimestamp" in namespace["metadata"]:
            return
        if self.client.get("serviceaccounts", NAME, key) is None:
            try:
                await self.client.create("serviceaccounts", {"metadata": {"name": NAME}}, key)
            except APIError as error:
                if error.reason not in ("AlreadyExists", "NotFound"):
                    raise
