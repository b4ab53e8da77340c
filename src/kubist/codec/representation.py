"""A representation turns stored versions into the bytes of an answer: one object, a list, a watch event.

What a version looks like in a representation is made once and kept with the version (`Entry.reps`), so lists
and watches of the same representation share it. JSON, the stored form, needs no making at all.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

import orjson

from kubist.storage.cache import Change, Entry

if TYPE_CHECKING:
    from kubist.resources import Resource

ListMeta = dict[str, Any]


class Representation:
    """One way to show objects of one resource. `key` identifies it among the ways to show that resource."""

    content_type = "application/json"
    stream_type = "application/json"

    def __init__(self, resource: Resource) -> None:
        self.resource = resource
        self.key: object = (type(self), resource.api_version)
        self.stored = resource.api_version == resource.storage_version

    def object(self, entry: Entry) -> bytes:
        """A stored version as a whole answer."""
        raise AssertionError("every representation shows objects")

    def value(self, obj: dict[str, Any]) -> bytes:
        """An object that is not stored (a dry run's, a sub-resource's) as a whole answer."""
        raise AssertionError("every representation shows values")

    def list(self, entries: Sequence[Entry], meta: ListMeta) -> list[bytes]:
        """A list as chunks of one answer."""
        raise AssertionError("every representation shows lists")

    def event(self, type: str, entry: Entry) -> bytes:
        """A watch event, complete with its framing."""
        raise AssertionError("every representation shows events")

    def event_value(self, type: str, obj: dict[str, Any]) -> bytes:
        """A watch event of something that is not stored: a bookmark or an error."""
        raise AssertionError("every representation shows events")

    def shared_event(self, type: str, change: Change, entry: Entry) -> bytes:
        """`event`, made once for all watchers that ask for this representation."""
        key = (self.key, type)
        found = change.encoded.get(key)
        if found is None:
            found = change.encoded[key] = self.event(type, entry)
        return found

    def converted(self, entry: Entry) -> dict[str, Any]:
        """The object in the version asked for."""
        obj = entry.object()
        return obj if self.stored else self.resource.strategy.convert(obj, self.resource.api_version)


class Json(Representation):
    """Plain JSON: constants around the stored bytes."""

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

    def tail(self, entry: Entry) -> bytes:
        """The object's bytes from `"metadata":` on."""
        if self.stored:
            return entry.tail
        if entry.reps is None:
            entry.reps = {}
        found: bytes | None = entry.reps.get(self.key)
        if found is None:
            obj = self.converted(entry)
            rest = {key: value for key, value in obj.items() if key not in ("kind", "apiVersion")}
            found = entry.reps[self.key] = orjson.dumps({"metadata": rest.pop("metadata"), **rest})[1:]
        return found

    def object(self, entry: Entry) -> bytes:
        return b"".join((self._head, self.tail(entry)))

    def value(self, obj: dict[str, Any]) -> bytes:
        return orjson.dumps(obj)

    def list(self, entries: Sequence[Entry], meta: ListMeta) -> list[bytes]:
        head = b"".join((self._list_head, orjson.dumps(meta), b',"items":['))
        if not entries:
            return [head + b"]}"]
        item = self._item
        if self.stored:
            tails = [entry.tail for entry in entries]
        else:
            tails = [self.tail(entry) for entry in entries]
        return [head, item, (b"," + item).join(tails), b"]}"]

    def event(self, type: str, entry: Entry) -> bytes:
        return b"".join((self._events[type], self.tail(entry), b"}\n"))

    def event_value(self, type: str, obj: dict[str, Any]) -> bytes:
        return orjson.dumps({"type": type, "object": obj}) + b"\n"
