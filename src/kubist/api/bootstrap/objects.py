"""Bootstrap objects: the fixed ones, and those that depend on the server's configuration."""

from __future__ import annotations

import ipaddress
import socket
import uuid
from collections.abc import Iterator
from typing import TYPE_CHECKING

from kubist.api.bootstrap.builtin import fixed_objects, owned
from kubist.api.bootstrap.trust import TRUST, Trust
from kubist.model.meta import times
from kubist.model.meta.object import Object
from kubist.model.meta.objectmeta import NAMESPACE_FINALIZER
from kubist.model.meta.well_known import NODE_LEASES

if TYPE_CHECKING:
    from kubist.api.config import Config


NETWORKING = "networking.k8s.io/v1"
NAMESPACES = ("kube-system", "kube-public", NODE_LEASES, "default")
_CIDR_CONTROLLER = "kubernetes-service-cidr-controller"


def objects(config: Config) -> list[Object]:
    """Objects that a server with this configuration creates if they are missing, complete as stored."""
    now = times.now()
    result = [*_namespaces(now), *_configured(config, now), *fixed_objects(now)]
    result = [_complete(obj, now) for obj in result]
    if config.endpoint_reconciler_type != "none":
        result += own_endpoints([advertise_address(config)], config.secure_port, now)
    return result


def _complete(obj: Object, now: str) -> Object:
    metadata = obj["metadata"]
    name = metadata.pop("name")
    namespace = metadata.pop("namespace", "")
    obj["metadata"] = {
        "name": name,
        **({"namespace": namespace} if namespace else {}),
        "uid": str(uuid.uuid4()),
        **({"generation": metadata.pop("generation")} if "generation" in metadata else {}),
        "creationTimestamp": now,
        **metadata,
    }
    return obj


def advertise_address(config: Config) -> str:
    """Address at which other machines reach this server: --advertise-address, --bind-address, or the machine's
    address."""
    for address in (config.advertise_address, config.bind_address):
        if address and not (ip := ipaddress.ip_address(address)).is_unspecified and not ip.is_loopback:
            return address
    family = socket.AF_INET6 if ":" in config.bind_address.strip("[]").lstrip(":") else socket.AF_INET
    with socket.socket(family, socket.SOCK_DGRAM) as probe:
        try:
            # Connecting a datagram socket sends no packet; it only selects the route.
            probe.connect(("192.0.2.1" if family == socket.AF_INET else "2001:db8::1", 9))
            return str(probe.getsockname()[0])
        except OSError:
            return "127.0.0.1"


def _namespaces(now: str) -> Iterator[Object]:
    for name in NAMESPACES:
        namespace = {
            "apiVersion": "v1",
            "kind": "Namespace",
            "metadata": {"name": name, "labels": {"kubernetes.io/metadata.name": name}},
            "spec": {"finalizers": [NAMESPACE_FINALIZER]},
            "status": {"phase": "Active"},
        }
        yield owned(namespace, now, skip=("spec",))


def _configured(config: Config, now: str) -> Iterator[Object]:
    networks = [ipaddress.ip_network(cidr.strip()) for cidr in config.service_cluster_ip_range.split(",")]
    yield _service_cidr([str(network) for network in networks], now)
    yield from _own_service(networks[0], config.secure_port, now)
    yield _config_map("kube-apiserver-legacy-service-account-token-tracking", {"since": now[:10]}, now)
    if trust := Trust.of_config(config).data():
        yield _config_map(TRUST, trust, now)


def _config_map(name: str, data: dict[str, str], now: str) -> Object:
    metadata = {"name": name, "namespace": "kube-system"}
    return owned({"apiVersion": "v1", "kind": "ConfigMap", "metadata": metadata, "data": data}, now)


def _service_cidr(cidrs: list[str], now: str) -> Object:
    ready = {
        "type": "Ready",
        "status": "True",
        "lastTransitionTime": now,
        "reason": "",
        "message": "Kubernetes default Service CIDR is ready",
    }
    obj = owned(
        {
            "apiVersion": NETWORKING,
            "kind": "ServiceCIDR",
            "metadata": {"name": "kubernetes"},
            "spec": {"cidrs": cidrs},
            "status": {"conditions": [ready]},
        },
        now,
    )
    said: Object = {f"f:{name}": {} for name in ("lastTransitionTime", "message", "status", "type")}
    applied = {
        "manager": _CIDR_CONTROLLER,
        "operation": "Apply",
        "apiVersion": NETWORKING,
        "time": now,
        "fieldsType": "FieldsV1",
        "fieldsV1": {"f:status": {"f:conditions": {'k:{"type":"Ready"}': {".": {}, **said}}}},
        "subresource": "status",
    }
    obj["metadata"]["managedFields"].insert(0, applied)
    return obj


def _own_service(
    network: ipaddress.IPv4Network | ipaddress.IPv6Network, port: int, now: str
) -> Iterator[Object]:
    """Service `kubernetes` with the first address of the range, and the IPAddress object that holds it."""
    ip = str(network[1])
    family = f"IPv{network.version}"
    yield owned(
        {
            "apiVersion": NETWORKING,
            "kind": "IPAddress",
            "metadata": {
                "name": ip,
                "labels": {
                    "ipaddress.kubernetes.io/ip-family": family,
                    "ipaddress.kubernetes.io/managed-by": "ipallocator.k8s.io",
                },
            },
            "spec": {"parentRef": {"resource": "services", "namespace": "default", "name": "kubernetes"}},
        },
        now,
    )
    service = {
        "apiVersion": "v1",
        "kind": "Service",
        "metadata": {
            "name": "kubernetes",
            "namespace": "default",
            "labels": {"component": "apiserver", "provider": "kubernetes"},
        },
        "spec": {
            "ports": [{"name": "https", "protocol": "TCP", "port": 443, "targetPort": port}],
            "clusterIP": ip,
            "clusterIPs": [ip],
            "type": "ClusterIP",
            "sessionAffinity": "None",
            "ipFamilies": [family],
            "ipFamilyPolicy": "SingleStack",
            "internalTrafficPolicy": "Cluster",
        },
        "status": {"loadBalancer": {}},
    }
    yield owned(service, now, skip=("spec.clusterIPs", "spec.ipFamilies"))


def own_endpoints(addresses: list[str], port: int, now: str) -> list[Object]:
    """Endpoints and EndpointSlice of the service `kubernetes`, complete as they are stored."""
    versions = {ipaddress.ip_address(address).version for address in addresses}
    family = "IPv6" if versions == {6} else "IPv4"
    subset = {
        "addresses": [{"ip": address} for address in addresses],
        "ports": [{"name": "https", "port": port, "protocol": "TCP"}],
    }
    endpoints = {
        "apiVersion": "v1",
        "kind": "Endpoints",
        "metadata": {
            "name": "kubernetes",
            "namespace": "default",
            "labels": {"endpointslice.kubernetes.io/skip-mirror": "true"},
        },
        "subsets": [subset] if addresses else [],
    }
    endpoint_slice = {
        "apiVersion": "discovery.k8s.io/v1",
        "kind": "EndpointSlice",
        "metadata": {
            "name": "kubernetes",
            "namespace": "default",
            "generation": 1,
            "labels": {"kubernetes.io/service-name": "kubernetes"},
        },
        "addressType": family,
        "endpoints": [{"addresses": [address], "conditions": {"ready": True}} for address in addresses],
        "ports": [{"name": "https", "protocol": "TCP", "port": port}],
    }
    return [_complete(owned(obj, now), now) for obj in (endpoints, endpoint_slice)]
