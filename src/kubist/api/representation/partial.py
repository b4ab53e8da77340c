"""PartialObjectMetadata and its List: only the metadata, as JSON from the stored bytes or as protobuf."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

import orjson

from kubist.api.representation.protobuf import END, Messages, enveloped
from kubist.api.representation.representation import (
    Cached,
    Chunks,
    Json,
    ListMeta,
    Representation,
    is_status,
)
from kubist.model.codec import protobuf
from kubist.model.codec import protobuf_wire as wire
from kubist.model.meta.object import Object
from kubist.model.meta.status import APIError
from kubist.model.schema.catalog import by_name
from kubist.storage.cache.cache import Entry

if TYPE_CHECKING:
    from kubist.api.resources.resource import Resource

KIND = "PartialObjectMetadata"
OBJECT_META = "io.k8s.apimachinery.pkg.apis.meta.v1.ObjectMeta"
_NAME = b'"metadata":'


class Metadata(Cached):
    """Bytes `"metadata":{…}` of stored versions.

    They are nearly always a prefix of the stored tail. Then only their length is cached.
    """

    def __init__(self, resource: Resource) -> None:
        super().__init__(resource)
        self.key = "metadata"

    def make(self, entry: Entry) -> tuple[int | bytes, int]:
        return self.of(entry, entry.object())

    def of(self, entry: Entry, obj: Object) -> tuple[int | bytes, int]:
        """Piece of a version whose object is already parsed."""
        metadata = _NAME + orjson.dumps(internal(self.resource, obj)["metadata"])
        if entry.tail.startswith(metadata):
            return len(metadata), 0
        return metadata, len(metadata)

    def bytes(self, entry: Entry) -> bytes:
        part: int | bytes = self.part(entry)
        return entry.tail[:part] if isinstance(part, int) else part

    def all_bytes(self, entries: Sequence[Entry]) -> Chunks:
        pieces = zip(entries, self.parts(entries), strict=True)
        return [entry.tail[:part] if type(part) is int else part for entry, part in pieces]


class Partial(Metadata):
    """Single objects: get, watch, and responses to writes."""

    def __init__(self, resource: Resource, version: str) -> None:
        super().__init__(resource)
        self.version = f"meta.k8s.io/{version}"
        self.event_key = (KIND, version, resource)
        self._head = b'{"kind":"PartialObjectMetadata","apiVersion":"%b",' % self.version.encode()

    def object(self, entry: Entry) -> bytes:
        return b"".join((self._head, self.bytes(entry), b"}\n"))

    def value(self, obj: Object) -> bytes:
        return orjson.dumps(self.partial_object(obj), option=orjson.OPT_APPEND_NEWLINE)

    def partial_object(self, obj: Object) -> Object:
        if is_status(obj):
            return obj
        if "items" in obj:
            raise list_refused(self.resource)
        metadata = internal(self.resource, obj)["metadata"]
        return {"kind": KIND, "apiVersion": self.version, "metadata": metadata}

    def list(self, entries: Sequence[Entry], meta: ListMeta) -> Chunks:
        raise list_refused(self.resource)

    def event(self, type: str, entry: Entry) -> bytes:
        return b'{"type":"%b","object":%b%b}}\n' % (type.encode(), self._head, self.bytes(entry))

    def event_value(self, type: str, obj: Object) -> bytes:
        return orjson.dumps(
            {"type": type, "object": self.partial_object(obj)}, option=orjson.OPT_APPEND_NEWLINE
        )


class PartialList(Metadata):
    """Lists. An empty list has null items. A single object cannot be shown as a list."""

    watchable = False
    itemized = True

    def __init__(self, resource: Resource, version: str) -> None:
        super().__init__(resource)
        self.version = f"meta.k8s.io/{version}".encode()
        self._item = b'{"kind":"PartialObjectMetadata","apiVersion":"%b",' % self.version

    def object(self, entry: Entry) -> bytes:
        raise object_refused(self.resource)

    def value(self, obj: Object) -> bytes:
        if is_status(obj):
            return Json(self.resource).value(obj)
        if "items" not in obj:
            raise object_refused(self.resource)
        items = [_NAME + orjson.dumps(item["metadata"]) for item in obj["items"]]
        return b"".join(self._list(items, obj["metadata"]))

    def item(self, entry: Entry) -> bytes:
        return b"".join((self._item, self.bytes(entry), b"}"))

    def list(self, entries: Sequence[Entry], meta: ListMeta) -> Chunks:
        return self._list(self.all_bytes(entries), meta)

    def _list(self, items: Chunks, meta: ListMeta) -> Chunks:
        head = b'{"kind":"PartialObjectMetadataList","apiVersion":"%b","metadata":%b,"items":' % (
            self.version,
            orjson.dumps(list_meta(meta)),
        )
        if not items:
            return [head + b"null}\n"]
        chunks = [b"}," + self._item] * (2 * len(items))
        chunks[0] = b"%b[%b" % (head, self._item)
        chunks[1::2] = items
        chunks.append(b"}]}\n")
        return chunks


class PartialProtobuf(Messages):
    """Both kinds as protobuf. `lists`: the client asked for the list kind."""

    def __init__(self, resource: Resource, version: str, *, lists: bool) -> None:
        super().__init__(resource, f"meta.k8s.io/{version}", KIND, KIND + "List")
        self.key = "metadata messages"
        self.event_key = (KIND, "protobuf", version, resource)
        self.lists = lists
        self.watchable = not lists

    def make(self, entry: Entry) -> tuple[bytes, int]:
        piece = wire.delimited(b"\x12", self.message(internal(self.resource, entry.object())))
        return piece, len(piece)

    def message(self, obj: Object) -> bytes:
        return wire.delimited(b"\x0a", protobuf.encode(by_name(OBJECT_META), obj["metadata"]))

    def object(self, entry: Entry) -> bytes:
        if self.lists:
            raise object_refused(self.resource)
        return super().object(entry)

    def value(self, obj: Object) -> bytes:
        if is_status(obj):
            return enveloped(obj)
        if self.lists or "items" in obj:
            raise object_refused(self.resource) if self.lists else list_refused(self.resource)
        return b"".join((self._head, wire.delimited(b"\x12", self.message(obj)), END))

    def list(self, entries: Sequence[Entry], meta: ListMeta) -> Chunks:
        if not self.lists:
            raise list_refused(self.resource)
        return super().list(entries, meta)


def internal(resource: Resource, obj: Object) -> Object:
    """Object without the annotations that conversion adds, because kube-apiserver takes metadata from the internal
    version."""
    annotations = obj["metadata"].get("annotations")
    for name in resource.strategy.converted_annotations:
        if annotations and annotations.pop(name, None) is not None and not annotations:
            del obj["metadata"]["annotations"]
    return obj


def partial(resource: Resource, kind: str, version: str) -> Representation:
    return Partial(resource, version) if kind == KIND else PartialList(resource, version)


def list_meta(meta: ListMeta) -> ListMeta:
    """List metadata without an empty continue token."""
    return meta if meta.get("continue") != "" else {k: v for k, v in meta.items() if k != "continue"}


def list_refused(resource: Resource) -> APIError:
    go_type = f"(*{_type(resource)}List)"
    message = f"you requested PartialObjectMetadata, but the requested object is a list {go_type}"
    return APIError(406, "NotAcceptable", message)


def object_refused(resource: Resource) -> APIError:
    go_type = f"(*{_type(resource)})"
    message = f"you requested PartialObjectMetadataList, but the requested object is not a list {go_type}"
    return APIError(406, "NotAcceptable", message)


def _type(resource: Resource) -> str:
    if resource.custom:
        return "unstructured.Unstructured"
    return f"{resource.stored_group.partition('.')[0] or 'core'}.{resource.kind}"
