"""Validation of a Service on create and update, in the order of the reported errors."""

from __future__ import annotations

from typing import Any

from kubist.api.kinds.core.service_families import (
    externally_accessible,
    is_headless,
    needs_health_check,
    validate_cluster_ips,
)
from kubist.api.kinds.shared.ip import parse_ip, validate_cidr, validate_endpoint_ip, validate_ip
from kubist.api.kinds.shared.values import validate_port, validate_port_or_name, validate_protocol
from kubist.api.resources.strategy import Errors
from kubist.model.meta import names
from kubist.model.meta.fields import duplicate, forbidden, invalid, not_supported, required
from kubist.model.meta.labels import validate_labels
from kubist.model.meta.object import Object

TOPOLOGY_HINTS = "service.kubernetes.io/topology-aware-hints"
TOPOLOGY_MODE = "service.kubernetes.io/topology-mode"
SOURCE_RANGES = "service.beta.kubernetes.io/load-balancer-source-ranges"

SESSION_AFFINITIES = ("ClientIP", "None")
TYPES = ("ClusterIP", "ExternalName", "LoadBalancer", "NodePort")
TRAFFIC_POLICIES = ("Cluster", "Local")
TRAFFIC_DISTRIBUTIONS = ("PreferClose", "PreferSameZone", "PreferSameNode")
IP_MODES = ("Proxy", "VIP")
MAX_AFFINITY_SECONDS = 86400
_ONLY_LOAD_BALANCER = "may only be used when `type` is 'LoadBalancer'"

Spec = dict[str, Any]


def validate_service(service: Object, old: Object | None) -> Errors:
    """Validates the service by itself. `old` only allows address forms that were valid when they were stored."""
    spec: Spec = service["spec"]
    before: Spec = old["spec"] if old else {}
    annotations = service["metadata"].get("annotations") or {}
    return [
        *_validate_topology(annotations),
        *_validate_type_fields(spec),
        *_validate_ports(spec),
        *validate_labels(spec.get("selector"), "spec.selector"),
        *_validate_affinity(spec),
        *validate_cluster_ips(spec, before or None),
        *_validate_external_ips(spec, before),
        *_validate_type(spec),
        *_validate_unique_ports(spec),
        *_validate_source_ranges(spec, before, annotations, old),
        *_validate_load_balancer(spec),
        *_validate_load_balancer_class(spec),
        *_validate_external_traffic(spec),
        *_validate_internal_traffic(spec),
        *_validate_distribution(spec),
    ]


def validate_service_update(service: Object, old: Object) -> Errors:
    spec, before = service["spec"], old["spec"]
    errors: Errors = []
    if "ExternalName" not in (spec.get("type"), before.get("type")):
        errors += _validate_changed_ips(spec, before)
        errors += _validate_changed_families(spec, before)
    if spec.get("type") == before.get("type") == "LoadBalancer":
        load_balancer_class = spec.get("loadBalancerClass")
        if load_balancer_class != before.get("loadBalancerClass"):
            errors.append(invalid("spec.loadBalancerClass", load_balancer_class, "may not change once set"))
    errors += _validate_load_balancer_class(spec)
    if (
        needs_health_check(spec)
        and needs_health_check(before)
        and spec.get("healthCheckNodePort") != before.get("healthCheckNodePort")
    ):
        errors.append(forbidden("spec.healthCheckNodePort", "field is immutable"))
    return errors + validate_service(service, old)


def _validate_changed_ips(spec: Spec, before: Spec) -> Errors:
    """Rejects changes of clusterIPs: the first is fixed; a second may be added, and removed with policy
    SingleStack."""
    if is_headless(spec) and is_headless(before):
        return []
    ips, old_ips = spec.get("clusterIPs") or [], before.get("clusterIPs") or []
    unchangeable = "may not change once set"
    if len(ips) == len(old_ips):
        return [
            invalid(f"spec.clusterIPs[{i}]", ips, unchangeable)
            for i, (ip, old_ip) in enumerate(zip(ips, old_ips, strict=True))
            if ip != old_ip
        ]
    errors: Errors = []
    if not ips:
        errors.append(invalid("spec.clusterIPs[0]", None, "primary clusterIP can not be unset"))
    elif old_ips and ips[0] != old_ips[0]:
        errors.append(invalid("spec.clusterIPs[0]", ips, unchangeable))
    policy = spec.get("ipFamilyPolicy")
    if len(ips) < len(old_ips) and len(ips) == 1 and policy != "SingleStack":
        detail = "must be set to 'SingleStack' when releasing the secondary clusterIP"
        errors.append(invalid("spec.ipFamilyPolicy", policy, detail))
    return errors


def _validate_changed_families(spec: Spec, before: Spec) -> Errors:
    if is_headless(spec) or is_headless(before):
        return []
    families, old_families = spec.get("ipFamilies") or [], before.get("ipFamilies") or []
    ips = spec.get("clusterIPs") or []
    path, unchangeable = "spec.ipFamilies[0]", "may not change once set"
    if len(families) == len(old_families):
        pairs = zip(families, old_families, strict=True)
        return [invalid(path, families, unchangeable) for family, old in pairs if family != old]
    errors: Errors = []
    shrinks = len(families) < len(old_families)
    if shrinks and not ips:
        errors.append(invalid(path, families, "primary ipFamily can not be unset"))
    if families and old_families and families[0] != old_families[0]:
        errors.append(invalid(path, ips, unchangeable))
    policy = spec.get("ipFamilyPolicy")
    if shrinks and len(families) == 1 and policy != "SingleStack":
        detail = "must be set to 'SingleStack' when releasing the secondary ipFamily"
        errors.append(invalid("spec.ipFamilyPolicy", policy, detail))
    return errors


def _validate_topology(annotations: dict[str, str]) -> Errors:
    hints, mode = annotations.get(TOPOLOGY_HINTS), annotations.get(TOPOLOGY_MODE)
    if hints is None or mode is None or hints == mode:
        return []
    detail = f"must match annotations[{TOPOLOGY_HINTS}] when both are specified"
    return [invalid(f"metadata.annotations[{TOPOLOGY_MODE}]", mode, detail)]


def _validate_type_fields(spec: Spec) -> Errors:
    errors: Errors = []
    kind, headless = spec.get("type"), is_headless(spec)
    if not spec.get("ports") and not headless and kind != "ExternalName":
        errors.append(required("spec.ports"))
    if kind in ("LoadBalancer", "NodePort") and headless:
        detail = f"may not be set to 'None' for {kind} services"
        errors.append(invalid("spec.clusterIPs[0]", "None", detail))
    elif kind == "ExternalName":
        errors += [
            forbidden(f"spec.{field}", "may not be set for ExternalName services")
            for field in ("clusterIPs", "ipFamilies", "ipFamilyPolicy")
            if spec.get(field) or (field == "ipFamilyPolicy" and field in spec)
        ]
        external_name = spec.get("externalName", "").removesuffix(".")
        if external_name:
            messages = names.dns_subdomain(external_name)
            errors += [invalid("spec.externalName", external_name, message) for message in messages]
        else:
            errors.append(required("spec.externalName"))
    return errors


def _validate_ports(spec: Spec) -> Errors:
    errors: Errors = []
    ports = spec.get("ports") or ()
    seen: set[str] = set()
    for i, port in enumerate(ports):
        path = f"spec.ports[{i}]"
        name = port.get("name", "")
        if name:
            errors += [invalid(f"{path}.name", name, message) for message in names.dns_label(name)]
            if name in seen:
                errors.append(duplicate(f"{path}.name", name))
            seen.add(name)
        elif len(ports) > 1:
            errors.append(required(f"{path}.name"))
        errors += validate_port(port.get("port", 0), f"{path}.port")
        errors += validate_protocol(port.get("protocol", ""), f"{path}.protocol")
        errors += validate_port_or_name(port.get("targetPort", 0), f"{path}.targetPort")
        if (protocol := port.get("appProtocol")) is not None:
            messages = names.qualified_name(protocol)
            errors += [invalid(f"{path}.appProtocol", protocol, message) for message in messages]
    return errors


def _validate_affinity(spec: Spec) -> Errors:
    errors: Errors = []
    affinity = spec.get("sessionAffinity", "")
    if not affinity:
        errors.append(required("spec.sessionAffinity"))
    elif affinity not in SESSION_AFFINITIES:
        errors.append(not_supported("spec.sessionAffinity", affinity, SESSION_AFFINITIES))
    if affinity == "ClientIP":
        timeout = ((spec.get("sessionAffinityConfig") or {}).get("clientIP") or {}).get("timeoutSeconds", 0)
        if not 0 < timeout <= MAX_AFFINITY_SECONDS:
            detail = f"must be greater than 0 and less than {MAX_AFFINITY_SECONDS}"
            path = "spec.sessionAffinityConfig.clientIP.timeoutSeconds"
            errors.append(invalid(path, timeout, detail))
    return errors


def _validate_external_ips(spec: Spec, before: Spec) -> Errors:
    errors: Errors = []
    old_ips = frozenset(before.get("externalIPs") or ())
    for i, ip in enumerate(spec.get("externalIPs") or ()):
        path = f"spec.externalIPs[{i}]"
        errors += validate_ip(ip, path, old_ips) or validate_endpoint_ip(ip, path)
    return errors


def _validate_type(spec: Spec) -> Errors:
    kind = spec.get("type", "")
    if not kind:
        return [required("spec.type")]
    if kind not in TYPES:
        return [not_supported("spec.type", kind, TYPES)]
    if kind != "ClusterIP":
        return []
    return [
        forbidden(f"spec.ports[{i}].nodePort", "may not be used when `type` is 'ClusterIP'")
        for i, port in enumerate(spec.get("ports") or ())
        if port.get("nodePort")
    ]


def _validate_unique_ports(spec: Spec) -> Errors:
    errors: Errors = []
    ports = spec.get("ports") or ()
    node_ports: set[tuple[str, int]] = set()
    for i, port in enumerate(ports):
        number = port.get("nodePort", 0)
        key = (port.get("protocol", ""), number)
        if number and key in node_ports:
            errors.append(duplicate(f"spec.ports[{i}].nodePort", number))
        node_ports.add(key)
    numbers: set[tuple[str, int]] = set()
    for i, port in enumerate(ports):
        key = (port.get("protocol", ""), port.get("port", 0))
        if key in numbers:
            value = {
                "Name": "",
                "Protocol": key[0],
                "AppProtocol": None,
                "Port": key[1],
                "TargetPort": 0,
                "NodePort": 0,
            }
            errors.append(duplicate(f"spec.ports[{i}]", value))
        numbers.add(key)
    return errors


def _validate_source_ranges(
    spec: Spec, before: Spec, annotations: dict[str, str], old: Object | None
) -> Errors:
    """Validates loadBalancerSourceRanges or, if unset, the annotation that preceded it. Spaces around a CIDR are
    allowed."""
    errors: Errors = []
    ranges = spec.get("loadBalancerSourceRanges")
    if ranges:
        path = "spec.LoadBalancerSourceRanges"
        if spec.get("type") != "LoadBalancer":
            errors.append(forbidden(path, _ONLY_LOAD_BALANCER))
        known = {value.strip() for value in before.get("loadBalancerSourceRanges") or ()}
        for i, value in enumerate(ranges):
            errors += validate_cidr(value.strip(), f"{path}[{i}]", known)
    elif (text := annotations.get(SOURCE_RANGES)) is not None:
        path = f"metadata.annotations[{SOURCE_RANGES}]"
        if spec.get("type") != "LoadBalancer":
            errors.append(forbidden(path, _ONLY_LOAD_BALANCER))
        old_text = (old["metadata"].get("annotations") or {}).get(SOURCE_RANGES, "") if old else None
        if text != old_text and text.strip():
            for value in text.split(","):
                errors += validate_cidr(value.strip(), path)
    return errors


def _validate_load_balancer(spec: Spec) -> Errors:
    allocate = spec.get("allocateLoadBalancerNodePorts")
    if spec.get("type") != "LoadBalancer":
        if allocate is not None:
            return [forbidden("spec.allocateLoadBalancerNodePorts", _ONLY_LOAD_BALANCER)]
    elif allocate is None:
        return [required("allocateLoadBalancerNodePorts")]
    return []


def _validate_load_balancer_class(spec: Spec) -> Errors:
    value = spec.get("loadBalancerClass")
    if value is None:
        return []
    if spec.get("type") != "LoadBalancer":
        return [forbidden("spec.loadBalancerClass", _ONLY_LOAD_BALANCER)]
    return [invalid("spec.loadBalancerClass", value, message) for message in names.qualified_name(value)]


def _validate_external_traffic(spec: Spec) -> Errors:
    errors: Errors = []
    policy, path = spec.get("externalTrafficPolicy", ""), "spec.externalTrafficPolicy"
    if not externally_accessible(spec):
        if policy:
            errors.append(invalid(path, policy, "may only be set for externally-accessible services"))
    elif not policy:
        errors.append(required(path))
    elif policy not in TRAFFIC_POLICIES:
        errors.append(not_supported(path, policy, TRAFFIC_POLICIES))
    port, path = spec.get("healthCheckNodePort", 0), "spec.healthCheckNodePort"
    if not needs_health_check(spec):
        if port:
            detail = "may only be set when `type` is 'LoadBalancer' and `externalTrafficPolicy` is 'Local'"
            errors.append(invalid(path, port, detail))
    elif not port:
        errors.append(required(path))
    else:
        errors += validate_port(port, path)
    return errors


def _validate_internal_traffic(spec: Spec) -> Errors:
    path, policy = "spec.internalTrafficPolicy", spec.get("internalTrafficPolicy")
    if policy is None:
        return [required(path)] if spec.get("type") in ("NodePort", "LoadBalancer", "ClusterIP") else []
    return [] if policy in TRAFFIC_POLICIES else [not_supported(path, policy, TRAFFIC_POLICIES)]


def _validate_distribution(spec: Spec) -> Errors:
    value = spec.get("trafficDistribution")
    if value is None or value in TRAFFIC_DISTRIBUTIONS:
        return []
    return [not_supported("spec.trafficDistribution", value, TRAFFIC_DISTRIBUTIONS)]


def validate_load_balancer_status(service: Object, old: Object) -> Errors:
    path = "status.loadBalancer.ingress"
    ingress = service["status"]["loadBalancer"].get("ingress") or []
    if ingress and service["spec"].get("type") != "LoadBalancer":
        return [forbidden(path, "may only be used when `spec.type` is 'LoadBalancer'")]
    known = {item["ip"] for item in old["status"]["loadBalancer"].get("ingress") or () if item.get("ip")}
    errors: Errors = []
    for i, item in enumerate(ingress):
        ip, mode, hostname = item.get("ip", ""), item.get("ipMode"), item.get("hostname", "")
        if ip:
            errors += validate_ip(ip, f"{path}[{i}].ip", known)
        if mode is None:
            if ip:
                errors.append(required(f"{path}[{i}].ipMode", "must be specified when `ip` is set"))
        elif not ip:
            errors.append(forbidden(f"{path}[{i}].ipMode", "may not be specified when `ip` is not set"))
        elif mode not in IP_MODES:
            errors.append(not_supported(f"{path}[{i}].ipMode", mode, IP_MODES))
        if hostname:
            errors += [
                invalid(f"{path}[{i}].hostname", hostname, message)
                for message in names.dns_subdomain(hostname)
            ]
            if parse_ip(hostname) is not None:
                detail = "must be a DNS name, not an IP address"
                errors.append(invalid(f"{path}[{i}].hostname", hostname, detail))
    return errors
