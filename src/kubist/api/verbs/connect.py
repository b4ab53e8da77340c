"""connect: subresources that are not objects, such as log, exec or proxy."""

from __future__ import annotations

from typing import Any

from kubist.api.request import query_values, truthy
from kubist.api.resources.strategy import Connect
from kubist.api.verbs.resource_request import ResourceRequest
from kubist.api.verbs.responses import negotiate_representation
from kubist.base.http.messages import Answer, Response
from kubist.model.meta import status
from kubist.model.meta.numerals import decimal


def way_through(ctx: ResourceRequest) -> Connect | None:
    """Connect subresource of the request, or None."""
    if not ctx.info.subresource:
        return None
    subresource = ctx.resource.strategy.subresources.get(ctx.info.subresource)
    return subresource if isinstance(subresource, Connect) else None


async def connect(ctx: ResourceRequest, way: Connect) -> Answer:
    if ctx.request.method not in way.methods:
        raise status.method_not_allowed()
    if way.negotiated:
        negotiate_representation(ctx, "none")
    subresource = ctx.resource.subresources[ctx.info.subresource]
    if subresource.kind != ctx.resource.kind:
        await ctx.api.admission.connect(ctx, _options(ctx, subresource.kind))
    answer = await way.connect(ctx)
    if not isinstance(answer, tuple):
        return answer
    code, content_type, body = answer
    return Response(code, [(b"Content-Type", content_type.encode())] if content_type else [], body)


_FLAGS = ("stdin", "stdout", "stderr", "tty")


def _options(ctx: ResourceRequest, kind: str) -> dict[str, Any]:
    """Query parameters as an object of the subresource's options kind (PodExecOptions, for example)."""
    options: dict[str, Any] = {"kind": kind, "apiVersion": ctx.resource.api_version}
    if kind in ("PodExecOptions", "PodAttachOptions"):
        options |= {flag: True for flag in _FLAGS if truthy(ctx.query.get(flag))}
    if ctx.query.get("container"):
        options["container"] = ctx.query["container"]
    commands = query_values(ctx.request.query, "command")
    if commands:
        options["command"] = commands
    ports = [decimal(port) for port in query_values(ctx.request.query, "ports") if port.isdecimal()]
    if ports:
        options["ports"] = ports
    path = "/".join(ctx.info.parts[ctx.info.parts.index(ctx.info.subresource) + 1 :])
    if path:
        options["path"] = path
    return options
