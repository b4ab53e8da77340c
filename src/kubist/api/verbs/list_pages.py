"""Pages of a list: the entries that list options select, from the cache or, for older versions, from the history."""

from __future__ import annotations

from typing import Any

from kubist.api.verbs import continuation, removedversions, resource_versions
from kubist.api.verbs.options import ListOptions
from kubist.api.verbs.resource_request import ResourceRequest
from kubist.api.verbs.selection import Selection
from kubist.model.meta import status
from kubist.storage.cache.cache import Collection, Entry
from kubist.storage.store import Compacted, Unavailable


class Page:
    """Page of a list: entries, resource version, start key of the next chunk, number of remaining entries."""

    __slots__ = ("entries", "next", "remaining", "revision")

    def __init__(self, revision: int) -> None:
        self.revision = revision
        self.entries: list[Entry] = []
        self.next = ""
        self.remaining: int | None = None

    def meta(self, *, custom: bool) -> dict[str, Any]:
        meta: dict[str, Any] = {"resourceVersion": str(self.revision)}
        if self.next:
            meta["continue"] = continuation.encode(self.revision, self.next)
            if self.remaining is not None:
                meta["remainingItemCount"] = self.remaining
        elif custom:
            meta["continue"] = ""
        return meta


async def find_page(ctx: ResourceRequest, options: ListOptions, selection: Selection) -> Page:
    """Page of the list that the options select."""
    collection = ctx.api.registry.collection(ctx.resource)
    if not collection.loaded:
        await collection.ready()
    if ctx.resource.custom:
        removedversions.check_list(ctx, collection, options, selection)
    await selection.ready(collection)
    asked = options.resource_version
    if collection.unreadable and asked != "0":
        await _catch_up(ctx)
        ctx.api.registry.readable(collection, selection.key or selection.prefix)
    limit = options.limit
    if options.continue_:
        revision, start = continuation.decode(options.continue_)
        if asked not in ("", "0"):
            raise status.bad_request("specifying resource version is not allowed when using continue")
        if asked and ctx.resource.strategy.cached:
            limit = 0
        if revision == continuation.ANY:
            await _catch_up(ctx)
            return _today(ctx, collection, selection, limit, selection.prefix + start)
        await resource_versions.reach(ctx, revision)
        return await _past(collection, selection, limit, selection.prefix + start, revision)
    if not asked:
        await _catch_up(ctx)
        return _today(ctx, collection, selection, limit, "")
    version = resource_versions.parse(ctx, asked)
    if version == 0:
        return _today(ctx, collection, selection, limit if not ctx.resource.strategy.cached else 0, "")
    await resource_versions.reach(ctx, version)
    exact = options.resource_version_match == "Exact"
    if exact or (limit and not options.resource_version_match):
        return await _past(collection, selection, limit, "", version)
    return _today(ctx, collection, selection, limit, "")


async def _catch_up(ctx: ResourceRequest) -> None:
    try:
        await ctx.api.registry.cache.catch_up()
    except Unavailable as error:
        raise status.unavailable(str(error)) from None


def _today(
    ctx: ResourceRequest, collection: Collection, selection: Selection, limit: int, start: str
) -> Page:
    page = Page(ctx.api.registry.cache.revision)
    if selection.everything and not limit and not start:
        page.entries = list(collection.below(selection.prefix))
        return page
    _collect(page, selection.candidates(collection, start), selection, limit)
    if limit and len(page.entries) == limit:
        if selection.indexed:
            rest = selection.candidates(collection, page.entries[-1].key + "\0")
            if not any(selection.matches(entry) for entry in rest):
                return page
        _more(page, collection.entries, selection)
    return page


async def _past(collection: Collection, selection: Selection, limit: int, start: str, revision: int) -> Page:
    """Page at an earlier resource version, from the cache's window or the store's history."""
    page = Page(revision)
    try:
        entries = await collection.past(revision)
    except Compacted:
        raise _expired(start, selection) from None
    except Unavailable as error:
        raise status.unavailable(str(error)) from None
    if selection.converts:
        await selection.see(selection.among(entries, start))
    _collect(page, selection.among(entries, start), selection, limit)
    if limit and len(page.entries) == limit:
        _more(page, entries, selection)
    return page


def _expired(start: str, selection: Selection) -> status.APIError:
    """410 Expired. A chunked list gets a token that continues in the newest state."""
    if not start:
        return status.gone("The resourceVersion for the provided list is too old.")
    error = status.gone(
        "The provided continue parameter is too old to display a consistent list result. You can start a new "
        "list without the continue parameter, or use the continue token in this response to retrieve the "
        "remainder of the results. Continuing with the provided token results in an inconsistent list - objects "
        "that were created, modified, or deleted between the time the first chunk was returned and now may show "
        "up in the list."
    )
    token = continuation.encode(continuation.ANY, start[len(selection.prefix) :])
    error.list_meta = {"continue": token}
    return error


def _collect(page: Page, candidates: Any, selection: Selection, limit: int) -> None:
    plain = selection.everything
    found = page.entries
    for entry in candidates:
        if plain or selection.matches(entry):
            found.append(entry)
            if len(found) == limit:
                break


def _more(page: Page, entries: Any, selection: Selection) -> None:
    """Set the start key of the next chunk if any entry, matching or not, follows the last one."""
    if selection.key is not None:
        return
    last = page.entries[-1].key
    after = entries.bisect_right(last)
    end = entries.bisect_left(selection.prefix[:-1] + "0")
    if after < end:
        page.next = last[len(selection.prefix) :] + "\0"
        if selection.everything:
            page.remaining = end - after
