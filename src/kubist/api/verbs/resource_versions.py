"""Resource versions: optimistic locking of writes, parsing, and waiting for versions that the cache has not reached."""

from __future__ import annotations

from kubist.api.verbs.resource_request import ResourceRequest
from kubist.model.meta import fields, status
from kubist.model.meta.numerals import unsigned
from kubist.model.meta.object import Object
from kubist.storage.cache.cache import Entry

WAIT_SECONDS = 3.0
MODIFIED = "the object has been modified; please apply your changes to the latest version and try again"


def is_stored_version(text: str) -> bool:
    """Whether a resourceVersion is a positive number, like that of a stored object."""
    number = unsigned(text)
    return isinstance(number, int) and number > 0


def version_error(version: str) -> str:
    """Error text for a malformed resourceVersion; empty if it is well-formed."""
    number = unsigned(version)
    return number if isinstance(number, str) else ""


def check_resource_version(ctx: ResourceRequest, new: Object, entry: Entry) -> None:
    """Optimistic locking: 409 if the new object has a resourceVersion that is not the stored one."""
    version = new["metadata"].get("resourceVersion", "")
    if version == str(entry.revision):
        return
    if version not in ("", "0"):
        if why := version_error(version):
            raise status.plain_error(why)
        if int(version) != entry.revision:
            raise ctx.conflict(ctx.info.name, MODIFIED)
    elif not ctx.resource.strategy.unconditional_update:
        error = fields.invalid("metadata.resourceVersion", 0, "must be specified for an update")
        raise status.invalid(ctx.resource.group, ctx.resource.resource, ctx.info.name, [error])


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
        ctx.requested_wait = WAIT_SECONDS
        raise _too_large(version, cache.revision, retry_after=1)


def _too_large(version: int, current: int, retry_after: int) -> status.APIError:
    cause = {"reason": "ResourceVersionTooLarge", "message": "Too large resource version"}
    message = f"Timeout: Too large resource version: {version}, current: {current}"
    return status.timeout(message, retry_after, [cause])
