"""EndpointSlice: part of a service's endpoints, all of one address type, with common ports."""

from __future__ import annotations

from collections.abc import Iterable
from typing import TYPE_CHECKING, Any

from kubist.api.kinds.shared.ip import (
    ip_warnings,
    is_ipv6,
    validate_canonical_ip,
    validate_endpoint_ip,
    validate_ip,
)
from kubist.api.kinds.shared.update import immutable
from kubist.api.kinds.shared.values import PROTOCOLS
from kubist.api.resources.strategy import Errors, Strategy
from kubist.model.meta import names
from kubist.model.meta.fields import duplicate, invalid, not_supported, required, too_many
from kubist.model.meta.labels import validate_labels
from kubist.model.meta.object import Object
from kubist.model.meta.objectmeta import raise_generation

if TYPE_CHECKING:
    from kubist.api.resources.context import Context

ADDRESS_TYPES = ("FQDN", "IPv4", "IPv6")
MAX_ENDPOINTS = 1000
MAX_ADDRESSES = 100
MAX_PORTS = 20000
MAX_TOPOLOGY_LABELS = 16
MAX_HINTS = 8
MANAGED_BY = "endpointslice.kubernetes.io/managed-by"
CONTROLLERS = ("endpointslice-controller.k8s.io", "endpointslicemirroring-controller.k8s.io")
_HOSTNAME_LABEL = "kubernetes.io/hostname"


class EndpointSliceStrategy(Strategy):
    generation_fields = ("addressType", "endpoints", "ports")
    metadata_rules = ("object",)

    def default(self, obj: Object) -> None:
        for port in obj.get("ports") or ():
            port.setdefault("name", "")
            port.setdefault("protocol", "TCP")

    def prepare(self, ctx: Context, new: Object, old: Object | None) -> None:
        """Increments the generation if labels or endpoints change, even if only a dropped deprecatedTopology
        changed."""
        if old is None:
            _drop_topology(new, None)
            return
        changed = new.get("endpoints") != old.get("endpoints")
        if changed or new["metadata"].get("labels") != old["metadata"].get("labels"):
            raise_generation(new, old)
        if changed:
            _drop_topology(new, old)

    def validate(self, ctx: Context, new: Object, old: Object | None) -> Errors:
        errors = [*_validate_address_type(new), *_validate_ports(new)]
        if old is None:
            return errors + _validate_endpoints(new)
        if new.get("endpoints") != old.get("endpoints"):
            errors += _validate_endpoints(new)
        return errors + immutable(new.get("addressType"), old.get("addressType"), "addressType", "string")

    def warnings(self, ctx: Context, new: Object, old: Object | None) -> Iterable[str]:
        if old is None and new.get("addressType") == "FQDN":
            yield "spec.addressType: FQDN endpoints are deprecated"
        yield from _warnings(new)


def _drop_topology(new: Object, old: Object | None) -> None:
    """Drops deprecatedTopology, which v1 does not write. A hostname that the old object has becomes nodeName."""
    known = {
        name
        for endpoint in (old or {}).get("endpoints") or ()
        if (name := (endpoint.get("deprecatedTopology") or {}).get(_HOSTNAME_LABEL))
    }
    for endpoint in new.get("endpoints") or ():
        name = (endpoint.pop("deprecatedTopology", None) or {}).get(_HOSTNAME_LABEL)
        if name and name in known and endpoint.get("nodeName") is None and not names.dns_subdomain(name):
            endpoint["nodeName"] = name


def _validate_address_type(slice_: Object) -> Errors:
    kind = slice_.get("addressType", "")
    if not kind:
        return [required("addressType")]
    return [] if kind in ADDRESS_TYPES else [not_supported("addressType", kind, ADDRESS_TYPES)]


def _validate_ports(slice_: Object) -> Errors:
    ports = slice_.get("ports") or ()
    if len(ports) > MAX_PORTS:
        return [too_many("ports", len(ports), MAX_PORTS)]
    errors: Errors = []
    seen: set[str] = set()
    for i, port in enumerate(ports):
        path, name = f"ports[{i}]", port.get("name") or ""
        if name:
            errors += [invalid(f"{path}.name", name, message) for message in names.dns_label(name)]
        if name in seen:
            errors.append(duplicate(f"{path}.name", name))
        seen.add(name)
        if port["protocol"] not in PROTOCOLS:
            errors.append(not_supported(f"{path}.protocol", port["protocol"], PROTOCOLS))
        if (protocol := port.get("appProtocol")) is not None:
            messages = names.qualified_name(protocol)
            errors += [invalid(f"{path}.appProtocol", protocol, message) for message in messages]
    return errors


def _validate_endpoints(slice_: Object) -> Errors:
    endpoints = slice_.get("endpoints") or ()
    if len(endpoints) > MAX_ENDPOINTS:
        return [too_many("endpoints", len(endpoints), MAX_ENDPOINTS)]
    errors: Errors = []
    for i, endpoint in enumerate(endpoints):
        errors += _validate_endpoint(endpoint, slice_.get("addressType", ""), f"endpoints[{i}]")
    return errors


def _validate_endpoint(endpoint: dict[str, Any], kind: str, path: str) -> Errors:
    errors: Errors = []
    addresses = endpoint.get("addresses") or ()
    if not addresses:
        errors.append(required(f"{path}.addresses", "must contain at least 1 address"))
    elif len(addresses) > MAX_ADDRESSES:
        errors.append(too_many(f"{path}.addresses", len(addresses), MAX_ADDRESSES))
    for i, address in enumerate(addresses):
        errors += _validate_address(address, kind, f"{path}.addresses", i)
    if (node := endpoint.get("nodeName")) is not None:
        errors += [invalid(f"{path}.nodeName", node, message) for message in names.dns_subdomain(node)]
    if topology := endpoint.get("deprecatedTopology"):
        where = f"{path}.deprecatedTopology"
        if len(topology) > MAX_TOPOLOGY_LABELS:
            errors.append(too_many(where, len(topology), MAX_TOPOLOGY_LABELS))
        errors += validate_labels(topology, where)
    if (hostname := endpoint.get("hostname")) is not None:
        errors += [invalid(f"{path}.hostname", hostname, message) for message in names.dns_label(hostname)]
    if (hints := endpoint.get("hints")) is not None:
        errors += _validate_hints(hints, f"{path}.hints")
    return errors


def _validate_address(address: str, kind: str, path: str, index: int) -> Errors:
    where = f"{path}[{index}]"
    if kind == "FQDN":
        return _validate_domain(address, where)
    if kind not in ("IPv4", "IPv6"):
        return []
    errors = validate_ip(address, where) if kind == "IPv4" else validate_canonical_ip(address, where)
    if errors:
        return errors
    if is_ipv6(address) != (kind == "IPv6"):
        errors.append(invalid(path, address, f"must be an {kind} address"))
    return errors + validate_endpoint_ip(address, where)


def _validate_domain(name: str, path: str) -> Errors:
    """Validates a domain name: at least two labels, optionally a trailing dot."""
    if not name:
        return [required(path)]
    name = name.removesuffix(".")
    if messages := names.dns_subdomain(name):
        return [invalid(path, name, ",".join(messages))]
    labels = name.split(".")
    if len(labels) < 2:
        detail = "should be a domain with at least two segments separated by dots"
        return [invalid(path, name, detail)]
    for label in labels:
        if messages := names.dns_label(label):
            return [invalid(path, label, ",".join(messages))]
    return []


def _validate_hints(hints: dict[str, Any], path: str) -> Errors:
    errors: Errors = []
    for field, check in (("forZones", names.label_value), ("forNodes", names.dns_subdomain)):
        entries = hints.get(field) or ()
        if len(entries) > MAX_HINTS:
            errors.append(too_many(f"{path}.{field}", len(entries), MAX_HINTS))
            return errors
        seen: set[str] = set()
        for i, hint in enumerate(entries):
            name, where = hint.get("name", ""), f"{path}.{field}[{i}].name"
            if name in seen:
                errors.append(duplicate(where, name))
            seen.add(name)
            errors += [invalid(where, name, message) for message in check(name)]
    return errors


def _warnings(slice_: Object) -> Iterable[str]:
    if (slice_["metadata"].get("labels") or {}).get(MANAGED_BY) in CONTROLLERS:
        return
    for i, endpoint in enumerate(slice_.get("endpoints") or ()):
        for j, address in enumerate(endpoint.get("addresses") or ()):
            yield from ip_warnings(address, f"endpoints[{i}].addresses[{j}]")


strategy = EndpointSliceStrategy()
