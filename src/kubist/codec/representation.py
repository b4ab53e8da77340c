"""A representation turns stored versions into the bytes of an answer: one object, a list, a watch event.

What a version looks like in a representation is made once and kept with the version (`Entry.reps`), so lists
and watches of the same representation share it. JSON, the stored form, needs no making at all.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Iterable, Sequence
from time import perf_counter
from typing import TYPE_CHECKING, Any

import orjson

from kubist.codec.representation_budget import EVENTS, KEPT
from kubist.storage.cache import Change, Entry

if TYPE_CHECKING:
    from kubist.resources.resource import Resource

Object = dict[str, Any]
ListMeta = dict[str, Any]
Chunks = list[bytes]

TURN = 0.005
"""Seconds of work after which others get a turn on the event loop."""
STATUS = ("v1", "Status")


class Representation:
    """One way to show objects of one resource."""

    content_type = "application/json"
    stream_type = "application/json"
    watchable = True
    """False: a watch in this representation ends before its first event."""
    itemized = False
    """A list is some fields and `items`, each of which `item` shows."""

    def __init__(self, resource: Resource) -> None:
        self.resource = resource
        self.key: object = (type(self), resource.api_version)
        """Under which a version's piece is kept."""
        self.event_key: object = (type(self), resource)
        """Under which the events of a change are shared."""
        self.stored = resource.custom or resource.api_version == resource.storage_version
        """Entries are in the version asked for; those of custom resources were converted on the way."""

    def object(self, entry: Entry) -> bytes:
        """A stored version as a whole answer."""
        raise AssertionError("every representation shows objects")

    def value(self, obj: Object) -> bytes:
        """An object that is not stored (a dry run's, a sub-resource's) as a whole answer."""
        raise AssertionError("every representation shows values")

    def list(self, entries: Sequence[Entry], meta: ListMeta) -> Chunks:
        """A list as chunks of one answer."""
        raise AssertionError("every representation shows lists")

    def item(self, entry: Entry) -> bytes:
        """A stored version as it is in a list."""
        raise AssertionError("lists of this representation are no items")

    def event(self, type: str, entry: Entry) -> bytes:
        """A watch event, complete with its framing."""
        raise AssertionError("every representation shows events")

    def event_value(self, type: str, obj: Object) -> bytes:
        """A watch event of something that is not stored: a bookmark or an error."""
        raise AssertionError("every representation shows events")

    def shared_event(self, type: str, change: Change, entry: Entry) -> bytes:
        """`event`, made once for all watchers that ask for this representation."""
        key = (self.event_key, type)
        found: bytes | None = change.encoded.get(key)
        if found is None:
            found = self.event(type, entry)
            EVENTS.keep(change.encoded, key, found, len(found))
        return found

    def for_watch(self) -> Representation:
        """The representation of one watch: another one if it must remember what it has sent."""
        return self

    async def whole_list(self, entries: Sequence[Entry], meta: ListMeta) -> Chunks:
        """`list`, without keeping the event loop for long."""
        await self.prepare(entries)
        return self.list(entries, meta)

    async def prepare(self, entries: Iterable[Entry]) -> None:
        """Make ready, in turns, what a list or a watch of these entries is going to need."""

    def converted(self, entry: Entry) -> Object:
        """The object in the version asked for."""
        obj = entry.object()
        return obj if self.stored else self.resource.strategy.convert(obj, self.resource.api_version)


class Made(Representation):
    """A representation of which each stored version has a piece that is made once and kept."""

    def make(self, entry: Entry) -> tuple[Any, int]:
        """The piece of a version, and its size in bytes."""
        raise AssertionError("says what is kept")

    def piece(self, entry: Entry) -> Any:
        reps = entry.reps
        if reps is None:
            reps = entry.reps = {}
        found = reps.get(self.key)
        if found is None:
            found, size = self.make(entry)
            KEPT.keep(reps, self.key, found, size)
        return found

    def lacks(self, entry: Entry) -> bool:
        return entry.reps is None or self.key not in entry.reps

    def pieces(self, entries: Sequence[Entry]) -> list[Any]:
        """The pieces of many versions, of which most have theirs."""
        key, piece = self.key, self.piece
        return [
            piece(entry) if (reps := entry.reps) is None or (found := reps.get(key)) is None else found
            for entry in entries
        ]

    async def prepare(self, entries: Iterable[Entry]) -> None:
        await in_turns(self.piece, [entry for entry in entries if self.lacks(entry)])


async def in_turns(make: Callable[[Entry], object], entries: Sequence[Entry]) -> None:
    """Make something of each, with turns for others between."""
    begun = perf_counter()
    for entry in entries:
        make(entry)
        if perf_counter() - begun > TURN:
            await asyncio.sleep(0)
            begun = perf_counter()


class Json(Made):
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
        """The object's bytes from `"metadata":` on."""
        if self.stored:
            return entry.tail
        found: bytes = self.piece(entry)
        return found

    async def prepare(self, entries: Iterable[Entry]) -> None:
        if not self.stored:
            await super().prepare(entries)

    def object(self, entry: Entry) -> bytes:
        return b"".join((self._head, self.tail(entry), b"\n"))

    def value(self, obj: Object) -> bytes:
        return orjson.dumps(obj, option=orjson.OPT_APPEND_NEWLINE)

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


def is_status(obj: Object) -> bool:
    """A Status is shown as it is, whatever was asked for."""
    return (obj.get("apiVersion"), obj.get("kind")) == STATUS


def indented(value: object) -> bytes:
    return orjson.dumps(value, option=orjson.OPT_INDENT_2)
