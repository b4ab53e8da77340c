"""deletecollection: deletes every object of a selection, several at a time in key order. The first failure is the
response: no further deletion begins, and deleted objects stay deleted."""

from __future__ import annotations

import asyncio
from collections.abc import Iterable, Iterator

from kubist.api.verbs.delete import delete_object
from kubist.api.verbs.list import find_page
from kubist.api.verbs.options import DeleteOptions, delete_options, list_options, read_delete_options
from kubist.api.verbs.resource_request import ResourceRequest
from kubist.api.verbs.responses import negotiate_representation, respond
from kubist.api.verbs.selection import Selection
from kubist.api.verbs.storage_version import entry_in_request_version
from kubist.base.http.messages import Response
from kubist.model.meta import status
from kubist.storage.cache.cache import Entry

WORKERS = 64
"""Concurrent deletions, which share transactions of the store."""


async def deletecollection(ctx: ResourceRequest) -> Response:
    representation = negotiate_representation(ctx, "object")
    chosen = await list_options({name: value for name, value in ctx.query.items() if name != "watch"})
    selection = Selection(ctx, chosen)
    options = delete_options(read_delete_options(ctx), ctx.query)
    ctx.dry_run = options.dry_run
    ctx.options = options.to_json()
    ctx.resource.strategy.before_delete(ctx, "", options.propagation)
    if not (chosen.limit or chosen.continue_ or chosen.resource_version_match):
        chosen.resource_version_match = "Exact"  # as for any list that is read in chunks
    page = await find_page(ctx, chosen, selection)
    await remove_all(ctx, page.entries, options)
    if ctx.resource.custom:
        page.entries = [await entry_in_request_version(ctx, entry) for entry in page.entries]
    body_ = await representation.whole_list(page.entries, page.meta(custom=ctx.resource.custom is not None))
    return await respond(ctx, 200, body_, representation.content_type)


async def remove_all(ctx: ResourceRequest, entries: Iterable[Entry], options: DeleteOptions) -> None:
    """Delete the objects in their newest versions and skip those that are already deleted. Raises the first failure."""
    failures: list[BaseException] = []
    rest = iter(entries)
    await asyncio.gather(*(_work(ctx, rest, options, failures) for _ in range(WORKERS)))
    if failures:
        raise failures[0]


async def _work(
    ctx: ResourceRequest, rest: Iterator[Entry], options: DeleteOptions, failures: list[BaseException]
) -> None:
    while not failures:
        entry = next(rest, None)
        if entry is None:
            return
        try:
            current = await ctx.api.registry.read(ctx.resource, entry.namespace, entry.name)
            if current is not None:
                await delete_object(ctx, current, options)
        except status.APIError as error:
            if error.code != 404:
                failures.append(error)
        except Exception as error:
            failures.append(error)
