"""Selection of a list, watch or deletecollection: a key prefix and two selectors."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator

from sortedcontainers import SortedDict

from kubist.api.resources.custom import Conversion
from kubist.api.verbs.options import ListOptions
from kubist.api.verbs.resource_request import ResourceRequest
from kubist.model.meta import status
from kubist.model.meta.selectors import FieldSelector, LabelSelector
from kubist.storage.cache.cache import Collection, Entry
from kubist.storage.cache.snapshot_at import Past

Match = Callable[[Entry], bool]


class Selection:
    """Objects below `prefix` (or the one object `key`) whose labels and fields match."""

    def __init__(self, ctx: ResourceRequest, options: ListOptions) -> None:
        self.prefix = ctx.collection_prefix
        self.labels: LabelSelector = options.labels
        self.fields: FieldSelector = known_fields(ctx, options.fields)
        self._indexed_fields = ctx.resource.strategy.indexed_fields
        self.key: str | None = None
        name = self._name(ctx)
        if name is not None:
            where = ctx.info.namespace or (self.fields.exact("metadata.namespace") or "")
            if where or not ctx.resource.namespaced:
                self.key = ctx.resource.key(where, name)
        self.matches: Match = self._below if self.everything else self._matches
        self._conversion: Conversion | None = None
        custom = ctx.resource.custom
        if custom is not None and custom.conversion.webhook is not None and not self.everything:
            self._conversion = custom.conversion
            self._api_version = ctx.resource.api_version
            self.matches = self._matches_converted

    def _name(self, ctx: ResourceRequest) -> str | None:
        """Single name of the selection. A name in the path (`/watch/…`) must agree with the field selector."""
        chosen = self.fields.exact("metadata.name")
        if ctx.info.watch_path and ctx.info.name:
            if not self.fields.empty and chosen != ctx.info.name:
                raise status.bad_request("fieldSelector metadata.name doesn't match requested name")
            return ctx.info.name
        return chosen

    @property
    def everything(self) -> bool:
        """Whether the selection has no selector. A name counts as a selector."""
        return self.labels.empty and self.fields.empty and self.key is None

    @property
    def indexed(self) -> bool:
        """Whether kube-apiserver finds the objects by an index, and so knows that no more objects follow."""
        return any(self.fields.exact(label) is not None for label in self._indexed_fields)

    def _below(self, entry: Entry) -> bool:
        return entry.key.startswith(self.prefix)

    def _matches(self, entry: Entry) -> bool:
        if self.key is not None:
            if entry.key != self.key:
                return False
        elif not entry.key.startswith(self.prefix):
            return False
        if not self.labels.empty and not self.labels.matches(entry.labels):
            return False
        return self.fields.empty or self.fields.matches(_all_fields(entry))

    @property
    def converts(self) -> bool:
        """Whether a conversion webhook may change labels or fields, so that objects are converted before they are
        matched."""
        return self._conversion is not None

    async def see(self, entries: Iterable[Entry | None]) -> None:
        """Convert objects, so that they can be matched."""
        if self._conversion is not None:
            for entry in entries:
                if entry is not None and self._below(entry):
                    await self._conversion.entry(entry, self._api_version)

    def _matches_converted(self, entry: Entry) -> bool:
        assert self._conversion is not None
        return self._matches(self._conversion.seen(entry, self._api_version))

    @property
    def _equality(self) -> tuple[str, str] | None:
        """Label and value that every matching stored object has; used for the label index."""
        if self._conversion is not None:
            return None
        return next(iter(self.labels.equalities.items()), None)

    async def ready(self, collection: Collection) -> None:
        """Build the indexes that `candidates` and `matches` use."""
        await self.see(list(self.candidates(collection, "")) if self.converts else ())
        if self.key is None and not self.everything:
            equality = self._equality
            await collection.examine(equality[0] if equality is not None else None)

    def candidates(self, collection: Collection, start: str) -> Iterator[Entry]:
        """Entries of the newest state that may match, in key order, from the best index."""
        if self.key is not None:
            entry = collection.get(self.key)
            return iter(() if entry is None or self.key < start else (entry,))
        equality = self._equality
        if equality is None:
            return collection.below(self.prefix, start)
        entries = collection.labelled(*equality)
        if not start and self.prefix == collection.kind.prefix:
            return iter(entries)
        first = max(start, self.prefix)
        return (entry for entry in entries if entry.key >= first and entry.key.startswith(self.prefix))

    def among(self, entries: SortedDict[str, Entry] | Past, start: str) -> Iterator[Entry]:
        """Entries of a past state that may match."""
        keys = entries.irange(max(start, self.prefix), self.prefix[:-1] + "0", (True, False))
        return (entries[key] for key in keys)


def _all_fields(entry: Entry) -> dict[str, str]:
    return {**entry.fields, "metadata.name": entry.name, "metadata.namespace": entry.namespace}


def known_fields(ctx: ResourceRequest, chosen: FieldSelector) -> FieldSelector:
    """Field selector in terms of stored fields; 400 for a field that the kind does not support."""
    strategy = ctx.resource.strategy
    for requirement in chosen.requirements:
        label = requirement[0]
        if label == "metadata.name" or label in strategy.field_labels:
            continue
        if label == "metadata.namespace" and strategy.namespace_selectable:
            continue
        raise status.bad_request(strategy.unsupported_field_label(label))
    if not strategy.stored_labels or chosen.empty:
        return chosen
    stored = strategy.stored_labels
    return FieldSelector(
        tuple((stored.get(name, name), operator, value) for name, operator, value in chosen.requirements)
    )
