"""YAML and indented JSON, produced from another JSON representation.

Lists are built from items, in slices.
"""

from __future__ import annotations

import asyncio
from collections.abc import Sequence
from time import perf_counter
from typing import Any

import orjson

from kubist.api.representation.representation import Cached, Chunks, ListMeta, Representation, indented
from kubist.base.turns import TURN
from kubist.model.codec import negotiate
from kubist.model.codec.yaml_emit import dumps
from kubist.model.meta.object import Object
from kubist.storage.cache.cache import Entry


class Rewritten(Cached):
    """Base class: subclasses write a value, an item of a list, and a list around items."""

    def __init__(self, inner: Representation) -> None:
        super().__init__(inner.resource)
        self.inner = inner
        self.key = self

    def write(self, value: Any) -> bytes:
        """Response for any value."""
        raise AssertionError("subclasses implement write(), write_item() and write_list()")

    def write_item(self, value: Any) -> bytes:
        """One object as item of a list."""
        raise AssertionError("subclasses implement write(), write_item() and write_list()")

    def write_list(self, around: Object, items: Chunks) -> Chunks:
        """List with at least one item. `around` has all fields of the list except `items`."""
        raise AssertionError("subclasses implement write(), write_item() and write_list()")

    def make(self, entry: Entry) -> tuple[bytes, int]:
        item = self.write_item(orjson.loads(self.inner.item(entry)))
        return item, len(item)

    def object(self, entry: Entry) -> bytes:
        return self.write(orjson.loads(self.inner.object(entry)))

    def value(self, obj: Object) -> bytes:
        return self.write(orjson.loads(self.inner.value(obj)))

    def list(self, entries: Sequence[Entry], meta: ListMeta) -> Chunks:
        if not (self.inner.itemized and entries):
            return [self.write(orjson.loads(b"".join(self.inner.list(entries, meta))))]
        return self._list(meta, [self.part(entry) for entry in entries])

    def _list(self, meta: ListMeta, items: Chunks) -> Chunks:
        around = orjson.loads(b"".join(self.inner.list((), meta)))
        del around["items"]
        return self.write_list(around, items)

    async def whole_list(self, entries: Sequence[Entry], meta: ListMeta) -> Chunks:
        await self.inner.prepare(entries)
        if not (self.inner.itemized and entries):
            return await asyncio.to_thread(self.list, entries, meta)
        items = []
        begun = perf_counter()
        for entry in entries:
            items.append(self.part(entry))
            if perf_counter() - begun > TURN:
                await asyncio.sleep(0)
                begun = perf_counter()
        return self._list(meta, items)


class Yaml(Rewritten):
    """YAML in block style. Keys are sorted, so `items` is between other keys. Items are cached, because they
    are slow to build."""

    content_type = negotiate.YAML

    def write(self, value: Any) -> bytes:
        return dumps(value)

    def write_item(self, value: Any) -> bytes:
        return dumps([value])

    def write_list(self, around: Object, items: Chunks) -> Chunks:
        before = dumps({"apiVersion": around.pop("apiVersion")})
        return [before + b"items:\n", *items, dumps(around)]


class Indented(Rewritten):
    """JSON indented by two spaces. Items are not cached, because they are fast to build."""

    def write(self, value: Any) -> bytes:
        return indented(value)

    def write_item(self, value: Any) -> bytes:
        return self.write([[value]])[len(b"[\n  [\n") : -len(b"\n  ]\n]")]

    def write_list(self, around: Object, items: Chunks) -> Chunks:
        before = self.write(around).removesuffix(b"\n}") + b',\n  "items": [\n'
        return [before, b",\n".join(items), b"\n  ]\n}"]

    def part(self, entry: Entry) -> bytes:
        return self.make(entry)[0]
