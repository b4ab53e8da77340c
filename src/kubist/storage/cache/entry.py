"""Entry: one stored version of an object as bytes. Also its kind, and the change that a watch sends."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import orjson

from kubist.errors import DamagedStore


class Entry:
    """One version of one object.

    `tail` is its JSON from `"metadata":{` on, with the resource version. An object, a list item and a watch
    event are each a constant, the tail and a constant.
    """

    __slots__ = ("_fields", "_labels", "key", "kind", "reps", "revision", "tail")

    def __init__(self, key: str, revision: int, tail: bytes, kind: StoredKind) -> None:
        self.key = key
        self.revision = revision
        self.tail = tail
        self.kind = kind
        self._labels: dict[str, str] | None = None
        self._fields: dict[str, str] | None = None
        self.reps: dict[Any, Any] | None = None
        """Other representations of this version (protobuf, table row), each built at most once."""

    foreign = False
    """Whether the stored value has another form than this version writes. Storing the same object again is then
    a change."""

    def object(self) -> dict[str, Any]:
        """Parsed object. Each call returns a new copy."""
        try:
            obj: dict[str, Any] = orjson.loads(b"".join((self.kind.head, self.tail)))
        except orjson.JSONDecodeError as error:
            raise DamagedStore(
                f"{self.key} is damaged in the store: {error}. `kubist doctor` finds all damaged objects of an "
                "embedded store, and `kubist restore` puts a backup in its place"
            ) from error
        return obj

    def json(self) -> bytes:
        return b"".join((self.kind.head, self.tail))

    @property
    def namespace(self) -> str:
        return self.key[len(self.kind.prefix) :].rpartition("/")[0]

    @property
    def name(self) -> str:
        return self.key.rpartition("/")[2]

    @property
    def labels(self) -> dict[str, str]:
        if self._labels is None:
            self._examine()
        labels = self._labels
        assert labels is not None
        return labels

    @property
    def fields(self) -> dict[str, str]:
        """Selectable fields other than metadata.name and metadata.namespace."""
        if self._fields is None:
            self._examine()
        fields = self._fields
        assert fields is not None
        return fields

    def _examine(self) -> None:
        obj = self.object()
        self._labels = obj["metadata"].get("labels") or {}
        self._fields = self.kind.fields(obj)

    def share_selectable(self, other: Entry) -> None:
        """Takes over the labels and fields of an entry with the same content, so that they are not read again."""
        self._labels, self._fields = other._labels, other._fields


class ForeignEntry(Entry):
    """Version written by kube-apiserver or by another version of Kubist."""

    __slots__ = ()
    foreign = True


class StoredKind:
    """Storage properties of a kind: key prefix, first bytes of stored values, and selectable fields."""

    __slots__ = ("_start", "_stored_head", "api_version", "fields", "head", "normalize", "prefix")

    def __init__(
        self,
        prefix: str,
        api_version: str,
        kind: str,
        fields: Callable[[dict[str, Any]], dict[str, str]],
        normalize: Callable[[bytes], dict[str, Any]],
    ) -> None:
        self.prefix = prefix
        self.api_version = api_version
        self.head = b'{"kind":%b,"apiVersion":%b,' % (orjson.dumps(kind), orjson.dumps(api_version))
        self._stored_head = MARK + self.head[1:]
        self._start = self._stored_head + _METADATA
        self.fields = fields
        self.normalize = normalize
        """Decodes a value that does not start with `MARK` and the head, and returns the object in the storage
        version with defaults. Such values come from kube-apiserver or from another version of Kubist."""

    def encode(self, obj: dict[str, Any]) -> bytes:
        """Stored form of an object: without resourceVersion, metadata first. Removes resourceVersion from
        `obj`."""
        metadata = obj["metadata"]
        metadata.pop("resourceVersion", None)
        stored = {"metadata": metadata}
        stored.update(obj)
        stored.pop("kind", None)
        stored.pop("apiVersion", None)
        return self._stored_head + orjson.dumps(stored)[1:]

    def entry(self, key: str, value: bytes, revision: int) -> Entry:
        start = self._start
        made: type[Entry] = Entry
        if not value.startswith(start):
            value = self.encode(self.normalize(value))
            made = ForeignEntry
        tail = b'"metadata":{"resourceVersion":"%d",' % revision + value[len(start) :]
        return made(key, revision, tail, self)

    shares_entries = True
    """Whether servers with equal content share the entries of this kind. False if an entry refers to its server."""

    def adopt(self, entry: Entry) -> Entry:
        """Entry of another server with the same version of the object, for this server."""
        return entry

    def removed_versions(self) -> frozenset[str]:
        """Versions of stored objects that the kind no longer has. Only CRDs have any."""
        return frozenset()

    def written(self, entry: Entry, value: bytes) -> bool:
        """Whether `value` equals the stored value of this entry."""
        if entry.foreign or entry.kind.head != self.head:
            return False
        start = len(self._start)
        added = len(b'"metadata":{"resourceVersion":"",') + len(str(entry.revision))
        return len(entry.tail) - added == len(value) - start and entry.tail.endswith(value[start:])


MARK = b"{ "
"""First bytes of values that this version of Kubist writes. Such values have all defaults, and their fields are
in order.

The blank is valid JSON, so other servers can read the value. A version with other defaults needs another mark.
"""
_METADATA = b'"metadata":{'


class Change:
    """One change of one object, as watchers see it. A deletion has no `new`."""

    __slots__ = ("encoded", "gone", "new", "old", "revision")

    def __init__(self, revision: int, old: Entry | None, new: Entry | None) -> None:
        self.revision = revision
        self.old = old
        self.new = new
        self.gone: Entry | None = None
        self.encoded: dict[Any, Any] = {}
        """Event bytes by representation and type, shared by all watchers."""

    def last(self) -> Entry:
        """Old state with the revision of this change as resourceVersion, as a DELETED event shows it."""
        if self.gone is None:
            old = self.old
            assert old is not None
            start = old.tail.index(b'",', 31)
            tail = b'"metadata":{"resourceVersion":"%d%b' % (self.revision, old.tail[start:])
            self.gone = Entry(old.key, self.revision, tail, old.kind)
            self.gone.share_selectable(old)
        return self.gone
