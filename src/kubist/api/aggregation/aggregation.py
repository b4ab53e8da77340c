"""All backends of one server: follows APIServices, checks backends, proxies requests, and extends discovery."""

from __future__ import annotations

import asyncio
import contextlib
import logging
from collections.abc import Callable
from typing import Any, NamedTuple

from kubist.api.aggregation.availability import (
    LOCAL,
    SERVICE_NAME,
    Finding,
    check_availability,
    condition,
    with_condition,
)
from kubist.api.aggregation.backend import Backend, backend_of
from kubist.api.aggregation.identity import Credentials
from kubist.api.aggregation.proxy import proxy
from kubist.api.config import Config
from kubist.api.object_store.registry import Registry
from kubist.api.request import RequestInfo
from kubist.api.resources.context import Objects, User
from kubist.base.http.messages import Answer, Request
from kubist.model.meta import status, times
from kubist.model.meta.api_versions import priority
from kubist.model.meta.object import Object
from kubist.model.patch.apply import own_status
from kubist.storage.cache.cache import Change
from kubist.storage.store import Unavailable

log = logging.getLogger("kubist.aggregation")

GROUP = "apiregistration.k8s.io"
PERIOD_SECONDS = 30.0
FIRST_RETRY_SECONDS = 0.5
HIGHEST_PRIORITY = 20_000
FOLLOWED = (("", "services"), ("discovery.k8s.io", "endpointslices"))


class Watched(NamedTuple):
    """A backend and its availability task."""

    backend: Backend
    wake: asyncio.Event
    task: asyncio.Task[None]


class Aggregation:
    """Controller and router of all APIServices with a service."""

    def __init__(self, config: Config, registry: Registry, objects: Objects, *, chores: bool) -> None:
        self._config = config
        self._registry = registry
        self._objects = objects
        self._writes_status = chores
        self._credentials = Credentials(config)
        self.backends: dict[tuple[str, str], Watched] = {}
        self._specs: dict[str, Object] = {}
        self._available: dict[str, bool] = {}
        self._documents: dict[str, Object] = {}
        self._chores: set[asyncio.Task[None]] = set()
        self.generation = 0
        """Increases when discovery changes."""
        resource = registry.resources.stored(GROUP, "apiservices")
        assert resource is not None
        self._resource = resource

    async def start(self) -> None:
        collection = self._registry.collection(self._resource)
        await collection.ready()
        for entry in collection.entries.values():
            self._note(entry.object())
        collection.subscribe(self, self._changed)
        for group, name in FOLLOWED:
            followed = self._registry.resources.stored(group, name)
            assert followed is not None
            self._registry.collection(followed).subscribe(self, self._service_changed)

    async def stop(self) -> None:
        self._registry.collection(self._resource).unsubscribe(self)
        for group, name in FOLLOWED:
            followed = self._registry.resources.stored(group, name)
            assert followed is not None
            self._registry.collection(followed).unsubscribe(self)
        tasks = [watched.task for watched in self.backends.values()] + list(self._chores)
        for task in tasks:
            task.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)
        self.backends.clear()

    def _changed(self, changes: list[Change]) -> None:
        for change in changes:
            if change.new is not None:
                self._note(change.new.object())
            elif change.old is not None:
                self._forget(change.old.object())

    def _note(self, obj: Object) -> None:
        name, spec = obj["metadata"]["name"], obj["spec"]
        known = self.backends.get((spec.get("group", ""), spec["version"]))
        backend = backend_of(obj)
        self._specs[name] = spec
        if backend is None:
            if known is not None:
                self._drop(known.backend)
            if condition(obj).get("reason") != LOCAL.reason:
                self._spawn(self._write(name, LOCAL))
            return
        available = condition(obj).get("status") == "True"
        if self._available.get(name) != available:
            self._available[name] = available
            self.generation += 1
        if known is not None and known.backend == backend:
            return
        if known is not None:
            self._drop(known.backend)
            self._available[name] = available
        wake = asyncio.Event()
        task = asyncio.ensure_future(self._keep_checking(backend, wake))
        self.backends[backend.group, backend.version] = Watched(backend, wake, task)
        self.generation += 1

    def _forget(self, obj: Object) -> None:
        self._specs.pop(obj["metadata"]["name"], None)
        backend = backend_of(obj)
        if backend is not None:
            self._drop(backend)

    def _drop(self, backend: Backend) -> None:
        watched = self.backends.pop((backend.group, backend.version), None)
        if watched is not None:
            watched.task.cancel()
        self._available.pop(backend.name, None)
        self._documents.pop(backend.name, None)
        self.generation += 1

    def _service_changed(self, changes: list[Change]) -> None:
        if not self.backends:
            return
        for change in changes:
            entry = change.new or change.old
            assert entry is not None
            labels = entry.object()["metadata"].get("labels") or {}
            about = (entry.namespace, entry.name), (entry.namespace, labels.get(SERVICE_NAME, ""))
            for watched in self.backends.values():
                if (watched.backend.namespace, watched.backend.service) in about:
                    watched.wake.set()

    def _spawn(self, work: Any) -> None:
        task = asyncio.ensure_future(work)
        self._chores.add(task)
        task.add_done_callback(self._chores.discard)

    async def _keep_checking(self, backend: Backend, wake: asyncio.Event) -> None:
        retry = FIRST_RETRY_SECONDS
        while True:
            wake.clear()
            finding = await check_availability(backend, self._objects, self._config)
            if finding.document is not None and finding.document != self._documents.get(backend.name):
                self._documents[backend.name] = finding.document
                self.generation += 1
            await self._write(backend.name, finding)
            failed = finding.reason == "FailedDiscoveryCheck"
            retry = min(retry * 2, PERIOD_SECONDS) if failed else FIRST_RETRY_SECONDS
            with contextlib.suppress(TimeoutError):
                await asyncio.wait_for(wake.wait(), retry if failed else PERIOD_SECONDS)

    async def _write(self, name: str, finding: Finding) -> None:
        """Writes the Available condition, with retries on conflicts. Only a process with `chores` writes."""
        if not self._writes_status:
            return
        resource = self._resource
        try:
            entry = await self._registry.read(resource, "", name)
            while entry is not None:
                obj = entry.object()
                old = entry.object()
                if not with_condition(obj, finding, times.now()):
                    return
                own_status(
                    resource.schema,
                    old,
                    obj,
                    api_version=resource.api_version,
                    now=times.now(),
                    reset_fields=("metadata", "spec"),
                )
                if await self._registry.replace(resource, entry, obj) is not None:
                    return
                entry = await self._registry.refresh(resource, entry.key)
        except (status.APIError, Unavailable) as error:
            log.warning("APIService %s: %s", name, error)

    def backend(self, path: str) -> Backend | None:
        """Backend of a path; None if this server serves it."""
        parts = path.split("/", 4)
        if len(parts) < 4 or parts[1] != "apis":
            return None
        entry = self.backends.get((parts[2], parts[3]))
        if entry is None or self._registry.resources.of(parts[2], parts[3]) is not None:
            return None
        return entry.backend

    async def answer(self, backend: Backend, request: Request, info: RequestInfo, user: User) -> Answer:
        available = self._available.get(backend.name, False)
        return await proxy(
            self._objects,
            self._config,
            backend,
            available,
            request,
            user,
            self._credentials,
            info.long_running,
        )

    def groups(self) -> list[str]:
        """Groups with at least one version of a backend."""
        return list(dict.fromkeys(group for group, _ in self.backends))

    def api_group(self, name: str) -> Object:
        return _api_group(name, self._registered(name))

    def _registered(self, group: str) -> list[Object]:
        return [spec for spec in self._specs.values() if spec.get("group", "") == group]

    def _priority(self, group: str) -> int:
        """groupPriorityMinimum of a group. Groups of this server without an APIService have the highest priority."""
        registered = self._registered(group)
        return max((spec.get("groupPriorityMinimum", 0) for spec in registered), default=HIGHEST_PRIORITY)

    def merge(self, items: dict[str, Object], make: Callable[[str], Object]) -> list[Object]:
        """Documents of all groups in order of priority: this server's `items` by name, and those that `make` returns
        for backends."""
        merged = [(name, item) for name, item in items.items() if name not in self.groups()]
        for name in self.groups():
            own = self._priority(name)
            places = (at for at, (other, _) in enumerate(merged) if self._priority(other) < own)
            merged.insert(next(places, len(merged)), (name, make(name)))
        return [item for _, item in merged]

    def version_discovery(self, group: str, version: str) -> Object | None:
        """Discovery entry of a backend's version, for aggregated discovery; None if no backend serves the version."""
        entry = self.backends.get((group, version))
        if entry is None:
            return None
        name = entry.backend.name
        current = self._available.get(name, False) and name in self._documents
        return _version_discovery(group, version, self._documents.get(name), current)


def _api_group(name: str, registered: list[Object]) -> Object:
    """APIGroup from the specs of its APIServices. Versions are sorted by versionPriority, then by version name."""
    ordered = sorted(
        registered, key=lambda spec: (-spec.get("versionPriority", 0), priority(spec["version"]))
    )
    versions = [{"groupVersion": f"{name}/{spec['version']}", "version": spec["version"]} for spec in ordered]
    return {"name": name, "versions": versions, "preferredVersion": versions[0]}


def _version_discovery(group: str, version: str, document: Object | None, current: bool) -> Object:
    """Entry of a version in aggregated discovery, from the last APIResourceList of its backend. Stale if not
    `current`."""
    resources: dict[str, Object] = {}
    subresources: list[tuple[str, Object]] = []
    for entry in (document or {}).get("resources") or ():
        name, _, sub = entry.get("name", "").partition("/")
        kind = {
            "group": entry.get("group") or group,
            "version": entry.get("version") or version,
            "kind": entry.get("kind", ""),
        }
        verbs = list(entry.get("verbs") or ())
        if sub:
            subresources.append((name, {"subresource": sub, "responseKind": kind, "verbs": verbs}))
            continue
        resources[name] = {
            "resource": name,
            "responseKind": kind,
            "scope": "Namespaced" if entry.get("namespaced") else "Cluster",
            "singularResource": entry.get("singularName", ""),
            "verbs": verbs,
            **{key: entry[key] for key in ("shortNames", "categories") if entry.get(key)},
        }
    for name, subresource in subresources:
        if name in resources:
            resources[name].setdefault("subresources", []).append(subresource)
    freshness = "Current" if current else "Stale"
    return {"version": version, "resources": list(resources.values()), "freshness": freshness}
