"""Stale reads: get, list and the start of a watch from an older resource version, as a lagging cache serves them."""

from __future__ import annotations

from typing import Any

from kubist.api.object_store.registry import Registry
from kubist.api.resources.context import Context
from kubist.api.resources.resource import Resource
from kubist.api.verbs.resource_request import ResourceRequest
from kubist.api.verbs.watch import Watcher
from kubist.base.http.messages import Stream, StreamWriter
from kubist.model.meta import status
from kubist.model.meta.numerals import unsigned
from kubist.storage.cache.cache import Change, Entry
from kubist.storage.store import Compacted, FutureRevision

READS = ("get", "list", "watch")


def applies(ctx: Context, version: int) -> bool:
    """Whether a read may be served from a version. A client that asks for a newer state, for the rest of a list, or
    for the changes since a version does not get older ones."""
    query = ctx.query
    if not isinstance(ctx, ResourceRequest) or ctx.info.verb not in READS:
        return False
    if query.get("continue") or query.get("resourceVersionMatch") == "Exact":
        return False
    query_version = unsigned(query.get("resourceVersion") or "0")
    if (
        ctx.info.verb == "watch"
        and (query.get("sendInitialEvents") or ("false" if query_version else "true")) == "false"
    ):
        return False
    return isinstance(query_version, int) and query_version <= version


def make_stale(ctx: ResourceRequest, version: int) -> None:
    """Makes the verb read the state at a version."""
    verb = ctx.info.verb
    if verb == "get":
        ctx.api = _OlderAPI(ctx.api, version)  # type: ignore[assignment]
        ctx.query = {name: value for name, value in ctx.query.items() if name != "resourceVersion"}
    elif verb == "list":
        ctx.query = {**ctx.query, "resourceVersion": str(version), "resourceVersionMatch": "Exact"}
    else:
        left_out = ("sendInitialEvents", "resourceVersionMatch")
        ctx.query = {name: value for name, value in ctx.query.items() if name not in left_out}
        ctx.query["resourceVersion"] = str(version)


class _OlderAPI:
    """The application, with a registry that reads an older state."""

    def __init__(self, api: Any, version: int) -> None:
        self._api = api
        self.registry = _OlderRegistry(api.registry, version)

    def __getattr__(self, name: str) -> Any:
        return getattr(self._api, name)


class _OlderRegistry:
    def __init__(self, registry: Registry, version: int) -> None:
        self._registry = registry
        self._version = version

    def __getattr__(self, name: str) -> Any:
        return getattr(self._registry, name)

    async def read(self, resource: Resource, namespace: str, name: str) -> Entry | None:
        collection = self._registry.collection(resource)
        await collection.ready()
        try:
            entries = await collection.past(self._version)
            return entries[resource.key(namespace, name)]
        except KeyError:
            return None
        except (Compacted, FutureRevision):
            raise status.gone("The resourceVersion for the provided list is too old.") from None


async def begin_with_state(stream: Stream, watcher: Watcher, version: int) -> None:
    """Lets a watch from a version start with the state at that version."""
    if watcher.error is not None:
        return
    try:
        entries = await watcher.collection.past(version)
    except (Compacted, FutureRevision):
        return
    watcher.past = [Change(version, None, entry) for _, entry in entries.items()] + watcher.past
    watcher.after = version - 1

    def start(writer: StreamWriter) -> None:
        watcher.start(writer)
        if watcher.bookmarks and not writer.closed:
            watcher.write_initial_events_end()

    stream.start = start
