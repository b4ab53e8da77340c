"""What another representation shows as JSON, written differently: as YAML, or indented for people.

Lists are put together of items, in turns with other requests.
"""

from __future__ import annotations

import asyncio
from collections.abc import Sequence
from time import perf_counter
from typing import Any

import orjson

from kubist.codec import negotiate
from kubist.codec.representation import TURN, Chunks, ListMeta, Made, Object, Representation, indented
from kubist.codec.yaml_emit import dumps
from kubist.storage.cache import Entry


class Rewritten(Made):
    """Says how a value, an item of a list and a list around items are written."""

    def __init__(self, inner: Representation) -> None:
        super().__init__(inner.resource)
        self.inner = inner
        self.key = self

    def write(self, value: Any) -> bytes:
        """Any value as a whole answer."""
        raise AssertionError("says how")

    def write_item(self, value: Any) -> bytes:
        """One object as it stands among the items of a list."""
        raise AssertionError("says how")

    def write_list(self, around: Object, items: Chunks) -> Chunks:
        """A list with at least one item; `around` is all else that is in it."""
        raise AssertionError("says how")

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
        return self._list(meta, [self.piece(entry) for entry in entries])

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
            items.append(self.piece(entry))
            if perf_counter() - begun > TURN:
                await asyncio.sleep(0)
                begun = perf_counter()
        return self._list(meta, items)


class Yaml(Rewritten):
    """Block style; keys are sorted, so `items` stands between others. Items are kept: they take long to make."""

    content_type = negotiate.YAML

    def write(self, value: Any) -> bytes:
        return dumps(value)

    def write_item(self, value: Any) -> bytes:
        return dumps([value])

    def write_list(self, around: Object, items: Chunks) -> Chunks:
        before = dumps({"apiVersion": around.pop("apiVersion")})
        return [before + b"items:\n", *items, dumps(around)]


class Indented(Rewritten):
    """JSON by two blanks a level. Items are made anew each time: that is quick."""

    def write(self, value: Any) -> bytes:
        return indented(value)

    def write_item(self, value: Any) -> bytes:
        return self.write([[value]])[len(b"[\n  [\n") : -len(b"\n  ]\n]")]

    def write_list(self, around: Object, items: Chunks) -> Chunks:
        before = self.write(around).removesuffix(b"\n}") + b',\n  "items": [\n'
        return [before, b",\n".join(items), b"\n  ]\n}"]

    def piece(self, entry: Entry) -> bytes:
        return self.make(entry)[0]
