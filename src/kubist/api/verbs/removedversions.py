"""Custom objects that are stored in a version that their CRD no longer has. They cannot be converted. The reference's
cache never becomes ready then: reads of the cache get 429, reads of the store fail."""

from __future__ import annotations

from kubist.api.verbs.options import ListOptions
from kubist.api.verbs.resource_request import ResourceRequest
from kubist.api.verbs.selection import Selection
from kubist.model.meta import status
from kubist.storage.cache.cache import Collection


def check_list(
    ctx: ResourceRequest, collection: Collection, options: ListOptions, selection: Selection
) -> None:
    """Reject a list that would have to read such an object."""
    removed = collection.kind.removed_versions()
    if not removed:
        return
    asked = options.resource_version
    exact = options.resource_version_match == "Exact" or (options.limit and asked != "0")
    if ctx.info.verb == "list" and asked and not exact and not options.continue_:
        check_cache(ctx, collection)
    if selection.key is None and not options.limit:
        found = _first(collection, selection.prefix, removed)
        if found:
            raise status.plain_error(_why(found))


def check_cache(ctx: ResourceRequest, collection: Collection) -> None:
    """Reject a read of the cache, such as a watch, while it holds such an object."""
    removed = collection.kind.removed_versions()
    found = _first(collection, collection.kind.prefix, removed) if removed else ""
    if found:
        kind = f"{ctx.resource.api_version}, Kind={ctx.resource.kind}"
        raise status.too_many_requests(
            f"storage is (re)initializing: failed to list {kind}: {_why(found)}", 1
        )


def _first(collection: Collection, prefix: str, removed: frozenset[str]) -> str:
    versions = (entry.kind.api_version for entry in collection.below(prefix))
    return next((version for version in versions if version in removed), "")


def _why(version: str) -> str:
    return f"request to convert CR from an invalid group/version: {version}"
