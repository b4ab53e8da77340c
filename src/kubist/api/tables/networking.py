"""Tables of the kinds of group networking.k8s.io."""

from __future__ import annotations

from kubist.api.tables.ages import Cell, age
from kubist.api.tables.columns import AGE, NAME, Column, Table, name_of
from kubist.api.tables.shared import NONE, load_balancer, part, selector
from kubist.model.meta.object import Object

DEFAULT_CLASS = "ingressclass.kubernetes.io/is-default-class"


def _ingress(obj: Object) -> list[Cell]:
    spec = part(obj, "spec")
    return [
        name_of(obj),
        spec.get("ingressClassName", NONE),
        _hosts(spec.get("rules") or []),
        load_balancer(part(obj, "status", "loadBalancer")),
        "80, 443" if spec.get("tls") else "80",
        age(obj),
    ]


def _hosts(rules: list[Object]) -> str:
    """First three hosts. "+ n more" counts all further rules, with or without a host, as the reference does."""
    hosts: list[str] = []
    for index, rule in enumerate(rules):
        if len(hosts) == 3:
            return f"{','.join(hosts)} + {len(rules) - 3} more..." if index else ""
        if rule.get("host"):
            hosts.append(rule["host"])
    return ",".join(hosts) or "*"


def _ingress_class(obj: Object) -> list[Cell]:
    spec = part(obj, "spec")
    default = (obj["metadata"].get("annotations") or {}).get(DEFAULT_CLASS) == "true"
    name = name_of(obj) + " (default)" if default else name_of(obj)
    return [name, spec.get("controller", ""), _parameters(spec.get("parameters")), age(obj)]


def _parameters(ref: Object | None) -> str:
    if ref is None:
        return NONE
    group = f".{ref['apiGroup']}" if "apiGroup" in ref else ""
    return f"{ref.get('kind', '')}{group}/{ref.get('name', '')}"


def _network_policy(obj: Object) -> list[Cell]:
    return [name_of(obj), selector(part(obj, "spec", "podSelector")), age(obj)]


def _service_cidr(obj: Object) -> list[Cell]:
    return [name_of(obj), ",".join(part(obj, "spec").get("cidrs") or ()), age(obj)]


def _ip_address(obj: Object) -> list[Cell]:
    return [name_of(obj), _parent(part(obj, "spec").get("parentRef")), age(obj)]


def _parent(ref: Object | None) -> str:
    if ref is None:
        return NONE
    resource = ".".join(filter(None, (ref.get("resource"), ref.get("group")))).lower()
    return "/".join(filter(None, (resource, ref.get("namespace"), ref.get("name", ""))))


TABLES = {
    "Ingress": Table(
        (
            NAME,
            Column("Class", "IngressClass of the Ingress."),
            Column("Hosts", "Hosts of the rules."),
            Column("Address", "Addresses of the Ingress."),
            Column("Ports", "Ports of the Ingress."),
            AGE,
        ),
        _ingress,
    ),
    "IngressClass": Table(
        (
            NAME,
            Column("Controller", "Controller of the class."),
            Column("Parameters", "Object with the parameters of the controller."),
            AGE,
        ),
        _ingress_class,
    ),
    "NetworkPolicy": Table(
        (NAME, Column("Pod-Selector", "Labels of the pods that the policy selects."), AGE), _network_policy
    ),
    "ServiceCIDR": Table((NAME, Column("CIDRs", "Ranges of the addresses."), AGE), _service_cidr),
    # As in the reference, the age is a cell without a column.
    "IPAddress": Table((NAME, Column("ParentRef", "Object that has the address.")), _ip_address),
}
