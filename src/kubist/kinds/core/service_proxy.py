"""Service proxy: would forward a request to a pod of the service. This server reaches no pods, so it replies 503."""

from __future__ import annotations

from typing import TYPE_CHECKING, ClassVar

from kubist.meta.fields import quoted
from kubist.meta.status import bad_request, not_found, unavailable
from kubist.resources.strategy import Connect

if TYPE_CHECKING:
    from kubist.resources.context import Context


class ServiceProxy(Connect):
    methods: ClassVar[tuple[str, ...]] = ("GET", "POST", "PUT", "PATCH", "DELETE", "HEAD", "OPTIONS")

    async def connect(self, ctx: Context) -> tuple[int, str, bytes]:
        """Validates the request, then fails with 503 "no endpoints available", because this server reaches no pods."""
        scheme, name, port = split_name(ctx.name)
        if not name or scheme not in ("", "http", "https"):
            raise bad_request(f"invalid service request {quoted(ctx.name)}")
        if port.isdecimal():
            service = ctx.objects.get("services", name, ctx.namespace)
            if service is None:
                raise not_found("", "services", name)
            if int(port) not in [item.get("port") for item in service["spec"].get("ports") or ()]:
                raise unavailable(f"no service port {port} found for service {quoted(name)}")
        endpoints = ctx.objects.get("endpoints", name, ctx.namespace)
        if endpoints is None:
            raise not_found("", "services", name)
        shown = ctx.name if endpoints.get("subsets") else name
        raise unavailable(f"no endpoints available for service {quoted(shown)}")


def split_name(text: str) -> tuple[str, str, str]:
    """Scheme, name and port of `name`, `name:port` or `scheme:name:port`."""
    parts = text.split(":")
    if len(parts) == 1:
        return "", text, ""
    if len(parts) == 2:
        return "", parts[0], parts[1]
    return (parts[0], parts[1], parts[2]) if len(parts) == 3 else ("", "", "")
