"""Columns of the kinds of the core group. Pods have their own module."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace

from kubist.api.kinds.core.pod_columns import PODS
from kubist.api.tables.ages import Cell, since, since_micro
from kubist.api.tables.cells import (
    CONTAINERS,
    NONE,
    REPLICAS,
    SELECTOR,
    UNKNOWN,
    UNSET,
    condition,
    containers,
    labels,
    load_balancer,
    shortened,
    size,
)
from kubist.api.tables.columns import AGE, NAME, NAME_AND_AGE, Column, Table, part, wide
from kubist.model.meta.object import Object

# Nodes

ROLE_PREFIX = "node-role.kubernetes.io/"
ROLE = "kubernetes.io/role"


def _node_status(node: Object) -> str:
    status = "Unknown"
    for one in part(node, "status").get("conditions") or ():
        if one.get("type") == "Ready":
            status = "Ready" if one.get("status") == "True" else "NotReady"
    return status + ",SchedulingDisabled" if part(node, "spec").get("unschedulable") else status


def _node_roles(node: Object) -> str:
    roles = set()
    for key, value in (node["metadata"].get("labels") or {}).items():
        if key.startswith(ROLE_PREFIX):
            roles.add(key[len(ROLE_PREFIX) :])
        elif key == ROLE:
            roles.add(value)
    return ",".join(sorted(roles - {""})) or NONE


def _node_address(type: str) -> Callable[[Object], str]:
    """Function for the first address of a type."""

    def cell(node: Object) -> str:
        for address in part(node, "status").get("addresses") or ():
            if address.get("type") == type:
                return str(address.get("address", ""))
        return NONE

    return cell


def _node_info(name: str) -> Callable[[Object], str]:
    return lambda node: part(node, "status", "nodeInfo").get(name) or UNKNOWN


def _kernel(node: Object) -> str:
    info = part(node, "status", "nodeInfo")
    kernel = info.get("kernelVersion") or UNKNOWN
    return f"{kernel} ({info['architecture']})" if info.get("architecture") else kernel


_NODES = Table(
    NAME,
    Column("Status", "Whether the node is ready, and whether pods are scheduled to it.", cell=_node_status),
    Column("Roles", "Roles in the node's labels.", cell=_node_roles),
    AGE,
    Column("Version", "Version of the kubelet.", path="status.nodeInfo.kubeletVersion"),
    wide("Internal-IP", "First internal address of the node.", cell=_node_address("InternalIP")),
    wide("External-IP", "First external address of the node.", cell=_node_address("ExternalIP")),
    wide("OS-Image", "Operating system that the node reports.", cell=_node_info("osImage")),
    wide("Kernel-Version", "Kernel that the node reports, with its architecture.", cell=_kernel),
    wide(
        "Container-Runtime",
        "Container runtime that the node reports.",
        cell=_node_info("containerRuntimeVersion"),
    ),
)


# Services and Endpoints


def _cluster_ip(service: Object) -> str:
    addresses: list[str] = part(service, "spec").get("clusterIPs") or [NONE]
    return addresses[0]


def _external_ip(service: Object) -> str:
    spec = part(service, "spec")
    own = spec.get("externalIPs") or []
    match spec.get("type"):
        case "ClusterIP" | "NodePort":
            return ",".join(own) or NONE
        case "LoadBalancer":
            balancer = load_balancer(part(service, "status", "loadBalancer"))
            return ",".join([balancer, *own] if balancer else own) or "<pending>"
        case "ExternalName":
            return str(spec.get("externalName", ""))
    return UNKNOWN


def _ports(service: Object) -> str:
    return ",".join(map(_port, part(service, "spec", "ports"))) or NONE


def _port(port: Object) -> str:
    number = f"{port['port']}:{port['nodePort']}" if port.get("nodePort", 0) > 0 else f"{port['port']}"
    return f"{number}/{port.get('protocol', '')}"


def _endpoints(endpoints: Object) -> str:
    subsets = endpoints.get("subsets") or []
    return shortened(_addresses(subsets)) if subsets else NONE


def _addresses(subsets: list[Object]) -> list[str]:
    addresses = []
    for subset in subsets:
        ips = [address.get("ip", "") for address in subset.get("addresses") or ()]
        ports = subset.get("ports") or ()
        if not ports:
            addresses += ips
        for port in ports:
            addresses += [f"[{ip}]:{port['port']}" if ":" in ip else f"{ip}:{port['port']}" for ip in ips]
    return addresses


_SERVICES = Table(
    NAME,
    Column("Type", "Type of the Service.", path="spec.type"),
    Column("Cluster-IP", "Address of the service inside the cluster.", cell=_cluster_ip),
    Column("External-IP", "External addresses of the Service, or its external name.", cell=_external_ip),
    Column("Port(s)", "Ports of the service, with their node ports and protocols.", cell=_ports),
    AGE,
    wide(
        "Selector",
        "Labels of the pods of the Service.",
        cell=lambda service: labels(part(service, "spec").get("selector")),
    ),
)


# PersistentVolumes and PersistentVolumeClaims

CLASS_ANNOTATION = "volume.beta.kubernetes.io/storage-class"
SHORT = {"ReadWriteOnce": "RWO", "ReadOnlyMany": "ROX", "ReadWriteMany": "RWX", "ReadWriteOncePod": "RWOP"}


def _phase(obj: Object) -> str:
    if "deletionTimestamp" in obj["metadata"]:
        return "Terminating"
    return str(part(obj, "status").get("phase", ""))


def _storage_class(obj: Object) -> str:
    annotations = obj["metadata"].get("annotations") or {}
    return str(annotations.get(CLASS_ANNOTATION, part(obj, "spec").get("storageClassName", "")))


def _modes(modes: list[str] | None) -> str:
    return ",".join(short for mode, short in SHORT.items() if mode in (modes or ()))


def _claim_of(volume: Object) -> str:
    claim = part(volume, "spec").get("claimRef")
    return f"{claim.get('namespace', '')}/{claim.get('name', '')}" if claim is not None else ""


def _status_if_bound(claim: Object) -> Object | None:
    """Status of a claim; None without a volume."""
    status: Object = part(claim, "status")
    return status if part(claim, "spec").get("volumeName") else None


def _claim_capacity(claim: Object) -> str:
    status = _status_if_bound(claim)
    return part(status, "capacity").get("storage", "0") if status is not None else ""


def _claim_modes(claim: Object) -> str:
    status = _status_if_bound(claim)
    return _modes(status.get("accessModes")) if status is not None else ""


_ACCESS_MODES = Column(
    "Access Modes",
    "Ways to mount the volume.",
    cell=lambda volume: _modes(part(volume, "spec").get("accessModes")),
)
_CLASSES = (
    Column("StorageClass", "StorageClass.", cell=_storage_class),
    Column(
        "VolumeAttributesClass",
        "VolumeAttributesClass.",
        path="spec.volumeAttributesClassName",
        absent=UNSET,
    ),
)
_VOLUME_MODE = wide("VolumeMode", "File system or block device.", path="spec.volumeMode", absent=UNSET)
_VOLUMES = Table(
    NAME,
    Column("Capacity", "Size of the volume.", path="spec.capacity.storage", absent="0"),
    _ACCESS_MODES,
    Column(
        "Reclaim Policy",
        "Fate of the volume after the deletion of its claim.",
        path="spec.persistentVolumeReclaimPolicy",
    ),
    Column("Status", "Phase of the volume: Available, Bound, Released or Failed.", cell=_phase),
    Column("Claim", "Claim that the volume is bound to.", cell=_claim_of),
    *_CLASSES,
    Column("Reason", "Reason of the status.", path="status.reason"),
    AGE,
    _VOLUME_MODE,
)
_CLAIMS = Table(
    NAME,
    Column("Status", "Phase of the claim: Pending, Bound or Lost.", cell=_phase),
    Column("Volume", "Volume that the claim is bound to.", path="spec.volumeName"),
    Column("Capacity", "Size of that volume.", cell=_claim_capacity),
    replace(_ACCESS_MODES, cell=_claim_modes),
    *_CLASSES,
    AGE,
    _VOLUME_MODE,
)


# Events


def _first_seen(event: Object) -> Cell:
    first = since(event.get("firstTimestamp"))
    return since_micro(event.get("eventTime")) if first == UNKNOWN else first


def _last_seen(event: Object) -> Cell:
    if event.get("series") is not None:
        return since_micro(event["series"].get("lastObservedTime"))
    last = since(event.get("lastTimestamp"))
    return _first_seen(event) if last == UNKNOWN else last


def _count(event: Object) -> int:
    series = event.get("series")
    count: int = event.get("count", 0) or 1 if series is None else series.get("count", 0)
    return count


def _involved_object(event: Object) -> str:
    involved = part(event, "involvedObject")
    kind = involved.get("kind", "").lower()
    return f"{kind}/{involved['name']}" if involved.get("name") else kind


def _source(event: Object) -> str:
    source = part(event, "source")
    component = source.get("component") or event.get("reportingComponent", "")
    instance = source.get("host") or event.get("reportingInstance", "")
    return f"{component}, {instance}" if instance else component


_EVENTS = Table(
    Column("Last Seen", "Time since the event last happened.", cell=_last_seen),
    Column("Type", "Type of the event: Normal or Warning.", path="type"),
    Column("Reason", "Reason of the event, for programs.", path="reason"),
    Column("Object", "Object of the event.", cell=_involved_object),
    wide("Subobject", "Part of the object that caused the event.", path="involvedObject.fieldPath"),
    wide("Source", "Component that reported the event.", cell=_source),
    Column(
        "Message",
        "Description of the event, for people.",
        cell=lambda event: event.get("message", "").strip(),
    ),
    wide("First Seen", "Time since the event first happened.", cell=_first_seen),
    wide("Count", "Number of occurrences.", cell=_count),
    replace(NAME, priority=1),
)


# Other kinds


def _template_labels(template: Object) -> str:
    return labels(part(template, "template", "metadata", "labels"))


def _data(config_map: Object) -> int:
    return len(part(config_map, "data")) + len(part(config_map, "binaryData"))


def _healthy(component: Object) -> Object:
    """Healthy condition of a component; empty if there is none."""
    return condition(component.get("conditions"), "Healthy") or {}


def _component_status(component: Object) -> str:
    healthy = _healthy(component)
    return "Unknown" if not healthy else "Healthy" if healthy.get("status") == "True" else "Unhealthy"


def _quota(*, limits: bool) -> Callable[[Object], str]:
    """Function for the used and hard amounts of `limits.*` resources, or of all other resources."""

    def cell(quota: Object) -> str:
        status = part(quota, "status")
        return ", ".join(
            f"{resource}: {part(status, 'used').get(resource, '0')}/{hard}"
            for resource, hard in sorted(part(status, "hard").items())
            if resource.startswith("limits.") == limits
        )

    return cell


TABLES = {
    "Pod": PODS,
    "Node": _NODES,
    "Service": _SERVICES,
    "Endpoints": Table(
        NAME, Column("Endpoints", "Addresses and ports of the endpoints.", cell=_endpoints), AGE
    ),
    "PersistentVolume": _VOLUMES,
    "PersistentVolumeClaim": _CLAIMS,
    "Event": _EVENTS,
    "ServiceAccount": NAME_AND_AGE,
    "PodTemplate": Table(
        NAME,
        *(replace(column, priority=0) for column in containers("template.spec.containers")),
        Column("Pod Labels", "Labels of the pods of the template.", cell=_template_labels),
    ),
    "ReplicationController": Table(
        NAME,
        *REPLICAS,
        AGE,
        *CONTAINERS,
        replace(SELECTOR, cell=lambda controller: labels(part(controller, "spec").get("selector"))),
    ),
    "Namespace": Table(
        NAME, Column("Status", "Phase of the namespace: Active or Terminating.", path="status.phase"), AGE
    ),
    "Secret": Table(
        NAME,
        Column("Type", "Type of the secret.", path="type"),
        Column("Data", "Number of values.", cell=size("data")),
        AGE,
    ),
    "ConfigMap": Table(NAME, Column("Data", "Number of values.", cell=_data), AGE),
    "ComponentStatus": Table(
        NAME,
        Column("Status", "Whether the component is healthy.", cell=_component_status),
        Column(
            "Message",
            "Message of the component.",
            cell=lambda component: _healthy(component).get("message", ""),
        ),
        Column(
            "Error",
            "Error of the health check.",
            cell=lambda component: _healthy(component).get("error", ""),
        ),
    ),
    "ResourceQuota": Table(
        NAME,
        Column("Request", "Used and allowed requests and numbers of objects.", cell=_quota(limits=False)),
        Column("Limit", "Used and allowed limits.", cell=_quota(limits=True)),
        AGE,
    ),
}
