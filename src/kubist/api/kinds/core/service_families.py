"""IP families of a Service: derives clusterIP, clusterIPs, ipFamilies and ipFamilyPolicy from each other.

The result depends only on the spec, the old spec, and the families that the cluster is configured for.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from kubist.api.kinds.shared.ip import is_dual_stack, is_ipv6, validate_ip
from kubist.model.meta.fields import FieldError, duplicate, invalid, not_supported, required

Spec = dict[str, Any]
Errors = list[FieldError]

FAMILIES = ("IPv4", "IPv6")
POLICIES = ("PreferDualStack", "RequireDualStack", "SingleStack")


def is_headless(spec: Spec) -> bool:
    return spec.get("clusterIPs") == ["None"]


def externally_accessible(spec: Spec) -> bool:
    kind = spec.get("type")
    return kind in ("LoadBalancer", "NodePort") or (kind == "ClusterIP" and bool(spec.get("externalIPs")))


def needs_health_check(spec: Spec) -> bool:
    return spec.get("type") == "LoadBalancer" and spec.get("externalTrafficPolicy") == "Local"


def family_of(ip: str) -> str:
    return "IPv6" if is_ipv6(ip) else "IPv4"


def _other(family: str) -> str:
    return "IPv6" if family == "IPv4" else "IPv4"


def _put(spec: Spec, field: str, values: Sequence[str]) -> None:
    if values:
        spec[field] = list(values)
    else:
        spec.pop(field, None)


def normalize_cluster_ips(spec: Spec, before: Spec | None) -> None:
    """Keeps clusterIPs consistent with clusterIP for clients that know only clusterIP. No other fields matter."""
    ip, ips = spec.get("clusterIP", ""), spec.get("clusterIPs") or []
    if before is None:
        if ip and not ips:
            spec["clusterIPs"] = [ip]
        return
    old_ip, old_ips = before.get("clusterIP", ""), before.get("clusterIPs") or []
    if ip == old_ip:
        if not ips:
            _put(spec, "clusterIPs", old_ips)
    elif ips == old_ips:
        _put(spec, "clusterIPs", [] if old_ip and not ip else [ip])


def complete_stored(spec: Spec) -> None:
    """Adds clusterIPs and ipFamilies to services stored before these fields existed. Assumes IPv4 as the cluster's
    first family, which only matters for headless services."""
    normalize_cluster_ips(spec, None)
    if spec.get("type") == "ExternalName":
        spec.pop("internalTrafficPolicy", None)
        return
    if spec.get("ipFamilies"):
        return
    if spec.get("clusterIP") != "None":
        families = [family_of(ip) for ip in spec.get("clusterIPs") or ()]
    else:
        families = ["IPv4"] if spec.get("selector") else ["IPv4", "IPv6"]
    if families:
        spec["ipFamilies"] = families
        spec["ipFamilyPolicy"] = "SingleStack" if len(families) == 1 else "RequireDualStack"


def carry_over_allocated(spec: Spec, before: Spec) -> None:
    """Keeps allocated values that a client omits when it sends its original manifest again."""
    kind, old_kind = spec.get("type"), before.get("type")
    if kind != "ExternalName" and old_kind != "ExternalName":
        if not spec.get("clusterIP") and before.get("clusterIP"):
            spec["clusterIP"] = before["clusterIP"]
        if not spec.get("clusterIPs"):
            _put(spec, "clusterIPs", before.get("clusterIPs") or [])
    if _gets_node_ports(spec) and _gets_node_ports(before):
        by_name = {port.get("name", ""): port.get("nodePort", 0) for port in before.get("ports") or ()}
        kept = {port.get("nodePort") for port in spec.get("ports") or ()}.intersection(by_name.values())
        for port in spec.get("ports") or ():
            old_port = by_name.get(port.get("name", ""), 0)
            if not port.get("nodePort") and old_port and old_port not in kept:
                port["nodePort"] = old_port
    if needs_health_check(spec) and needs_health_check(before) and not spec.get("healthCheckNodePort"):
        port = before.get("healthCheckNodePort", 0)
        if port:
            spec["healthCheckNodePort"] = port


def _gets_node_ports(spec: Spec) -> bool:
    kind = spec.get("type")
    return kind == "NodePort" or (
        kind == "LoadBalancer" and spec.get("allocateLoadBalancerNodePorts", True) is not False
    )


def unchanged_prefer_dual_stack(spec: Spec, before: Spec | None) -> bool:
    """Whether a PreferDualStack service is unchanged. Such a service keeps its families when the cluster's families
    change."""
    return (
        before is not None
        and spec.get("ipFamilyPolicy") == "PreferDualStack"
        and before.get("ipFamilyPolicy", "PreferDualStack") == "PreferDualStack"
        and spec.get("type") == before.get("type")
        and spec.get("type") in ("ClusterIP", "NodePort", "LoadBalancer")
        and spec.get("clusterIPs") == before.get("clusterIPs")
        and spec.get("ipFamilies") == before.get("ipFamilies")
    )


def init_families(spec: Spec, before: Spec | None, configured: Sequence[str]) -> Errors:
    """Sets ipFamilyPolicy and ipFamilies. `configured` are the cluster's families, the default family first."""
    if spec.get("type") == "ExternalName" or unchanged_prefer_dual_stack(spec, before):
        return []
    bare_headless = spec.get("clusterIP") == "None" and not spec.get("selector")
    if "ipFamilyPolicy" not in spec:
        old_policy = before.get("ipFamilyPolicy") if before else None
        spec["ipFamilyPolicy"] = old_policy or ("RequireDualStack" if bare_headless else "SingleStack")
    errors = validate_cluster_ips(spec, before) or _reconcile(spec, before, configured)
    if errors:
        return errors
    families = list(spec.get("ipFamilies") or ())
    policy = spec["ipFamilyPolicy"]
    if bare_headless:
        families = families or [configured[0]]
        if len(families) < 2 and policy != "SingleStack":
            families.append(_other(families[0]))
        spec["ipFamilies"] = families
        return []
    if policy == "RequireDualStack" and len(configured) < 2:
        detail = "this cluster is not configured for dual-stack services"
        errors.append(invalid("spec.ipFamilyPolicy", policy, detail))
    errors += [
        invalid(f"spec.ipFamilies[{i}]", family, "not configured on this cluster")
        for i, family in enumerate(families)
        if family not in configured
    ]
    if errors:
        return errors
    families = families or [configured[0]]
    if policy != "SingleStack" and len(families) == 1 and len(configured) == 2:
        families.append(_other(families[0]))
    spec["ipFamilies"] = families
    return []


def _reconcile(spec: Spec, before: Spec | None, configured: Sequence[str]) -> Errors:
    """Validates that policy, addresses and families agree; derives families from addresses."""
    errors: Errors = []
    path, policy = "spec.ipFamilyPolicy", spec["ipFamilyPolicy"]
    ips, families = spec.get("clusterIPs") or [], list(spec.get("ipFamilies") or [])
    if before is not None:
        old_ips, old_families = before.get("clusterIPs") or [], before.get("ipFamilies") or []
        if policy == "SingleStack":
            if ips == old_ips and len(ips) > 1:
                spec["clusterIPs"] = ips = ips[:1]
            if families == old_families and len(families) > 1:
                families = families[:1]
        else:
            if 0 < len(ips) < len(old_ips):
                detail = "must be 'SingleStack' to release the secondary cluster IP"
                errors.append(invalid(path, policy, detail))
            if 0 < len(families) < len(old_families):
                detail = "must be 'SingleStack' to release the secondary IP family"
                errors.append(invalid(path, policy, detail))
    if policy == "SingleStack":
        prefix = "must be 'RequireDualStack' or 'PreferDualStack' when multiple"
        if len(ips) == 2:
            errors.append(invalid(path, policy, f"{prefix} cluster IPs are specified"))
        if len(families) == 2:
            errors.append(invalid(path, policy, f"{prefix} IP families are specified"))
    for i, ip in enumerate(ips):
        if ip == "None":
            break
        if i >= len(families):
            family = family_of(ip)
            if family in configured:
                families.append(family)
            else:
                detail = f"{family} is not configured on this cluster"
                errors.append(invalid(f"spec.clusterIPs[{i}]", ips, detail))
    _put(spec, "ipFamilies", families)
    return errors


def validate_cluster_ips(spec: Spec, before: Spec | None) -> Errors:
    """Validates the fields by themselves, independent of the cluster's configuration."""
    if spec.get("type") == "ExternalName":
        return []
    errors: Errors = []
    path = "spec.clusterIPs"
    ip, ips = spec.get("clusterIP", ""), spec.get("clusterIPs") or []
    families = spec.get("ipFamilies") or []
    if ip and not ips:
        errors.append(required(path))
    elif ip and ips[0] != ip:
        errors.append(invalid(path, ips, "first value must match `clusterIP`"))
    elif ips and not ip:
        errors.append(invalid(path, ips, "must be empty when `clusterIP` is not specified"))
    seen: set[str] = set()
    for i, family in enumerate(families):
        if family not in FAMILIES:
            errors.append(not_supported(f"spec.ipFamilies[{i}]", family, FAMILIES))
        if family in seen:
            errors.append(duplicate(f"spec.ipFamilies[{i}]", family))
        seen.add(family)
    policy = spec.get("ipFamilyPolicy")
    if policy is not None and policy not in POLICIES:
        errors.append(not_supported("spec.ipFamilyPolicy", policy, POLICIES))
    old_ips = frozenset((before.get("clusterIPs") if before else None) or ())
    bad: Errors = []
    for i, value in enumerate(ips):
        if i == 0 and value == "None":
            if len(ips) > 1:
                bad.append(invalid(path, ips, "'None' must be the first and only value"))
        else:
            bad += validate_ip(value, f"{path}[{i}]", old_ips)
    errors += bad
    if len(ips) > 2:
        errors.append(invalid(path, ips, "may only hold up to 2 values"))
    if bad:
        return errors
    if len(ips) > 1 and not is_dual_stack(ips):
        errors.append(invalid(path, ips, "may specify no more than one IP for each IP family"))
    if not is_headless(spec):
        errors += [
            invalid(f"{path}[{i}]", value, f"expected an {family} value as indicated by `ipFamilies[{i}]`")
            for i, (value, family) in enumerate(zip(ips, families, strict=False))
            if family in FAMILIES and family_of(value) != family
        ]
    return errors
