"""Service proxy: passes a request to a ready pod of the service. Only pods of simulated nodes are reachable."""

from __future__ import annotations

from typing import TYPE_CHECKING

from kubist.api.resources.context import is_simulated
from kubist.api.resources.strategy import Connect
from kubist.base.jsontext.quoting import quoted
from kubist.model.meta.object import Object
from kubist.model.meta.status import bad_request, not_found, unavailable

if TYPE_CHECKING:
    from kubist.api.resources.context import Context
    from kubist.base.http.messages import Answer


class ServiceProxy(Connect):
    methods = ("GET", "POST", "PUT", "PATCH", "DELETE", "HEAD", "OPTIONS")

    async def connect(self, ctx: Context) -> Answer:
        """Passes the request to the first ready pod behind the port; 503 if no such pod is reachable from this
        server."""
        scheme, name, port = split_name(ctx.name)
        if not name or scheme not in ("", "http", "https"):
            raise bad_request(f"invalid service request {quoted(ctx.name)}")
        if port.isdecimal():
            service = ctx.objects.get("services", name, ctx.namespace)
            if service is None:
                raise not_found("", "services", name)
            ports = service["spec"].get("ports") or ()
            names = [item.get("name", "") for item in ports if item.get("port") == int(port)]
            if not names:
                raise unavailable(f"no service port {port} found for service {quoted(name)}")
            port = names[0]
        endpoints = ctx.objects.get("endpoints", name, ctx.namespace)
        if endpoints is None:
            raise not_found("", "services", name)
        if ctx.api.kubelet is not None:
            for subset in endpoints.get("subsets") or ():
                for number in [
                    item["port"] for item in subset.get("ports") or () if item.get("name", "") == port
                ]:
                    for address in subset.get("addresses") or ():
                        pod = _simulated_pod(ctx, address)
                        if pod is not None:
                            return await ctx.api.kubelet.proxy(ctx, pod, number)
        service_name = ctx.name if endpoints.get("subsets") else name
        raise unavailable(f"no endpoints available for service {quoted(service_name)}")


def _simulated_pod(ctx: Context, address: Object) -> Object | None:
    """Pod of a simulated node that has the address of an endpoint. As in kube-apiserver, the endpoint must name it."""
    target = address.get("targetRef") or {}
    if target.get("kind") != "Pod" or target.get("namespace") != ctx.namespace:
        return None
    pod = ctx.objects.get("pods", target.get("name", ""), ctx.namespace)
    if pod is None:
        return None
    node = ctx.objects.get("nodes", pod["spec"].get("nodeName") or "")
    addresses = [item.get("ip") for item in (pod.get("status") or {}).get("podIPs") or ()]
    return pod if node is not None and is_simulated(node) and address.get("ip") in addresses else None


def split_name(text: str) -> tuple[str, str, str]:
    """Scheme, name and port of `name`, `name:port` or `scheme:name:port`."""
    parts = text.split(":")
    if len(parts) == 1:
        return "", text, ""
    if len(parts) == 2:
        return "", parts[0], parts[1]
    return (parts[0], parts[1], parts[2]) if len(parts) == 3 else ("", "", "")
