"""Pod `/log`, `/exec`, `/attach`, `/portforward` and `/proxy`: validation. The kubelet of simulated nodes then
answers; no other kubelet is reachable from this server."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING

from kubist.api.kinds.core.podspec.visit import containers_of
from kubist.api.kinds.core.service_proxy import split_name
from kubist.api.kinds.shared.ip import parse_ip
from kubist.api.resources.context import is_simulated
from kubist.api.resources.strategy import Connect, Errors
from kubist.base.jsontext.quoting import quoted
from kubist.model.meta.fields import forbidden, invalid
from kubist.model.meta.numerals import decimal
from kubist.model.meta.object import Object
from kubist.model.meta.status import APIError, bad_request, internal_error, not_found, plain_error
from kubist.model.meta.status import forbidden as forbidden_status
from kubist.model.meta.status import invalid as invalid_status
from kubist.model.meta.times import parse_time

if TYPE_CHECKING:
    from kubist.api.resources.context import Context, Kubelet
    from kubist.base.http.messages import Answer

_KUBELET_PORT = 10250
_ADDRESS_TYPES = ("Hostname", "InternalDNS", "InternalIP", "ExternalDNS", "ExternalIP")
_is_integer = re.compile("[-+]?[0-9]+", re.ASCII).fullmatch


def _pod(ctx: Context, name: str) -> Object:
    pod = ctx.objects.get("pods", name, ctx.namespace)
    if pod is None:
        raise not_found("", "pods", name)
    return pod


def _container(ctx: Context, pod: Object) -> str:
    """Requested container. A pod with several containers needs the `container` parameter."""
    name, containers = ctx.query.get("container", ""), containers_of(pod["spec"])
    names = [container.get("name", "") for container in containers]
    if name:
        if name not in names:
            raise bad_request(f"container {name} is not valid for pod {ctx.name}")
        return name
    regular = pod["spec"].get("containers") or []
    if len(regular) == 1:
        return str(regular[0].get("name", ""))
    choice = f", choose one of: [{' '.join(names)}]" if regular else ""
    raise bad_request(f"a container name must be specified for pod {ctx.name}{choice}")


def _kubelet(ctx: Context, node_name: str) -> Kubelet | str:
    """Kubelet of a simulated node, else host:port of the node's kubelet."""
    node = ctx.objects.get("nodes", node_name)
    if node is None:
        # kube-apiserver names the resource of the request (pods), not the missing resource (nodes).
        raise not_found("", "pods", node_name)
    if ctx.api.kubelet is not None and is_simulated(node):
        return ctx.api.kubelet
    status = node.get("status") or {}
    addresses = status.get("addresses") or []
    for kind in _ADDRESS_TYPES:
        for address in addresses:
            if address.get("type") == kind and address.get("address"):
                endpoint = (status.get("daemonEndpoints") or {}).get("kubeletEndpoint") or {}
                return f"{address['address']}:{endpoint.get('Port') or _KUBELET_PORT}"
    raise plain_error(f"no preferred addresses found; known addresses: {addresses}")


class PodLog(Connect):
    methods = ("GET",)
    negotiated = True

    async def connect(self, ctx: Context) -> tuple[int, str, bytes] | Answer:
        errors = _log_option_errors(ctx)
        if errors:
            raise invalid_status("", "PodLogOptions", ctx.name, errors)
        pod = _pod(ctx, ctx.name)
        container = _container(ctx, pod)
        node = pod["spec"].get("nodeName")
        if not node:
            return 204, "", b""
        where = _kubelet(ctx, node)
        if not isinstance(where, str):
            return await where.logs(ctx, pod, container)
        path = f"containerLogs/{ctx.namespace}/{ctx.name}/{container}"
        raise internal_error(f'Get "https://{where}/{path}": kubelets are not reachable from this server')


def _log_option_errors(ctx: Context) -> Errors:
    errors: Errors = []
    numbers = {name: _number(ctx.query[name]) for name in _LOG_MINIMUMS if name in ctx.query}
    if ctx.query.get("sinceTime"):
        _check_time(ctx.query["sinceTime"])
    both = "sinceSeconds" in numbers and bool(ctx.query.get("sinceTime"))
    for name, (minimum, why) in _LOG_MINIMUMS.items():
        if both and name == "sinceSeconds":
            why = "at most one of `sinceTime` or `sinceSeconds` may be specified"
            errors.append(forbidden("[]", why))
        elif name in numbers and numbers[name] < minimum:
            errors.append(invalid(name, numbers[name], why))
    if "stream" in ctx.query:
        errors.append(forbidden("stream", "may not be specified"))
    return errors


_LOG_MINIMUMS = {
    "tailLines": (0, "must be greater than or equal to 0"),
    "limitBytes": (1, "must be greater than 0"),
    "sinceSeconds": (1, "must be greater than 0"),
}


def _number(text: str) -> int:
    if not _is_integer(text):
        raise bad_request(f"strconv.ParseInt: parsing {quoted(text)}: invalid syntax")
    number = decimal(text)
    if not -(1 << 63) <= number < 1 << 63:
        raise bad_request(f"strconv.ParseInt: parsing {quoted(text)}: value out of range")
    return number


def _check_time(text: str) -> None:
    try:
        parse_time(text)
    except ValueError as error:
        raise bad_request(str(error)) from None


def _check_ports(text: str) -> None:
    for part in text.split(","):
        if not (part.isascii() and part.isdigit()):
            why = "invalid syntax"
        elif decimal(part) > 65535:
            why = "value out of range"
        else:
            continue
        problem = f"strconv.ParseUint: parsing {quoted(part)}: {why}"
        raise bad_request(f"cannot convert to []int32: {problem}")


class PodStream(Connect):
    """`/exec`, `/attach`, `/portforward`: a stream to a container through its kubelet."""

    def __init__(self, *, of_container: bool) -> None:
        self.of_container = of_container

    async def connect(self, ctx: Context) -> Answer:
        if ctx.verb != "create":
            await self._authorize(ctx)
        if not self.of_container and "ports" in ctx.query:
            _check_ports(ctx.query["ports"])
        pod = _pod(ctx, ctx.name)
        container = _container(ctx, pod) if self.of_container else ""
        node = pod["spec"].get("nodeName")
        if not node:
            raise bad_request(f"pod {ctx.name} does not have a host assigned")
        where = _kubelet(ctx, node)
        if isinstance(where, str):
            raise internal_error(f"error dialing backend: {where} is not reachable from this server")
        if ctx.subresource == "exec":
            return await where.exec(ctx, pod, container)
        if ctx.subresource == "attach":
            return await where.attach(ctx, pod, container)
        return await where.port_forward(ctx, pod)

    async def _authorize(self, ctx: Context) -> None:
        """Requires `create` for GET too, because a GET that upgrades the connection has the same effect as a POST."""
        allowed, reason = await ctx.authorize(
            "create",
            resource="pods",
            subresource=ctx.subresource,
            namespace=ctx.namespace,
            name=ctx.name,
        )
        if not allowed:
            raise forbidden_status("", "pods", ctx.name, reason)


class PodProxy(Connect):
    methods = ("GET", "POST", "PUT", "PATCH", "DELETE", "HEAD", "OPTIONS")

    async def connect(self, ctx: Context) -> Answer:
        scheme, name, port = split_name(ctx.name)
        if not name or scheme not in ("", "http", "https"):
            raise bad_request(f"invalid pod request {quoted(ctx.name)}")
        pod = _pod(ctx, name)
        addresses = (pod.get("status") or {}).get("podIPs") or [{}]
        address = parse_ip(addresses[0].get("ip", ""))
        if address is None or address.is_loopback or address.is_multicast or address.is_unspecified:
            raise bad_request("address not allowed")
        if address.is_link_local:
            raise bad_request("address not allowed")
        ports = [p for c in pod["spec"].get("containers") or () for p in c.get("ports") or ()]
        port_text = port or (str(ports[0].get("containerPort")) if ports else "80")
        node = ctx.objects.get("nodes", pod["spec"].get("nodeName") or "")
        if ctx.api.kubelet is not None and node is not None and is_simulated(node) and port_text.isdecimal():
            return await ctx.api.kubelet.proxy(ctx, pod, decimal(port_text))
        raise _unreachable(f"{address}:{port_text}")


def _unreachable(where: str) -> APIError:
    return APIError(503, "ServiceUnavailable", f"error trying to reach service: {where} is not reachable")
