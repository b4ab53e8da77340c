"""Service: a stable address and ports for pods. This module sets, keeps and drops the fields that depend on its
type.

Validation is in `service_validation`, addresses in `service_addresses`, node ports in `service_ports`.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import TYPE_CHECKING, Any, ClassVar

from kubist.api.kinds.core import service_addresses, service_families, service_ports, service_validation
from kubist.api.kinds.core.service_families import externally_accessible, is_headless, needs_health_check
from kubist.api.kinds.core.service_proxy import ServiceProxy
from kubist.api.kinds.shared.ip import cidr_warnings, ip_warnings
from kubist.api.resources.strategy import Errors, Status, Strategy, Subresource
from kubist.base.jsontext.quoting import quoted
from kubist.model.meta import names
from kubist.model.meta.object import Object
from kubist.model.meta.status import APIError, invalid

if TYPE_CHECKING:
    from kubist.api.resources.allocations import Allocations
    from kubist.api.resources.context import Context

CLIENT_IP_TIMEOUT = 10800
_NODE_PORT_TYPES = ("NodePort", "LoadBalancer")


class ServiceStatus(Status):
    def validate(self, ctx: Context, new: Object, old: Object) -> Errors:
        return service_validation.validate_load_balancer_status(new, old)

    def warnings(self, ctx: Context, new: Object, old: Object) -> Iterable[str]:
        for i, ingress in enumerate(new["status"]["loadBalancer"].get("ingress") or ()):
            if ip := ingress.get("ip"):
                yield from ip_warnings(ip, f"status.loadBalancer.ingress[{i}]")


class ServiceStrategy(Strategy):
    create_on_update = True
    returns_deleted = True
    validate_name = staticmethod(names.dns_label)
    reset_fields = ("status",)
    first_status: ClassVar = {"loadBalancer": {}}
    field_labels: Mapping[str, str] = {"spec.clusterIP": "spec.clusterIP", "spec.type": "spec.type"}
    subresources: Mapping[str, Subresource] = {
        "status": ServiceStatus(),
        "proxy": ServiceProxy(),
    }

    def default(self, obj: Object) -> None:
        spec = obj["spec"]
        affinity = spec.setdefault("sessionAffinity", "None")
        if affinity == "None":
            spec.pop("sessionAffinityConfig", None)
        elif affinity == "ClientIP":
            client_ip = (spec.get("sessionAffinityConfig") or {}).get("clientIP") or {}
            if client_ip.get("timeoutSeconds") is None:
                spec["sessionAffinityConfig"] = {"clientIP": {"timeoutSeconds": CLIENT_IP_TIMEOUT}}
        kind = spec.setdefault("type", "ClusterIP")
        for port in spec.get("ports") or ():
            port.setdefault("protocol", "TCP")
            if not port.get("targetPort"):
                port["targetPort"] = port.get("port", 0)
        if "externalTrafficPolicy" not in spec and externally_accessible(spec):
            spec["externalTrafficPolicy"] = "Cluster"
        if kind in ("ClusterIP", "NodePort", "LoadBalancer"):
            spec.setdefault("internalTrafficPolicy", "Cluster")
        if kind == "LoadBalancer":
            spec.setdefault("allocateLoadBalancerNodePorts", True)
            for ingress in obj["status"]["loadBalancer"].get("ingress") or ():
                if ingress.get("ip"):
                    ingress.setdefault("ipMode", "VIP")

    async def before_write(
        self, ctx: Context, new: Object, old: Object | None, allocations: Allocations
    ) -> None:
        spec, before = new["spec"], old["spec"] if old is not None else None
        if before is not None:
            service_families.carry_over_allocated(spec, before)
        service_families.normalize_cluster_ips(spec, before)
        await _allocate(ctx, new, old, allocations)

    def prepare(self, ctx: Context, new: Object, old: Object | None) -> None:
        if old is not None:
            _drop_fields_of_other_types(new, old)
        _hide_internal_traffic_policy(new["spec"])

    def validate(self, ctx: Context, new: Object, old: Object | None) -> Errors:
        if old is None:
            return service_validation.validate_service(new, None)
        return service_validation.validate_service_update(new, old)

    def warnings(self, ctx: Context, new: Object, old: Object | None) -> Iterable[str]:
        return _warnings(new)

    def default_stored(self, obj: Object) -> None:
        service_families.complete_stored(obj["spec"])

    async def after_update(self, ctx: Context, new: Object, old: Object) -> None:
        await service_addresses.release(
            ctx, service_addresses.addresses_of(old) - service_addresses.addresses_of(new)
        )
        await service_ports.release(ctx, service_ports.ports_of(old) - service_ports.ports_of(new))

    async def after_delete(self, ctx: Context, obj: Object) -> None:
        metadata = obj["metadata"]
        await service_addresses.release(ctx, service_addresses.addresses_of(obj))
        await service_ports.release(ctx, service_ports.ports_of(obj))
        if ctx.objects.get("endpoints", metadata["name"], metadata["namespace"]) is not None:
            try:
                await ctx.objects.delete("endpoints", metadata["name"], metadata["namespace"])
            except APIError as error:
                if error.code != 404:
                    raise


async def _allocate(ctx: Context, new: Object, old: Object | None, allocations: Allocations) -> None:
    """Sets the IP families, then allocates the cluster IPs and node ports that `new` has and `old` does not."""
    spec = new["spec"]
    config = service_addresses.families(ctx.config)
    errors = service_families.init_families(spec, old["spec"] if old else None, config)
    if errors:
        raise invalid("", "Service", new["metadata"].get("name", ""), errors)
    await service_addresses.allocate(ctx, new, old, allocations)
    await service_ports.allocate(ctx, new, old, allocations)


def _drop_fields_of_other_types(new: Object, old: Object) -> None:
    """On a change of type, drops unchanged fields that the new type does not have."""
    spec, before = new["spec"], old["spec"]
    kind, old_kind = spec.get("type"), before.get("type")
    if kind == "ExternalName" and old_kind != "ExternalName":
        if _same(spec, before, "clusterIP") and _same(spec, before, "clusterIPs"):
            spec.pop("clusterIP", None)
            spec.pop("clusterIPs", None)
        for field in ("ipFamilies", "ipFamilyPolicy"):
            if _same(spec, before, field):
                spec.pop(field, None)
    if (
        old_kind in _NODE_PORT_TYPES
        and kind not in _NODE_PORT_TYPES
        and _node_ports(spec) <= _node_ports(before)
    ):
        for port in spec.get("ports") or ():
            port.pop("nodePort", None)
    if (
        needs_health_check(before)
        and not needs_health_check(spec)
        and _same(spec, before, "healthCheckNodePort")
    ):
        spec.pop("healthCheckNodePort", None)
    if old_kind == "LoadBalancer" and kind != "LoadBalancer":
        for field in ("allocateLoadBalancerNodePorts", "loadBalancerClass"):
            if _same(spec, before, field):
                spec.pop(field, None)
    if (
        externally_accessible(before)
        and not externally_accessible(spec)
        and _same(spec, before, "externalTrafficPolicy")
    ):
        spec.pop("externalTrafficPolicy", None)
    if kind != "LoadBalancer":
        new["status"] = {**new["status"], "loadBalancer": {}}


def _hide_internal_traffic_policy(spec: Object) -> None:
    """Drops a valid internalTrafficPolicy of an ExternalName service, which must not have the field. An invalid value
    is left for validation."""
    valid = spec.get("internalTrafficPolicy") in service_validation.TRAFFIC_POLICIES
    if valid and spec.get("type") == "ExternalName":
        del spec["internalTrafficPolicy"]


def _same(spec: Object, before: Object, field: str) -> bool:
    return bool(spec.get(field) == before.get(field))


def _node_ports(spec: Object) -> set[int]:
    return {port["nodePort"] for port in spec.get("ports") or () if port.get("nodePort")}


def _warnings(service: Object) -> Iterable[str]:
    spec: dict[str, Any] = service["spec"]
    kind = spec.get("type")
    hints, mode = service_validation.TOPOLOGY_HINTS, service_validation.TOPOLOGY_MODE
    if hints in (service["metadata"].get("annotations") or {}):
        yield f"annotation {hints} is deprecated, please use {mode} instead"
    external_ips = spec.get("externalIPs") or ()
    headless = kind == "ClusterIP" and spec.get("clusterIP") == "None"
    if not is_headless(spec) and spec.get("clusterIP"):
        for i, ip in enumerate(spec.get("clusterIPs") or ()):
            yield from ip_warnings(ip, f"spec.clusterIPs[{i}]")
    if headless:
        if spec.get("loadBalancerIP"):
            yield "spec.loadBalancerIP is ignored for headless services"
        if external_ips:
            yield "spec.externalIPs is ignored for headless services"
        if spec.get("sessionAffinity") != "None":
            yield "spec.SessionAffinity is ignored for headless services"
    for i, ip in enumerate(external_ips):
        yield from ip_warnings(ip, f"spec.externalIPs[{i}]")
    if external_ips and not headless and kind != "ExternalName":
        yield "spec.externalIPs is deprecated and may no longer be implemented in some clusters"
    if ip := spec.get("loadBalancerIP"):
        yield from ip_warnings(ip, "spec.loadBalancerIP")
    for i, cidr in enumerate(spec.get("loadBalancerSourceRanges") or ()):
        yield from cidr_warnings(cidr, f"spec.loadBalancerSourceRanges[{i}]")
    if kind == "ExternalName" and external_ips:
        yield 'spec.externalIPs is ignored when spec.type is "ExternalName"'
    if kind != "ExternalName" and spec.get("externalName"):
        yield 'spec.externalName is ignored when spec.type is not "ExternalName"'
    if spec.get("trafficDistribution") == "PreferClose":
        yield f'spec.trafficDistribution: {quoted("PreferClose")} is deprecated; use "PreferSameZone"'


strategy = ServiceStrategy()
