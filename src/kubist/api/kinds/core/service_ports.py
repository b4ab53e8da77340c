"""Node port allocation: ports are allocated before the service is written and released after it is deleted.

The allocated ports are one RangeAllocation in the store. A kube-apiserver on the same etcd uses it as well.
"""

from __future__ import annotations

from functools import partial
from typing import TYPE_CHECKING, Any

from kubist.api.kinds.core.service_families import needs_health_check
from kubist.model.meta import fields
from kubist.model.meta.status import APIError, internal_error, invalid, plain_error

if TYPE_CHECKING:
    from kubist.api.config import Config
    from kubist.api.resources.allocations import Allocations
    from kubist.api.resources.context import Context, Objects
    from kubist.model.meta.object import Object

KEY = "/registry/ranges/servicenodeports"
_DRY_RUN_PORT = 32769


def port_range(config: Config) -> range:
    first, _, last = config.service_node_port_range.partition("-")
    return range(int(first), int(last or first) + 1)


def in_use(objects: Objects) -> set[int]:
    """Node ports of all services."""
    return {port for service in objects.list("services", None) for port in ports_of(service)}


def ports_of(service: Object) -> set[int]:
    """Node ports that a service holds."""
    spec = service["spec"]
    ports = {port["nodePort"] for port in spec.get("ports") or () if port.get("nodePort")}
    if needs_health_check(spec) and spec.get("healthCheckNodePort"):
        ports.add(spec["healthCheckNodePort"])
    return ports


async def allocate(ctx: Context, new: Object, old: Object | None, allocations: Allocations) -> None:
    """Allocates the node ports that `new` needs and `old` does not have. Sets nodePort and healthCheckNodePort."""
    node_ports = _NodePorts(ctx, new)
    if not ctx.dry_run:
        allocations.release_with(partial(release, ctx, node_ports.taken))
    spec = new["spec"]
    before = old["spec"] if old else {}
    if spec.get("type") in ("NodePort", "LoadBalancer"):
        if old is None:
            await _fill_new(node_ports, spec)
        else:
            await _fill_changed(node_ports, spec, {p.get("nodePort") for p in before.get("ports") or ()})
    if needs_health_check(spec) and not needs_health_check(before):
        await _fill_health_check(node_ports, spec)


def _needs_node_ports(spec: dict[str, Any]) -> bool:
    """Whether ports without a nodePort get one."""
    return spec["type"] == "NodePort" or spec.get("allocateLoadBalancerNodePorts", True) is not False


async def _fill_new(node_ports: _NodePorts, spec: dict[str, Any]) -> None:
    """Allocates node ports for a new service. Ports with the same number (TCP and UDP) share one."""
    shared: dict[int, int] = {}
    ports = spec.get("ports") or []
    asked_for = {p.get("port", 0): p["nodePort"] for p in reversed(ports) if p.get("nodePort")}
    for i, port in enumerate(ports):
        node_port = port.get("nodePort", 0)
        if not node_port and not _needs_node_ports(spec):
            continue
        number = port.get("port", 0)
        if number not in shared:
            fixed_port = asked_for.get(number, 0)
            shared[number] = port["nodePort"] = await (
                node_ports.take(fixed_port, i) if fixed_port else node_ports.take_any()
            )
        elif not node_port:
            port["nodePort"] = shared[number]
        elif node_port != shared[number]:
            await node_ports.take(node_port, i)


async def _fill_changed(node_ports: _NodePorts, spec: dict[str, Any], before: set[int | None]) -> None:
    seen: set[tuple[str, int]] = set()
    for i, port in enumerate(spec.get("ports") or ()):
        number = port.get("nodePort", 0)
        if number:
            if number not in before and number not in node_ports.taken:
                await node_ports.take(number, i)
        elif _needs_node_ports(spec):
            number = port["nodePort"] = await node_ports.take_any()
        else:
            continue
        key = (port.get("protocol", ""), number)
        if key in seen:
            raise plain_error(f"duplicate nodePort: {{{key[0]} {key[1]}}}")
        seen.add(key)


async def _fill_health_check(node_ports: _NodePorts, spec: dict[str, Any]) -> None:
    port = spec.get("healthCheckNodePort", 0)
    if not port:
        spec["healthCheckNodePort"] = await node_ports.take_any()
    elif why := await node_ports.try_allocate(port):
        raise internal_error(f"failed to allocate requested HealthCheck NodePort {port}: {why}")


class _NodePorts:
    """Node ports that one write allocates."""

    def __init__(self, ctx: Context, service: Object) -> None:
        self.ctx = ctx
        self.name: str = service["metadata"].get("name", "")
        self.taken: set[int] = set()
        self._highest = _DRY_RUN_PORT - 1

    async def try_allocate(self, port: int) -> str:
        """Allocates `port`. Returns an error message, or "" on success."""
        node_ports = self.ctx.objects.node_ports
        if port not in node_ports.numbers:
            if self.ctx.dry_run:
                return ""
            return f"provided port is not in the valid range. The range of valid ports is {node_ports.range}"
        if self.ctx.dry_run:
            free = port not in self.taken and port not in node_ports.allocated(await node_ports.read())
        else:
            free = await node_ports.allocate(port)
        if not free:
            return "provided port is already allocated"
        self.taken.add(port)
        self._highest = max(self._highest, port) if len(self.taken) > 1 else port
        return ""

    async def take(self, port: int, index: int) -> int:
        if why := await self.try_allocate(port):
            raise invalid(
                "", "Service", self.name, [fields.invalid(f"spec.ports[{index}].nodePort", port, why)]
            )
        return port

    async def take_any(self) -> int:
        if self.ctx.dry_run:
            self._highest += 1
            self.taken.add(self._highest)
            return self._highest
        port = await self.ctx.objects.node_ports.allocate_any()
        if port is None:
            raise _full()
        self.taken.add(port)
        return port


def _full() -> APIError:
    return internal_error("failed to allocate a nodePort: range is full")


def reserved(size: int) -> int:
    """Number of low ports that are reserved for services that request one."""
    return 0 if size <= 16 else min(max(16, size // 32), 128)


async def release(ctx: Context, ports: set[int]) -> None:
    if ports:
        await ctx.objects.node_ports.release(ports)
