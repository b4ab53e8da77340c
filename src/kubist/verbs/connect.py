"""connect: subresources that lead to something else than an object, such as log, exec or proxy."""

from __future__ import annotations

from typing import Any

from kubist.http.messages import Response
from kubist.meta import status
from kubist.request import query_values, truthy
from kubist.resources.strategy import Connect
from kubist.verbs.call import Call


def way_through(call: Call) -> Connect | None:
    """Connect subresource of the request, or None."""
    if not call.info.subresource:
        return None
    found = call.resource.strategy.subresources.get(call.info.subresource)
    return found if isinstance(found, Connect) else None


async def connect(call: Call, way: Connect) -> Response:
    if call.request.method not in way.methods:
        raise status.method_not_allowed()
    if way.negotiated:
        call.negotiate("none")
    found = call.resource.subresources[call.info.subresource]
    if found.kind != call.resource.kind:
        await call.api.admission.connect(call.context, _options(call, found.kind))
    code, content_type, body = await way.connect(call.context)
    return Response(code, [(b"Content-Type", content_type.encode())] if content_type else [], body)


_FLAGS = ("stdin", "stdout", "stderr", "tty")


def _options(call: Call, kind: str) -> dict[str, Any]:
    """Query parameters as an object of the subresource's options kind (PodExecOptions, for example)."""
    options: dict[str, Any] = {"kind": kind, "apiVersion": call.resource.api_version}
    if kind in ("PodExecOptions", "PodAttachOptions"):
        options |= {flag: True for flag in _FLAGS if truthy(call.query.get(flag))}
    if call.query.get("container"):
        options["container"] = call.query["container"]
    commands = query_values(call.request.query, "command")
    if commands:
        options["command"] = commands
    ports = [int(port) for port in query_values(call.request.query, "ports") if port.isdigit()]
    if ports:
        options["ports"] = ports
    path = "/".join(call.info.parts[call.info.parts.index(call.info.subresource) + 1 :])
    if path:
        options["path"] = path
    return options
