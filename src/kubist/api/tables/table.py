"""Table representation: objects as rows of cells. The cells of a version are built once; their ages stay
current.

`api/kinds/<group>/columns.py` has the columns of built-in kinds, `custom.py` those of custom resources.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

import orjson

from kubist.api.crd.columns import columns as defined_columns
from kubist.api.representation.budget import EVENTS, KEPT
from kubist.api.representation.partial import Metadata, internal, list_meta
from kubist.api.representation.representation import (
    Cached,
    Chunks,
    Json,
    ListMeta,
    Representation,
    in_turns,
    is_status,
)
from kubist.api.tables import ages, columns
from kubist.api.tables.custom import SCALE, table
from kubist.base import clock
from kubist.model.meta.object import Object
from kubist.model.meta.status import APIError, bad_request
from kubist.storage.cache.cache import Change, Entry

if TYPE_CHECKING:
    from kubist.api.resources.resource import Resource

INCLUDED = ("", "Metadata", "Object", "None")
INITIAL_EVENTS_END = "k8s.io/initial-events-end"


class Row:
    """Cells of one version, without the object that follows them."""

    __slots__ = ("_parts", "_since", "_text", "_until")

    def __init__(self, cells: list[Any], conditions: list[Object]) -> None:
        parts, since = [b'{"cells":['], []
        for index, cell in enumerate(cells):
            if index:
                parts[-1] += b","
            if isinstance(cell, ages.Since):
                since.append(cell)
                parts.append(b"")
            else:
                parts[-1] += orjson.dumps(cell)
        parts[-1] += b'],"conditions":%b,' % orjson.dumps(conditions) if conditions else b"],"
        self._parts, self._since = parts, since
        self._text = parts[0] if not since else b""
        self._until = ages.FOREVER if not since else 0.0

    @property
    def size(self) -> int:
        return 2 * sum(map(len, self._parts)) + 100

    def text(self, now: float) -> bytes:
        """Row now. The same bytes object is returned until an age in it changes."""
        if now < self._until:
            return self._text
        if len(self._since) == 1:
            age, self._until = self._since[0].json(now)
            self._text = b"".join((self._parts[0], age, self._parts[1]))
        else:
            out, until = [self._parts[0]], ages.FOREVER
            for cell, part in zip(self._since, self._parts[1:], strict=True):
                age, expiry = cell.json(now)
                out += (age, part)
                until = min(until, expiry)
            self._text, self._until = b"".join(out), until
        return self._text


class Rows(Cached):
    """Cached rows of versions. All values of `includeObject` share one row."""

    def __init__(self, resource: Resource, table: columns.Table) -> None:
        super().__init__(resource)
        self.table = table
        self.key = self

    def make(self, entry: Entry) -> tuple[Row, int]:
        row = self.row(self.converted(entry) if self.resource.custom else entry.object())
        return row, row.size

    def row(self, obj: Object) -> Row:
        return Row(self.table.cells(obj), self.table.conditions(obj))


class Table(Representation):
    """Rows with the objects' metadata, the whole objects or no object, by `includeObject`."""

    def __init__(self, resource: Resource, version: str, include: str) -> None:
        super().__init__(resource)
        self.include = include or "Metadata"
        self.version = f"meta.k8s.io/{version}"
        self.table = table_of(resource)
        self.rows = rows_of(resource, self.table)
        self.event_key = (self.rows, self.version, self.include)
        self.metadata = Metadata(resource)
        self.json = Json(resource)
        self._head = b'{"kind":"Table","apiVersion":"%b","metadata":' % self.version.encode()
        self._partial = b'"object":{"kind":"PartialObjectMetadata","apiVersion":"%b",' % self.version.encode()

    def object(self, entry: Entry) -> bytes:
        return self._whole({"resourceVersion": str(entry.revision)}, self.row(entry, clock.now()))

    def value(self, obj: Object) -> bytes:
        if is_status(obj):
            return self.json.value(obj)
        if "items" in obj:
            return self._list_value(obj)
        table = self._table_of_value(obj)
        return self._whole(_own_version(obj), self._row_of_value(table, obj), table)

    def list(self, entries: Sequence[Entry], meta: ListMeta) -> Chunks:
        self._check()
        if self.table.order is not None:
            order = self.table.order
            entries = sorted(entries, key=lambda entry: order(entry.object()))
        now = clock.now()
        before, objects, after = self._all_included(entries)
        parts = [before] * (4 * len(objects))
        parts[0::4] = [row.text(now) for row in self.rows.parts(entries)]
        parts[2::4] = objects
        parts[3::4] = [after + b","] * len(objects)
        if parts:
            parts[-1] = after
        return [self._start(list_meta(meta)), *_rows(parts, self.table), b"}\n"]

    async def prepare(self, entries: Any) -> None:
        entries = list(entries)
        if self.include == "Metadata":
            await in_turns(self._make_both, [entry for entry in entries if self.rows.lacks(entry)])
            await self.metadata.prepare(entries)
            return
        await self.rows.prepare(entries)
        if self.include == "Object":
            await self.json.prepare(entries)

    def _make_both(self, entry: Entry) -> None:
        """Builds the row and the metadata of a version from one parsed object. Metadata comes last, because it
        modifies the object."""
        if self.resource.custom or not self.metadata.lacks(entry):
            self.rows.part(entry)
            return
        obj = entry.object()
        row = self.rows.row(obj)
        reps = entry.reps = entry.reps or {}
        KEPT.keep(reps, self.rows.key, row, row.size)
        KEPT.keep(reps, self.metadata.key, *self.metadata.of(entry, obj))

    def row(self, entry: Entry, now: float) -> bytes:
        self._check()
        return self.cells(entry, now) + self._included(entry)

    def cells(self, entry: Entry, now: float) -> bytes:
        row: Row = self.rows.part(entry)
        return row.text(now)

    def _all_included(self, entries: Sequence[Entry]) -> tuple[bytes, Chunks, bytes]:
        """Included objects of the rows, and the constant bytes before and after each."""
        if self.include == "Metadata":
            return self._partial, self.metadata.all_bytes(entries), b"}}"
        if self.include == "None":
            return b'"object":', [b"null"] * len(entries), b"}"
        return b'"object":', [self.json.object(entry)[:-1] for entry in entries], b"}"

    def _included(self, entry: Entry) -> bytes:
        if self.include == "Metadata":
            return b"".join((self._partial, self.metadata.bytes(entry), b"}}"))
        if self.include == "None":
            return b'"object":null}'
        return b'"object":%b}' % self.json.object(entry)[:-1]

    def _check(self) -> None:
        """Checks `includeObject`. As in kube-apiserver, this happens only when a table is written."""
        if self.include not in INCLUDED:
            raise include_refused(self.include)

    def _table_of_value(self, obj: Object) -> columns.Table:
        if obj.get("kind") in (self.resource.kind, None):
            return self.table
        if self.resource.custom:
            return SCALE
        group = obj["apiVersion"].rpartition("/")[0]
        return columns.table_of(group, obj["kind"])

    def _row_of_value(self, table: columns.Table, obj: Object) -> bytes:
        self._check()
        source = obj
        if not self.stored and not self.resource.custom and table is self.table:
            copy = orjson.loads(orjson.dumps(obj))
            source = self.resource.strategy.convert(copy, self.resource.storage_version)
        included: Any = obj
        ends = obj["metadata"].get("annotations", {}).get(INITIAL_EVENTS_END) == "true"
        if self.include == "Metadata" or (ends and self.include == "None"):
            included = {
                "kind": "PartialObjectMetadata",
                "apiVersion": self.version,
                "metadata": internal(self.resource, obj)["metadata"],
            }
        elif self.include == "None":
            included = None
        row = Row(table.cells(source), table.conditions(source))
        return b'%b"object":%b}' % (row.text(clock.now()), orjson.dumps(included))

    def _list_value(self, obj: Object) -> bytes:
        self._check()
        parts = []
        for item in obj["items"]:
            parts += [self._row_of_value(self.table, item), b","]
        rows = b"".join(_rows(parts[:-1], self.table))
        return b"".join((self._start(list_meta(obj["metadata"])), rows, b"}\n"))

    def _start(self, meta: ListMeta, table: columns.Table | None = None, *, headers: bool = True) -> bytes:
        columns = (table or self.table).columns
        definitions = [column.definition() for column in columns] if headers else None
        return b'%b%b,"columnDefinitions":%b,"rows":' % (
            self._head,
            orjson.dumps(meta),
            orjson.dumps(definitions),
        )

    def _whole(self, meta: ListMeta, row: bytes, table: columns.Table | None = None) -> bytes:
        return b"".join((self._start(meta, table), b"[", row, b"]}\n"))

    def for_watch(self) -> Representation:
        self._check()
        return WatchedTable(self)


class WatchedTable(Representation):
    """Table of one watch: each event has one row, and only the first event has columns."""

    def __init__(self, inner: Table) -> None:
        super().__init__(inner.resource)
        self.inner = inner
        self.headers = True

    async def prepare(self, entries: Any) -> None:
        await self.inner.prepare(entries)

    def event(self, type: str, entry: Entry, now: float | None = None) -> bytes:
        row = self.inner.row(entry, clock.now() if now is None else now)
        return self._event(type, {"resourceVersion": str(entry.revision)}, row)

    def shared_event(self, type: str, change: Change, entry: Entry) -> bytes:
        """Same as `event`, shared by all watchers until an age in the row changes."""
        now = clock.now()
        cells = self.inner.cells(entry, now)
        key = (self.inner.event_key, type, self.headers)
        event: tuple[bytes, bytes] | None = change.encoded.get(key)
        if event is None or event[0] is not cells:
            event = cells, self.event(type, entry, now)
            EVENTS.keep(change.encoded, key, event, len(cells) + len(event[1]))
        self.headers = False
        return event[1]

    def event_value(self, type: str, obj: Object) -> bytes:
        if is_status(obj):
            return self.inner.json.event_value(type, obj)
        return self._event(type, _own_version(obj), self.inner._row_of_value(self.inner.table, obj))

    def _event(self, type: str, meta: ListMeta, row: bytes) -> bytes:
        start = self.inner._start(meta, headers=self.headers)
        self.headers = False
        return b'{"type":"%b","object":%b[%b]}}\n' % (type.encode(), start, row)


def rows_of(resource: Resource, table: columns.Table) -> Rows:
    """Rows of a resource, shared by all its tables."""
    rows = resource.representations.get(Rows)
    if rows is None:
        rows = resource.representations[Rows] = Rows(resource, table)
    assert isinstance(rows, Rows)
    return rows


def table_of(resource: Resource) -> columns.Table:
    """Table of a resource. Cells are computed from the storage version."""
    if resource.custom is not None:
        return table(defined_columns(resource.custom.version.spec))
    return columns.table_of(resource.stored_group, resource.kind)


def include_refused(include: str) -> APIError:
    return bad_request(
        f'Unable to convert to Table as requested: includeObject: Invalid value: "{include}": '
        "must be 'Metadata', 'Object', 'None', or empty"
    )


def _own_version(obj: Object) -> ListMeta:
    version = obj["metadata"].get("resourceVersion")
    return {"resourceVersion": version} if version else {}


def _rows(parts: Chunks, table: columns.Table) -> Chunks:
    """JSON array of rows from their parts. The parts include the commas."""
    return [b"[", *parts, b"]"] if parts else [table.empty_rows]
