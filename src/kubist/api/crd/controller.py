"""CRD controllers of the API server: they accept names, establish CRDs, serve and withdraw their resources,
and delete the custom resources before their CRD.

They follow the collection of CRDs. Writes are compare-and-swap, so several servers may run them at once.
"""

from __future__ import annotations

import asyncio
import contextlib
import logging
from collections.abc import Callable, Iterable, Mapping
from typing import TYPE_CHECKING, Any, Protocol

from kubist.api.crd import definition, naming
from kubist.api.object_store.registry import Registry
from kubist.api.resources.context import Objects
from kubist.model.meta import status, times
from kubist.model.meta.object import Object
from kubist.model.patch.apply import own_status
from kubist.storage.cache.cache import Change, Collection

if TYPE_CHECKING:
    from kubist.api.crd.served import Served

log = logging.getLogger("kubist.crd")

INSTANCE_CHECK_SECONDS = 5.0
RETRY_SECONDS = 0.2


class Watcher(Protocol):
    """An open watch."""

    def end(self) -> None: ...


class Summary:
    """Parts of a CRD that the controllers keep in memory for every CRD."""

    __slots__ = ("group", "names", "versions")

    def __init__(self, crd: Object) -> None:
        self.group: str = crd["spec"]["group"]
        self.names: Object = (crd.get("status") or {}).get("acceptedNames") or {}
        served = {version["name"] for version in definition.versions(crd) if version.get("served")}
        self.versions: set[str] = served if definition.established(crd) else set()


class CRDController:
    """Controller of all CRDs that this server serves."""

    def __init__(
        self,
        registry: Registry,
        objects: Objects,
        watchers: Mapping[str, Iterable[Watcher]],
        *,
        chores: bool,
    ) -> None:
        """`watchers`: open watches by key prefix. `chores`: whether this process does the writes that only one process
        of a server does."""
        self.registry = registry
        self._resources = registry.resources
        self._objects = objects
        self._watchers = watchers
        self._does_chores = chores
        self.served: dict[str, Served] = {}
        self._due: asyncio.Queue[str] = asyncio.Queue()
        self._queued: set[str] = set()
        self._tasks: set[asyncio.Task[None]] = set()
        self._cleaning: set[str] = set()
        self._running = False
        self._apiservices = APIServices(objects, self._served_versions, chores=chores)
        self._summaries: dict[str, Summary] = {}
        self._resource = registry.resources.get(definition.GROUP, "v1", definition.PLURAL)

    @property
    def _collection(self) -> Collection:
        assert self._resource is not None
        return self.registry.collection(self._resource)

    async def start(self) -> None:
        """Serves the existing CRDs, then follows changes."""
        collection = self._collection
        await collection.ready()
        for entry in collection.entries.values():
            self._note(entry.object())
        await asyncio.gather(*(self._load(served) for served in list(self.served.values())))
        collection.subscribe(self, self._changed)
        self._running = True
        for entry in collection.entries.values():
            self._enqueue(entry.name)
        self._spawn(self._work())

    async def stop(self) -> None:
        self._collection.unsubscribe(self)
        for task in list(self._tasks):
            task.cancel()
        await asyncio.gather(*self._tasks, return_exceptions=True)

    def _spawn(self, work: Any) -> None:
        task = asyncio.ensure_future(work)
        self._tasks.add(task)
        task.add_done_callback(self._tasks.discard)

    def _changed(self, changes: list[Change]) -> None:
        for change in changes:
            entry = change.new or change.old
            assert entry is not None
            if change.new is not None:
                self._note(change.new.object())
                self._enqueue(entry.name)
                continue
            self._unserve(entry.name)
            gone = self._summaries.pop(entry.name, None)
            if gone is not None:
                self._apiservices.due(gone.group)
                for name in self._peers(gone.group):
                    self._enqueue(name)

    def _note(self, crd: Object) -> None:
        self._summaries[crd["metadata"]["name"]] = Summary(crd)
        self._serve(crd)

    def _peers(self, group: str) -> list[str]:
        return [name for name, summary in self._summaries.items() if summary.group == group]

    def _served_versions(self, group: str) -> set[str]:
        """Versions of a group that established CRDs serve."""
        versions: set[str] = set()
        for name in self._peers(group):
            versions |= self._summaries[name].versions
        return versions

    def _enqueue(self, name: str) -> None:
        if name not in self._queued and self._does_chores:
            self._queued.add(name)
            self._due.put_nowait(name)

    async def _work(self) -> None:
        while True:
            name = await self._due.get()
            self._queued.discard(name)
            try:
                await self._sync(name)
            except asyncio.CancelledError:
                raise
            except Exception as error:
                if not isinstance(error, status.APIError):
                    log.exception("CRD %s: sync failed, will retry", name)
                asyncio.get_running_loop().call_later(RETRY_SECONDS, self._enqueue, name)

    async def _sync(self, name: str) -> None:
        """Runs the first step with something to write. The write triggers the next step. If no step writes, updates the
        APIServices and, for a terminating CRD, starts to delete its custom resources."""
        assert self._resource is not None
        entry = self._collection.get(self._resource.key("", name))
        if entry is None:
            return
        crd = entry.object()
        group = crd["spec"]["group"]
        peers = [other for other in self._peers(group) if other != name]
        taken = [self._summaries[other].names for other in peers]
        for step in (naming.conform, naming.accept_names, naming.establish):
            changed = step(crd, taken)
            if changed is not None:
                self._own(changed, entry.object())
                with contextlib.suppress(status.APIError):
                    written = await self.registry.replace(self._resource, entry, changed)
                    if written is not None and step is naming.accept_names:
                        for peer in peers:
                            self._enqueue(peer)
                return
        self._apiservices.due(group)
        has_finalizer = definition.FINALIZER in (crd["metadata"].get("finalizers") or ())
        if "deletionTimestamp" in crd["metadata"] and has_finalizer and name not in self._cleaning:
            self._cleaning.add(name)
            self._spawn(self._clean(name))

    def _own(self, new: Object, old: Object) -> None:
        """Records the API server as field manager of the status that it wrote."""
        assert self._resource is not None
        own_status(self._resource.schema, old, new, api_version=self._resource.api_version, now=times.now())

    def _serve(self, crd: Object) -> None:
        """Adds, replaces or removes the resources of a CRD."""
        name = crd["metadata"]["name"]
        known = self.served.get(name)
        accepted = definition.is_true(crd, "NamesAccepted") or definition.established(crd)
        if not accepted:
            if known is not None:
                self._unserve(name)
            return
        # Saves start-up time: a server without CRDs does not load the code that serves custom resources.
        from kubist.api.crd.served import Served, identity
        from kubist.api.crd.webhook import webhook_of

        if known is not None and known.identity == identity(crd):
            return
        try:
            served = Served(crd, webhook_of(crd, self._objects), self._since(crd, known))
        except Exception:
            log.exception("CRD %s cannot be served", name)
            return
        same_store = known is not None and known.prefix == served.prefix
        if known is not None:
            self._withdraw(known, keep_watches=_only_terminating(known, served))
        for resource in served.resources:
            self._resources.add(resource)
        if known is not None and same_store and _only_terminating(known, served):
            self.registry.adopt(served.prefix, known.kind)
        else:
            self.registry.adopt(served.prefix, served.kind)
        self.served[name] = served
        self._spawn(self._load(served))

    def _since(self, crd: Object, known: Served | None) -> int:
        if known is not None and known.uid == crd["metadata"].get("uid"):
            return known.since
        return int(crd["metadata"]["resourceVersion"]) if self._running else 0

    async def _load(self, served: Served) -> None:
        if served.resources:
            with contextlib.suppress(Exception):
                await self.registry.collection(served.resources[0]).ready()

    def _unserve(self, name: str) -> None:
        known = self.served.pop(name, None)
        if known is not None:
            self._withdraw(known, keep_watches=False)

    def _withdraw(self, served: Served, *, keep_watches: bool) -> None:
        for resource in served.resources:
            self._resources.remove(resource.group, resource.version, resource.resource)
        if keep_watches:
            return
        self.registry.release(served.prefix)
        for watcher in list(self._watchers.get(served.prefix, ())):
            watcher.end()

    async def _clean(self, name: str) -> None:
        """Deletes the custom resources of a CRD, then removes its finalizer."""
        try:
            await self._write(
                name, "True", "InstanceDeletionInProgress", "CustomResource deletion is in progress"
            )
            reason, message = "NeverEstablished", "resource was never established"
            served = self.served.get(name)
            if served is not None and definition.established(served.crd):
                await self._remove_instances(served)
                reason, message = "InstanceDeletionCompleted", "removed all instances"
            await self._write(name, "False", reason, message, done=True)
        except status.APIError as error:
            if error.code != 404:
                log.warning("CRD %s: deleting its objects failed, will retry: %s", name, error)
                asyncio.get_running_loop().call_later(RETRY_SECONDS, self._enqueue, name)
        finally:
            self._cleaning.discard(name)

    async def _write(self, name: str, state: str, reason: str, message: str, *, done: bool = False) -> None:
        """Writes the Terminating condition. With `done`, removes the finalizer, and deletes the CRD if no other
        finalizer is left."""
        resource = self._resource
        assert resource is not None
        entry = await self.registry.read(resource, "", name)
        while entry is not None:
            crd = entry.object()
            definition.set_condition(crd, "Terminating", state, reason, message, times.now())
            self._own(crd, entry.object())
            finalizers = crd["metadata"].get("finalizers") or []
            if done:
                finalizers = [finalizer for finalizer in finalizers if finalizer != definition.FINALIZER]
                crd["metadata"]["finalizers"] = finalizers
            if finalizers:
                written = await self.registry.replace(resource, entry, crd) is not None
            else:
                written = await self.registry.remove(entry) is not None
            if written:
                return
            entry = await self.registry.refresh(resource, entry.key)

    async def _remove_instances(self, served: Served) -> None:
        """Deletes every custom resource, and waits until those with finalizers are deleted too."""
        if not served.resources:
            return
        resource = served.resources[0]
        while True:
            collection = self.registry.collection(resource)
            await collection.ready()
            for entry in list(collection.entries.values()):
                with contextlib.suppress(status.APIError):
                    await self._objects.delete(
                        resource.resource, entry.name, entry.namespace, group=resource.group
                    )
            await self.registry.cache.wait(await self.registry.store.revision())
            if not collection.entries:
                return
            changed = asyncio.Event()
            collection.subscribe(changed, lambda _changes, changed=changed: changed.set())  # type: ignore[misc]
            with contextlib.suppress(TimeoutError):
                await asyncio.wait_for(changed.wait(), INSTANCE_CHECK_SECONDS)
            collection.unsubscribe(changed)


def _only_terminating(known: Served, served: Served) -> bool:
    return known.identity[:3] == served.identity[:3]


_GROUP = "apiregistration.k8s.io"
_AUTOMANAGED = "kube-aggregator.kubernetes.io/automanaged"


class APIServices:
    """Keeps the automanaged APIServices of groups up to date, one group at a time. Only a process with
    `chores` writes."""

    def __init__(self, objects: Objects, versions: Callable[[str], set[str]], *, chores: bool) -> None:
        self._objects = objects
        self._does_chores = chores
        self._versions = versions
        self._due: set[str] = set()
        self._task: asyncio.Task[None] | None = None

    def due(self, group: str) -> None:
        if not self._does_chores:
            return
        self._due.add(group)
        if self._task is None or self._task.done():
            self._task = asyncio.ensure_future(self._work())

    async def _work(self) -> None:
        while self._due:
            with contextlib.suppress(status.APIError):
                await self._sync(self._due.pop())

    async def _sync(self, group: str) -> None:
        versions = self._versions(group)
        api_services = {
            obj["spec"]["version"]: obj
            for obj in self._objects.list("apiservices", None, group=_GROUP)
            if obj["spec"].get("group") == group
        }
        for version in versions - api_services.keys():
            with contextlib.suppress(status.APIError):
                await self._objects.create("apiservices", _apiservice(group, version), group=_GROUP)
        for version in api_services.keys() - versions:
            labels = api_services[version]["metadata"].get("labels") or {}
            if labels.get(_AUTOMANAGED) == "true":
                with contextlib.suppress(status.APIError):
                    await self._objects.delete("apiservices", f"{version}.{group}", group=_GROUP)


def _apiservice(group: str, version: str) -> Object:
    return {
        "metadata": {"name": f"{version}.{group}", "labels": {_AUTOMANAGED: "true"}},
        "spec": {"group": group, "version": version, "groupPriorityMinimum": 1000, "versionPriority": 100},
        "status": {},
    }
