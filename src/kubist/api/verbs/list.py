"""list: a consistent view of a collection, whole or in chunks, from the cache."""

from __future__ import annotations

from kubist.api.verbs.list_pages import find_page
from kubist.api.verbs.options import list_options
from kubist.api.verbs.resource_request import ResourceRequest
from kubist.api.verbs.responses import negotiate_representation, respond, respond_object
from kubist.api.verbs.selection import Selection, known_fields
from kubist.api.verbs.storage_version import entry_in_request_version
from kubist.base.http.messages import Response


async def list_(ctx: ResourceRequest) -> Response:
    shown = negotiate_representation(ctx, "list")
    options = await list_options(ctx.query)
    virtual = ctx.resource.strategy.virtual_objects(ctx.info.namespace)
    if virtual is not None:
        fields = known_fields(ctx, options.fields)
        items = [
            dict(obj)
            for obj in virtual
            if options.labels.matches(obj["metadata"].get("labels"))
            and fields.matches({"metadata.name": obj["metadata"]["name"]})
        ]
        for item in items:
            del item["kind"], item["apiVersion"]
        kind, api_version = ctx.resource.list_kind, ctx.resource.api_version
        listed = {"kind": kind, "apiVersion": api_version, "metadata": {}, "items": items}
        return await respond_object(ctx, 200, listed, shown)
    page = await find_page(ctx, options, Selection(ctx, options))
    if ctx.resource.custom:
        page.entries = [await entry_in_request_version(ctx, entry) for entry in page.entries]
    body = await shown.whole_list(page.entries, page.meta(custom=ctx.resource.custom is not None))
    return await respond(ctx, 200, body, shown.content_type)
