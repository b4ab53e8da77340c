"""Objects, lists and watch events as protobuf. The message of a version is built once."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

from kubist.api.representation.representation import Cached, Chunks, ListMeta
from kubist.model.codec import protobuf
from kubist.model.codec import protobuf_wire as wire
from kubist.model.meta.object import Object
from kubist.model.schema.catalog import by_name, schema_for
from kubist.storage.cache.cache import Entry

if TYPE_CHECKING:
    from kubist.api.resources.resource import Resource

MEDIA_TYPE = "application/vnd.kubernetes.protobuf"
LIST_META = "io.k8s.apimachinery.pkg.apis.meta.v1.ListMeta"
END = b"\x1a\x00\x22\x00"
"""Encoding and content type of an envelope, both empty."""


def envelope_head(api_version: str, kind: str) -> bytes:
    meta = wire.delimited(b"\x0a", api_version.encode()) + wire.delimited(b"\x12", kind.encode())
    return protobuf.MAGIC + wire.delimited(b"\x0a", meta)


class Messages(Cached):
    """Protobuf messages. The cached piece is field 2 with the message, as both a list and an envelope contain it."""

    content_type = MEDIA_TYPE
    stream_type = MEDIA_TYPE + ";stream=watch"
    length_bytes = 4

    def __init__(self, resource: Resource, api_version: str, kind: str, list_kind: str) -> None:
        super().__init__(resource)
        self._head = envelope_head(api_version, kind)
        self._list_head = envelope_head(api_version, list_kind)

    def message(self, obj: Object) -> bytes:
        """Message of an object, without envelope."""
        raise AssertionError("subclasses implement message()")

    def make(self, entry: Entry) -> tuple[bytes, int]:
        piece = wire.delimited(b"\x12", self.message(self.converted(entry)))
        return piece, len(piece)

    def object(self, entry: Entry) -> bytes:
        return b"".join((self._head, self.part(entry), END))

    def list(self, entries: Sequence[Entry], meta: ListMeta) -> Chunks:
        listed = wire.delimited(b"\x0a", protobuf.encode(by_name(LIST_META), meta))
        items = self.parts(entries)
        size = wire.varint(len(listed) + sum(map(len, items)))
        return [b"".join((self._list_head, b"\x12", size, listed)), *items, END]

    def event(self, type: str, entry: Entry) -> bytes:
        return protobuf.watch_frame(type, self.object(entry))

    def event_value(self, type: str, obj: Object) -> bytes:
        return protobuf.watch_frame(type, self.value(obj))


class Protobuf(Messages):
    """Whole objects."""

    def __init__(self, resource: Resource) -> None:
        super().__init__(resource, resource.api_version, resource.kind, resource.list_kind)

    def message(self, obj: Object) -> bytes:
        return protobuf.encode(self.resource.schema, obj)

    def value(self, obj: Object) -> bytes:
        return enveloped(obj)


def enveloped(obj: dict[str, Any]) -> bytes:
    """Any object of a known kind in its envelope."""
    api_version, kind = obj.get("apiVersion", ""), obj["kind"]
    group, _, version = (api_version or "v1").rpartition("/")
    return protobuf.wrap(api_version, kind, protobuf.encode(schema_for(group, version, kind), obj))
