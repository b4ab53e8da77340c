"""Service proxy: a request passed on to a pod behind a service, if there is one to reach."""

from __future__ import annotations

from typing import TYPE_CHECKING, ClassVar

from kubist.kinds.strategy import Connect
from kubist.meta.fields import quoted
from kubist.meta.status import bad_request, not_found, unavailable

if TYPE_CHECKING:
    from kubist.context import Context


class ServiceProxy(Connect):
    methods: ClassVar[tuple[str, ...]] = ("GET", "POST", "PUT", "PATCH", "DELETE", "HEAD", "OPTIONS")

    async def connect(self, ctx: Context) -> tuple[int, str, bytes]:
        """Pods are not reachable from here: as with a service that has no endpoints."""
        scheme, name, port = split_name(ctx.name)
        if not name or scheme not in ("", "http", "https"):
            raise bad_request(f"invalid service request {quoted(ctx.name)}")
        service = ctx.objects.get("services", name, ctx.namespace)
        if service is None:
            raise not_found("", "services", name)
        ports = [item.get("port") for item in service["spec"].get("ports") or ()]
        if port.isdecimal() and int(port) not in ports:
            raise unavailable(f"no service port {port} found for service {quoted(name)}")
        raise unavailable(f"no endpoints available for service {quoted(name)}")


def split_name(text: str) -> tuple[str, str, str]:
    """Scheme, name and port of `name`, `name:port` or `scheme:name:port`."""
    parts = text.split(":")
    if len(parts) == 1:
        return "", text, ""
    if len(parts) == 2:
        return "", parts[0], parts[1]
    return (parts[0], parts[1], parts[2]) if len(parts) == 3 else ("", "", "")
