"""Tables of Services and Endpoints."""

from __future__ import annotations

from kubist.api.tables.ages import Cell, age
from kubist.api.tables.columns import AGE, NAME, Column, Table, name_of, wide
from kubist.api.tables.shared import NONE, UNKNOWN, labels, load_balancer, part, shortened
from kubist.model.meta.object import Object


def _service(obj: Object) -> list[Cell]:
    spec = part(obj, "spec")
    cluster_ips = spec.get("clusterIPs") or [NONE]
    return [
        name_of(obj),
        spec.get("type", ""),
        cluster_ips[0],
        _external_ip(spec, part(obj, "status", "loadBalancer")),
        ",".join(map(_port, spec.get("ports") or ())) or NONE,
        age(obj),
        labels(spec.get("selector")),
    ]


def _external_ip(spec: Object, balancer: Object) -> str:
    own = spec.get("externalIPs") or []
    match spec.get("type"):
        case "ClusterIP" | "NodePort":
            return ",".join(own) or NONE
        case "LoadBalancer":
            given = load_balancer(balancer)
            return ",".join([given, *own] if given else own) or "<pending>"
        case "ExternalName":
            return str(spec.get("externalName", ""))
    return UNKNOWN


def _port(port: Object) -> str:
    number = f"{port['port']}:{port['nodePort']}" if port.get("nodePort", 0) > 0 else f"{port['port']}"
    return f"{number}/{port.get('protocol', '')}"


def _endpoints(obj: Object) -> list[Cell]:
    subsets = obj.get("subsets") or []
    return [name_of(obj), shortened(_addresses(subsets)) if subsets else NONE, age(obj)]


def _addresses(subsets: list[Object]) -> list[str]:
    found = []
    for subset in subsets:
        ips = [address.get("ip", "") for address in subset.get("addresses") or ()]
        ports = subset.get("ports") or ()
        if not ports:
            found += ips
        for port in ports:
            found += [f"[{ip}]:{port['port']}" if ":" in ip else f"{ip}:{port['port']}" for ip in ips]
    return found


SERVICES = Table(
    (
        NAME,
        Column("Type", "Type of the Service."),
        Column("Cluster-IP", "Address of the service inside the cluster."),
        Column("External-IP", "External addresses of the Service, or its external name."),
        Column("Port(s)", "Ports of the service, with their node ports and protocols."),
        AGE,
        wide("Selector", "Labels of the pods of the Service."),
    ),
    _service,
)
ENDPOINTS = Table((NAME, Column("Endpoints", "Addresses and ports of the endpoints."), AGE), _endpoints)
