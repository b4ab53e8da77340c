"""Work estimate: the seats that a request occupies at its priority level.

Lists, and watches that start with the current objects, occupy seats by the size of the objects. A write to an object
that many clients watch keeps seats for some milliseconds after its response, for the events.
"""

from __future__ import annotations

import math
import re
import time
from collections.abc import Mapping
from itertools import islice
from typing import TYPE_CHECKING

from kubist.api.filters.authorization.query import AuthorizationQuery
from kubist.base.caching import BoundedCache
from kubist.model import feature_gates

if TYPE_CHECKING:
    from kubist.api.object_store.registry import Registry
    from kubist.storage.cache.cache import Collection

WATCHES_PER_SEAT = 10
EVENT_SECONDS = 0.005
"""Seconds for which the events of a write occupy a seat, for each WATCHES_PER_SEAT watches."""
OBJECTS_PER_SEAT = 100
BYTES_PER_SEAT = 100_000
STREAMED_BYTES = 1_000_000
"""Maximum memory of a list from the cache, which is streamed."""
MOST_MUTATING_SEATS = 10
SAMPLE = 100
"""Number of objects whose mean size stands for the whole collection."""
SIZE_SECONDS = 60.0
"""Seconds for which a mean size is used."""
_INTEGER = re.compile(r"[+-]?[0-9]{1,18}")
WATCHED_NODE = "spec.nodeName"
_WatchKey = tuple[str, str, str, str]


class WatchTracker:
    """Numbers of open watches by group, resource, namespace and name."""

    def __init__(self) -> None:
        self._counts: dict[_WatchKey, int] = {}

    def register(self, request: AuthorizationQuery) -> _WatchKey | None:
        """Counts a watch. Watches of the pods of one node do not count, because they get few events."""
        if request.resource == "pods" and _required(request.field_selector, WATCHED_NODE):
            return None
        key = (request.group, request.resource, request.namespace, request.name)
        self._counts[key] = self._counts.get(key, 0) + 1
        return key

    def forget(self, key: _WatchKey) -> None:
        if self._counts[key] == 1:
            del self._counts[key]
        else:
            self._counts[key] -= 1

    def interested(self, request: AuthorizationQuery) -> int:
        """Number of watches that get the event of a write: watches of all objects, of the namespace and of the name."""
        counts = self._counts
        if not counts:
            return 0
        group, resource, namespace, name = request.group, request.resource, request.namespace, request.name
        count = counts.get((group, resource, "", ""), 0)
        if namespace:
            count += counts.get((group, resource, namespace, ""), 0)
        if name:
            count += counts.get((group, resource, namespace, name), 0)
        return count


def _required(selector: str, field: str) -> bool:
    """Whether a field selector requires a value of a field."""
    if field not in selector:
        return False
    for term in selector.split(","):
        label, separator, value = term.partition("=")
        if label.strip() == field and separator and value.removeprefix("="):
            return True
    return False


def final_seats(watches: int, most: int) -> tuple[int, float]:
    """Seats that a write occupies after its response, and for how many seconds. `most` is the level's maximum;
    0 is no maximum."""
    if watches < WATCHES_PER_SEAT:
        return 0, 0.0
    demand = math.ceil(watches / WATCHES_PER_SEAT)
    seats = min(demand, most or MOST_MUTATING_SEATS, MOST_MUTATING_SEATS)
    return seats, demand * EVENT_SECONDS / seats


class ListEstimator:
    """Seats of lists and watches."""

    def __init__(self, registry: Registry | None) -> None:
        self._registry = registry
        gates = registry.config.feature_gates if registry is not None else {}
        self._by_size = feature_gates.enabled(gates, "SizeBasedListCostEstimate")
        self._watch_list = feature_gates.enabled(gates, "WatchList")
        self._most = 100 if self._by_size else 10
        self._sizes: BoundedCache[str, tuple[float, int, int]] = BoundedCache(entries=4096, key_length=1024)
        """Mean size of the objects of a collection, with the time until which it is used and their number."""

    def seats(self, request: AuthorizationQuery, query: Mapping[str, str], most: int) -> int:
        """Seats of a list or watch. `most` is the level's maximum; 0 is no maximum."""
        count, size = self._stored(request)
        if count * size <= BYTES_PER_SEAT if self._by_size else 2 * count <= OBJECTS_PER_SEAT:
            return 1
        version = query.get("resourceVersion", "")
        if request.verb == "watch":
            if not self._watch_list:
                return 1
            begins = query.get("sendInitialEvents", "false").lower() not in ("false", "0")
            if not begins and version not in ("", "0"):
                return 1
        most = min(most or self._most, self._most)
        limit = 0
        for name in ("limit", "timeoutSeconds"):
            if text := query.get(name):
                if not _INTEGER.fullmatch(text):
                    return most
                limit = limit or (int(text) if name == "limit" else 0)
        cached = request.verb == "watch" or _from_cache(query, version, limit)
        selects = bool(query.get("fieldSelector") or query.get("labelSelector"))
        work = self._bytes if self._by_size else self._objects
        return max(1, min(most, work(request, count, size, limit, cached, selects)))

    def _stored(self, request: AuthorizationQuery) -> tuple[int, int]:
        """Number of stored objects of a resource, and their mean size in bytes. Both are 0 if it is not loaded."""
        registry = self._registry
        if registry is None or (stored := registry.resources.stored(request.group, request.resource)) is None:
            return 0, 0
        collection = registry.cache.collections.get(stored.prefix)
        if collection is None or not collection.entries:
            return 0, 0
        return len(collection.entries), self._mean_size(stored.prefix, collection)

    def _mean_size(self, prefix: str, collection: Collection) -> int:
        now, count = time.monotonic(), len(collection.entries)
        until, measured, mean = self._sizes.get(prefix) or (0.0, 0, 0)
        if now > until or not measured // 2 <= count <= measured * 2:
            sizes = [len(entry.tail) for entry in islice(collection.entries.values(), SAMPLE)]
            mean = sum(sizes) // len(sizes)
            self._sizes[prefix] = (now + SIZE_SECONDS, count, mean)
        return mean

    @staticmethod
    def _bytes(
        request: AuthorizationQuery, count: int, size: int, limit: int, cached: bool, selects: bool
    ) -> int:
        limited = limit if 0 < limit < count else count
        if request.name:
            loaded = 1
        elif selects and not cached:
            loaded = max(limited, count // 2)
        else:
            loaded = limited
        memory = loaded * size
        return math.ceil((min(memory, STREAMED_BYTES) if cached else memory) / BYTES_PER_SEAT)

    @staticmethod
    def _objects(
        request: AuthorizationQuery, count: int, _size: int, limit: int, cached: bool, selects: bool
    ) -> int:
        limited = limit if 0 < limit < count else count
        if request.name:
            processed = 1
        elif cached:
            processed = count
        else:
            processed = count + limited if selects else 2 * limited
        return math.ceil(processed / OBJECTS_PER_SEAT)


def _from_cache(query: Mapping[str, str], version: str, limit: int) -> bool:
    """Whether kube-apiserver serves a list from its watch cache. It serves other lists from its store."""
    match query.get("resourceVersionMatch", ""):
        case "NotOlderThan":
            return True
        case "":
            return not query.get("continue") and (limit <= 0 or version in ("", "0"))
    return False
