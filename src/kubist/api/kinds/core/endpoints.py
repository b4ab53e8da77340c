"""Endpoints: addresses of a service's pods, the predecessor of EndpointSlice."""

from __future__ import annotations

from collections.abc import Iterable
from typing import TYPE_CHECKING

from kubist.api.kinds.shared.ip import ip_warnings, validate_endpoint_ip, validate_ip
from kubist.api.kinds.shared.values import validate_port, validate_protocol
from kubist.api.resources.strategy import Errors, Strategy
from kubist.model.meta import names
from kubist.model.meta.fields import invalid, required
from kubist.model.meta.object import Object

if TYPE_CHECKING:
    from kubist.api.resources.context import Context

MANAGED_BY = "endpoints.kubernetes.io/managed-by"
CONTROLLER = "endpoint-controller"


class EndpointsStrategy(Strategy):
    create_on_update = True
    deprecation = "v1 Endpoints is deprecated in v1.33+; use discovery.k8s.io/v1 EndpointSlice"
    metadata_rules = ("update", "object")

    def default(self, obj: Object) -> None:
        for subset in obj.get("subsets") or ():
            for port in subset.get("ports") or ():
                port.setdefault("protocol", "TCP")

    def validate(self, ctx: Context, new: Object, old: Object | None) -> Errors:
        if old is not None and new.get("subsets") == old.get("subsets"):
            return []
        errors: Errors = []
        for i, subset in enumerate(new.get("subsets") or ()):
            errors += _validate_subset(subset, f"subsets[{i}]")
        return errors

    def warnings(self, ctx: Context, new: Object, old: Object | None) -> Iterable[str]:
        return _warnings(new)


def _validate_subset(subset: Object, path: str) -> Errors:
    errors: Errors = []
    addresses, not_ready = subset.get("addresses") or (), subset.get("notReadyAddresses") or ()
    if not addresses and not not_ready:
        errors.append(required(path, "must specify `addresses` or `notReadyAddresses`"))
    for i, address in enumerate(addresses):
        errors += _validate_address(address, f"{path}.addresses[{i}]")
    for i, address in enumerate(not_ready):
        errors += _validate_address(address, f"{path}.notReadyAddresses[{i}]")
    ports = subset.get("ports") or ()
    for i, port in enumerate(ports):
        errors += _validate_port(port, len(ports) > 1, f"{path}.ports[{i}]")
    return errors


def _validate_address(address: Object, path: str) -> Errors:
    ip = address.get("ip", "")
    errors = validate_ip(ip, f"{path}.ip")
    if hostname := address.get("hostname"):
        errors += [invalid(f"{path}.hostname", hostname, message) for message in names.dns_label(hostname)]
    if (node := address.get("nodeName")) is not None:
        errors += [invalid(f"{path}.nodeName", node, message) for message in names.dns_subdomain(node)]
    return errors + validate_endpoint_ip(ip, f"{path}.ip")


def _validate_port(port: Object, named: bool, path: str) -> Errors:
    errors: Errors = []
    name = port.get("name", "")
    if name:
        errors += [invalid(f"{path}.name", name, message) for message in names.dns_label(name)]
    elif named:
        errors.append(required(f"{path}.name"))
    errors += validate_port(port.get("port", 0), f"{path}.port")
    errors += validate_protocol(port.get("protocol", ""), f"{path}.protocol")
    if (protocol := port.get("appProtocol")) is not None:
        messages = names.qualified_name(protocol)
        errors += [invalid(f"{path}.appProtocol", protocol, message) for message in messages]
    return errors


def _warnings(endpoints: Object) -> Iterable[str]:
    if (endpoints["metadata"].get("labels") or {}).get(MANAGED_BY) == CONTROLLER:
        return
    for i, subset in enumerate(endpoints.get("subsets") or ()):
        for field in ("addresses", "notReadyAddresses"):
            for j, address in enumerate(subset.get(field) or ()):
                yield from ip_warnings(address.get("ip", ""), f"subsets[{i}].{field}[{j}].ip")


strategy = EndpointsStrategy()
