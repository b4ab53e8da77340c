"""Node proxy: would forward a request to the node's kubelet. The address is checked, then the proxy replies 503."""

from __future__ import annotations

from typing import TYPE_CHECKING

from kubist.api.kinds.core.service_proxy import split_name
from kubist.api.kinds.shared.ip import is_global_unicast, parse_ip
from kubist.api.resources.strategy import Connect
from kubist.base.jsontext.quoting import quoted
from kubist.model.meta.status import bad_request, not_found, plain_error, unavailable

if TYPE_CHECKING:
    from kubist.api.resources.context import Context

PREFERRED = ("Hostname", "InternalDNS", "InternalIP", "ExternalDNS", "ExternalIP")
KUBELET_PORT = 10250


class NodeProxy(Connect):
    methods = ("GET", "POST", "PUT", "PATCH", "DELETE", "HEAD", "OPTIONS")

    async def connect(self, ctx: Context) -> tuple[int, str, bytes]:
        """Validates the node and its address, then fails with 503 because this server does not reach kubelets."""
        scheme, name, port = split_name(ctx.name)
        if not name or scheme not in ("", "http", "https"):
            raise bad_request(f"invalid node request {quoted(ctx.name)}")
        node = ctx.objects.get("nodes", name)
        if node is None:
            raise not_found("", "nodes", name)
        known = node["status"].get("addresses") or []
        by_type = {address.get("type"): address.get("address", "") for address in reversed(known)}
        host = next((by_type[kind] for kind in PREFERRED if kind in by_type), None)
        if host is None:
            raise plain_error(f"no preferred addresses found; known addresses: {known}")
        address = parse_ip(host)
        if address is not None and not is_global_unicast(address):
            raise bad_request("address not allowed")
        where = f"{host}:{port or KUBELET_PORT}"
        raise unavailable(f"error trying to reach service: {where} is not reachable")
