"""Resource versions of requests: parsing, and waiting for versions that the cache has not reached."""

from __future__ import annotations

from kubist.meta import status
from kubist.meta.numerals import unsigned
from kubist.verbs.resource_request import ResourceRequest

WAIT_SECONDS = 3.0


def parse(ctx: ResourceRequest, text: str) -> int:
    """Resource version as a number. A malformed one is 400 in a list and an unclassified 500 elsewhere, as in the
    reference."""
    number = unsigned(text)
    if isinstance(number, int):
        return number
    message = f'resourceVersion: Invalid value: "{text}": {number}'
    uncached_get = ctx.info.verb == "get" and not ctx.resource.strategy.cached
    if ctx.info.verb in ("list", "deletecollection") or uncached_get:
        raise status.bad_request(f"invalid resource version: {message}")
    raise status.plain_error(message)


async def reach(ctx: ResourceRequest, version: int) -> None:
    """Wait until the cache has reached a version; 504 after WAIT_SECONDS."""
    cache = ctx.api.registry.cache
    if version <= cache.revision:
        return
    if not ctx.resource.strategy.cached:
        current = await ctx.api.registry.store.revision()
        if version > current:
            raise _too_large(version, current, retry_after=0)
    await ctx.api.registry.store.request_progress()
    if not await cache.wait(version, WAIT_SECONDS):
        raise _too_large(version, cache.revision, retry_after=1)


def _too_large(version: int, current: int, retry_after: int) -> status.APIError:
    cause = {"reason": "ResourceVersionTooLarge", "message": "Too large resource version"}
    message = f"Timeout: Too large resource version: {version}, current: {current}"
    return status.timeout(message, retry_after, [cause])
