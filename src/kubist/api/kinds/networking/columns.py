"""Columns of the kinds of group networking.k8s.io."""

from __future__ import annotations

from dataclasses import replace

from kubist.api.tables.ages import age
from kubist.api.tables.cells import NONE, load_balancer, selector
from kubist.api.tables.columns import AGE, NAME, Column, Table, name_of, part
from kubist.model.meta.object import Object

DEFAULT_CLASS = "ingressclass.kubernetes.io/is-default-class"


def _hosts(ingress: Object) -> str:
    """First three hosts. "+ n more" counts all remaining rules, with or without a host, as in kube-apiserver."""
    rules = part(ingress, "spec").get("rules") or []
    hosts: list[str] = []
    for index, rule in enumerate(rules):
        if len(hosts) == 3:
            return f"{','.join(hosts)} + {len(rules) - 3} more..." if index else ""
        if rule.get("host"):
            hosts.append(rule["host"])
    return ",".join(hosts) or "*"


def _address(ingress: Object) -> str:
    return load_balancer(part(ingress, "status", "loadBalancer"))


def _ports(ingress: Object) -> str:
    return "80, 443" if part(ingress, "spec").get("tls") else "80"


def _class_name(ingress_class: Object) -> str:
    is_default = (ingress_class["metadata"].get("annotations") or {}).get(DEFAULT_CLASS) == "true"
    return name_of(ingress_class) + " (default)" if is_default else name_of(ingress_class)


def _parameters(ingress_class: Object) -> str:
    ref = part(ingress_class, "spec").get("parameters")
    if ref is None:
        return NONE
    group = f".{ref['apiGroup']}" if "apiGroup" in ref else ""
    return f"{ref.get('kind', '')}{group}/{ref.get('name', '')}"


def _pod_selector(policy: Object) -> str:
    return selector(part(policy, "spec", "podSelector"))


def _cidrs(service_cidr: Object) -> str:
    return ",".join(part(service_cidr, "spec", "cidrs"))


def _parent(address: Object) -> str:
    ref = part(address, "spec").get("parentRef")
    if ref is None:
        return NONE
    resource = ".".join(filter(None, (ref.get("resource"), ref.get("group")))).lower()
    return "/".join(filter(None, (resource, ref.get("namespace"), ref.get("name", ""))))


TABLES = {
    "Ingress": Table(
        NAME,
        Column("Class", "IngressClass of the Ingress.", path="spec.ingressClassName", absent=NONE),
        Column("Hosts", "Hosts of the rules.", cell=_hosts),
        Column("Address", "Addresses of the Ingress.", cell=_address),
        Column("Ports", "Ports of the Ingress.", cell=_ports),
        AGE,
    ),
    "IngressClass": Table(
        replace(NAME, cell=_class_name),
        Column("Controller", "Controller of the class.", path="spec.controller"),
        Column("Parameters", "Object with the parameters of the controller.", cell=_parameters),
        AGE,
    ),
    "NetworkPolicy": Table(
        NAME, Column("Pod-Selector", "Labels of the pods that the policy selects.", cell=_pod_selector), AGE
    ),
    "ServiceCIDR": Table(NAME, Column("CIDRs", "Ranges of the addresses.", cell=_cidrs), AGE),
    # As in kube-apiserver, the age is a cell without a column.
    "IPAddress": Table(NAME, Column("ParentRef", "Object that has the address.", cell=_parent), extra=age),
}
