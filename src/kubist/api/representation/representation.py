"""Representation: turns stored versions into response bytes for one object, a list or a watch event.

The piece of a version is built once and cached with the version (`Entry.reps`), so lists and watches share it.
JSON is the stored form and needs no piece.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Iterable, Sequence
from time import perf_counter
from typing import TYPE_CHECKING, Any

import orjson

from kubist.api.representation.budget import EVENTS, KEPT
from kubist.base.offload import away
from kubist.base.turns import TURN, Turns
from kubist.model.meta.object import Object
from kubist.storage.cache.cache import Change, Entry

if TYPE_CHECKING:
    from kubist.api.resources.resource import Resource

ListMeta = dict[str, Any]
Chunks = list[bytes]

ITEMS = 2000
"""Maximum number of items of a list that one turn encodes."""
STATUS = ("v1", "Status")


class Representation:
    """One representation of the objects of one resource."""

    content_type = "application/json"
    stream_type = "application/json"
    length_bytes = 0
    """Size in bytes of the length prefix of each watch event."""
    watchable = True
    """Whether watches are supported. False: a watch ends before its first event."""
    itemized = False
    """Whether a list consists of fields and `items`, and `item` encodes each item."""

    def __init__(self, resource: Resource) -> None:
        self.resource = resource
        self.key: object = (type(self), resource.api_version)
        """Key of a version's piece in `Entry.reps`."""
        self.event_key: object = (type(self), resource)
        """Key of the shared events of a change."""
        self.stored = resource.custom or resource.api_version == resource.storage_version
        """Whether entries are in the requested version. Entries of custom resources are already converted."""

    def object(self, entry: Entry) -> bytes:
        """Response for one stored version."""
        raise AssertionError("subclasses implement object()")

    def value(self, obj: Object) -> bytes:
        """Response for an object that is not stored (dry run, subresource)."""
        raise AssertionError("subclasses implement value()")

    def list(self, entries: Sequence[Entry], meta: ListMeta) -> Chunks:
        """Response for a list, in chunks."""
        raise AssertionError("subclasses implement list()")

    def item(self, entry: Entry) -> bytes:
        """Stored version as item of a list."""
        raise AssertionError("itemized representations implement item()")

    def event(self, type: str, entry: Entry) -> bytes:
        """Watch event with its framing."""
        raise AssertionError("subclasses implement event() and event_value()")

    def event_value(self, type: str, obj: Object) -> bytes:
        """Watch event for an object that is not stored: a bookmark or an error."""
        raise AssertionError("subclasses implement event() and event_value()")

    def shared_event(self, type: str, change: Change, entry: Entry) -> bytes:
        """Same as `event`, built once for all watchers of this representation."""
        key = (self.event_key, type)
        event: bytes | None = change.encoded.get(key)
        if event is None:
            event = self.event(type, entry)
            EVENTS.keep(change.encoded, key, event, len(event))
        return event

    def for_watch(self) -> Representation:
        """Representation for one watch. It is a separate object if it must remember what it has sent."""
        return self

    async def whole_list(self, entries: Sequence[Entry], meta: ListMeta) -> Chunks:
        """Same as `list`, without blocking the event loop for long."""
        await self.prepare(entries)
        return self.list(entries, meta)

    async def whole_value(self, obj: Object) -> bytes | Chunks:
        """Same as `value`, without blocking the event loop for long."""
        return await away(bool(_long_lists(obj)), self.value, obj)

    async def prepare(self, entries: Iterable[Entry]) -> None:
        """Builds the pieces for a list or watch of these entries, in slices."""

    def converted(self, entry: Entry) -> Object:
        """Object in the requested version."""
        obj = entry.object()
        return obj if self.stored else self.resource.strategy.convert(obj, self.resource.api_version)


class Cached(Representation):
    """Representation with one cached piece per stored version."""

    def make(self, entry: Entry) -> tuple[Any, int]:
        """Piece of a version, and its size in bytes."""
        raise AssertionError("subclasses implement make()")

    def part(self, entry: Entry) -> Any:
        reps = entry.reps
        if reps is None:
            reps = entry.reps = {}
        part = reps.get(self.key)
        if part is None:
            part, size = self.make(entry)
            KEPT.keep(reps, self.key, part, size)
        return part

    def lacks(self, entry: Entry) -> bool:
        return entry.reps is None or self.key not in entry.reps

    def parts(self, entries: Sequence[Entry]) -> list[Any]:
        """Pieces of many versions. Most are cached."""
        key, piece = self.key, self.part
        return [
            piece(entry) if (reps := entry.reps) is None or (part := reps.get(key)) is None else part
            for entry in entries
        ]

    async def prepare(self, entries: Iterable[Entry]) -> None:
        await in_turns(self.part, [entry for entry in entries if self.lacks(entry)])


async def in_turns(make: Callable[[Entry], object], entries: Sequence[Entry]) -> None:
    """Calls `make` for each entry, and yields to other tasks every TURN seconds."""
    begun = perf_counter()
    for entry in entries:
        make(entry)
        if perf_counter() - begun > TURN:
            await asyncio.sleep(0)
            begun = perf_counter()


class Json(Cached):
    """Plain JSON: constants around the stored bytes."""

    itemized = True

    def __init__(self, resource: Resource) -> None:
        super().__init__(resource)
        kind, api_version = orjson.dumps(resource.kind), orjson.dumps(resource.api_version)
        self._head = b'{"kind":%b,"apiVersion":%b,' % (kind, api_version)
        self._item = b'{"apiVersion":%b,"kind":%b,' % (api_version, kind) if resource.custom else b"{"
        self._list_head = b'{"kind":%b,"apiVersion":%b,"metadata":' % (
            orjson.dumps(resource.list_kind or resource.kind + "List"),
            api_version,
        )
        self._events = {
            type: b'{"type":"%b","object":%b' % (type.encode(), self._head)
            for type in ("ADDED", "MODIFIED", "DELETED")
        }

    def make(self, entry: Entry) -> tuple[bytes, int]:
        obj = self.converted(entry)
        rest = {key: value for key, value in obj.items() if key not in ("kind", "apiVersion")}
        tail = orjson.dumps({"metadata": rest.pop("metadata"), **rest})[1:]
        return tail, len(tail)

    def tail(self, entry: Entry) -> bytes:
        """Bytes of the object from `"metadata":` on."""
        if self.stored:
            return entry.tail
        part: bytes = self.part(entry)
        return part

    async def prepare(self, entries: Iterable[Entry]) -> None:
        if not self.stored:
            await super().prepare(entries)

    def object(self, entry: Entry) -> bytes:
        return b"".join((self._head, self.tail(entry), b"\n"))

    def value(self, obj: Object) -> bytes:
        return orjson.dumps(obj, option=orjson.OPT_APPEND_NEWLINE)

    async def whole_value(self, obj: Object) -> bytes | Chunks:
        """Encodes long lists of the status in turns, because the JSON encoder keeps the GIL until it is done."""
        lists = _long_lists(obj)
        if not lists:
            return self.value(obj)
        turns = Turns()
        # JSON has no zero bytes, so each stands for the next long list.
        places = dict.fromkeys(lists, orjson.Fragment(b"[\0]"))
        first, *rest = self.value({**obj, "status": {**obj["status"], **places}}).split(b"\0")
        chunks = [first]
        for name, after in zip(lists, rest, strict=True):
            items = obj["status"][name]
            for start in range(0, len(items), ITEMS):
                items_json = orjson.dumps(items[start : start + ITEMS])
                chunks += [b"," if start else b"", items_json[1:-1]]
                await turns.pause()
            chunks.append(after)
        return chunks

    def item(self, entry: Entry) -> bytes:
        return self._item + self.tail(entry)

    def list(self, entries: Sequence[Entry], meta: ListMeta) -> Chunks:
        head = b"".join((self._list_head, orjson.dumps(meta), b',"items":['))
        if not entries:
            return [head + b"]}\n"]
        item = self._item
        if self.stored:
            tails = [entry.tail for entry in entries]
        else:
            tails = [self.tail(entry) for entry in entries]
        chunks = [b"," + item] * (2 * len(tails))
        chunks[0] = head + item
        chunks[1::2] = tails
        chunks.append(b"]}\n")
        return chunks

    def event(self, type: str, entry: Entry) -> bytes:
        return b"".join((self._events[type], self.tail(entry), b"}\n"))

    def event_value(self, type: str, obj: Object) -> bytes:
        return orjson.dumps({"type": type, "object": obj}, option=orjson.OPT_APPEND_NEWLINE)


def _long_lists(obj: Object) -> list[str]:
    """Fields of the status of a computed object, such as a review, with too many items for one turn."""
    status = obj.get("status")
    if not isinstance(status, dict):
        return []
    return [name for name, value in status.items() if isinstance(value, list) and len(value) > ITEMS]


def is_status(obj: Object) -> bool:
    """Whether the object is a Status, which is never converted to a Table or PartialObjectMetadata."""
    return (obj.get("apiVersion"), obj.get("kind")) == STATUS


def indented(value: object) -> bytes:
    return orjson.dumps(value, option=orjson.OPT_INDENT_2)
