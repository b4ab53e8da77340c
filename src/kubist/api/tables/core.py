"""Tables of the kinds of the core group. Pods, services and volumes have their own modules."""

from __future__ import annotations

from kubist.api.tables.ages import Cell, age, since, since_micro
from kubist.api.tables.columns import AGE, NAME, NAME_AND_AGE, Column, Table, name_of, number, wide
from kubist.api.tables.pods import PODS
from kubist.api.tables.services import ENDPOINTS, SERVICES
from kubist.api.tables.shared import (
    CONTAINERS,
    NONE,
    UNKNOWN,
    WORKLOAD,
    condition,
    containers,
    labels,
    part,
    replicated,
)
from kubist.api.tables.volumes import CLAIMS, VOLUMES
from kubist.model.meta.object import Object

ROLE_PREFIX = "node-role.kubernetes.io/"
ROLE = "kubernetes.io/role"


def _pod_template(obj: Object) -> list[Cell]:
    template = part(obj, "template")
    return [name_of(obj), *containers(part(template, "spec")), labels(part(template, "metadata", "labels"))]


def _replication_controller(obj: Object) -> list[Cell]:
    return replicated(obj, labels(part(obj, "spec").get("selector")))


def _node(obj: Object) -> list[Cell]:
    status = part(obj, "status")
    info = part(status, "nodeInfo")
    kernel = info.get("kernelVersion") or UNKNOWN
    if info.get("architecture"):
        kernel += f" ({info['architecture']})"
    return [
        name_of(obj),
        _node_status(obj),
        ",".join(_node_roles(obj)) or NONE,
        age(obj),
        info.get("kubeletVersion", ""),
        _node_address(status, "InternalIP"),
        _node_address(status, "ExternalIP"),
        info.get("osImage") or UNKNOWN,
        kernel,
        info.get("containerRuntimeVersion") or UNKNOWN,
    ]


def _node_status(obj: Object) -> str:
    found = "Unknown"
    for one in part(obj, "status").get("conditions") or ():
        if one.get("type") == "Ready":
            found = "Ready" if one.get("status") == "True" else "NotReady"
    return found + ",SchedulingDisabled" if part(obj, "spec").get("unschedulable") else found


def _node_roles(obj: Object) -> list[str]:
    roles = set()
    for key, value in (obj["metadata"].get("labels") or {}).items():
        if key.startswith(ROLE_PREFIX):
            roles.add(key[len(ROLE_PREFIX) :])
        elif key == ROLE:
            roles.add(value)
    return sorted(roles - {""})


def _node_address(status: Object, type: str) -> str:
    for address in status.get("addresses") or ():
        if address.get("type") == type:
            return str(address.get("address", ""))
    return NONE


def _event(obj: Object) -> list[Cell]:
    first = since(obj.get("firstTimestamp"))
    if first == UNKNOWN:
        first = since_micro(obj.get("eventTime"))
    last = since(obj.get("lastTimestamp"))
    if last == UNKNOWN:
        last = first
    count, series = obj.get("count", 0) or 1, obj.get("series")
    if series is not None:
        last, count = since_micro(series.get("lastObservedTime")), series.get("count", 0)
    source, about = part(obj, "source"), part(obj, "involvedObject")
    component = source.get("component") or obj.get("reportingComponent", "")
    instance = source.get("host") or obj.get("reportingInstance", "")
    kind = about.get("kind", "").lower()
    return [
        last,
        obj.get("type", ""),
        obj.get("reason", ""),
        f"{kind}/{about['name']}" if about.get("name") else kind,
        about.get("fieldPath", ""),
        f"{component}, {instance}" if instance else component,
        obj.get("message", "").strip(),
        first,
        count,
        name_of(obj),
    ]


def _namespace(obj: Object) -> list[Cell]:
    return [name_of(obj), part(obj, "status").get("phase", ""), age(obj)]


def _secret(obj: Object) -> list[Cell]:
    return [name_of(obj), obj.get("type", ""), len(part(obj, "data")), age(obj)]


def _config_map(obj: Object) -> list[Cell]:
    return [name_of(obj), len(part(obj, "data")) + len(part(obj, "binaryData")), age(obj)]


def _component_status(obj: Object) -> list[Cell]:
    found = condition(obj.get("conditions"), "Healthy")
    if found is None:
        return [name_of(obj), "Unknown", "", ""]
    healthy = "Healthy" if found.get("status") == "True" else "Unhealthy"
    return [name_of(obj), healthy, found.get("message", ""), found.get("error", "")]


def _resource_quota(obj: Object) -> list[Cell]:
    status = part(obj, "status")
    requests: list[str] = []
    limits: list[str] = []
    for resource, hard in sorted(part(status, "hard").items()):
        column = limits if resource.startswith("limits.") else requests
        column.append(f"{resource}: {part(status, 'used').get(resource, '0')}/{hard}")
    return [name_of(obj), ", ".join(requests), ", ".join(limits), age(obj)]


TABLES = {
    "Pod": PODS,
    "Service": SERVICES,
    "Endpoints": ENDPOINTS,
    "PersistentVolume": VOLUMES,
    "PersistentVolumeClaim": CLAIMS,
    "ServiceAccount": NAME_AND_AGE,
    "PodTemplate": Table(
        (
            NAME,
            Column("Containers", CONTAINERS[0].description),
            Column("Images", CONTAINERS[1].description),
            Column("Pod Labels", "Labels of the pods of the template."),
        ),
        _pod_template,
    ),
    "ReplicationController": Table(
        (
            NAME,
            number("Desired", "Number of desired pods."),
            number("Current", "Number of existing pods."),
            number("Ready", "Number of ready pods."),
            AGE,
            *WORKLOAD,
        ),
        _replication_controller,
    ),
    "Node": Table(
        (
            NAME,
            Column("Status", "Whether the node is ready, and whether pods are scheduled to it."),
            Column("Roles", "Roles in the node's labels."),
            AGE,
            Column("Version", "Version of the kubelet."),
            wide("Internal-IP", "First internal address of the node."),
            wide("External-IP", "First external address of the node."),
            wide("OS-Image", "Operating system that the node reports."),
            wide("Kernel-Version", "Kernel that the node reports, with its architecture."),
            wide("Container-Runtime", "Container runtime that the node reports."),
        ),
        _node,
    ),
    "Event": Table(
        (
            Column("Last Seen", "Time since the event last happened."),
            Column("Type", "Type of the event: Normal or Warning."),
            Column("Reason", "Reason of the event, for programs."),
            Column("Object", "Object of the event."),
            wide("Subobject", "Part of the object that caused the event."),
            wide("Source", "Component that reported the event."),
            Column("Message", "Description of the event, for people."),
            wide("First Seen", "Time since the event first happened."),
            wide("Count", "Number of occurrences."),
            Column("Name", NAME.description, format="name", priority=1),
        ),
        _event,
    ),
    "Namespace": Table(
        (NAME, Column("Status", "Phase of the namespace: Active or Terminating."), AGE), _namespace
    ),
    "Secret": Table(
        (
            NAME,
            Column("Type", "Type of the secret."),
            Column("Data", "Number of values."),
            AGE,
        ),
        _secret,
    ),
    "ConfigMap": Table((NAME, Column("Data", "Number of values."), AGE), _config_map),
    "ComponentStatus": Table(
        (
            NAME,
            Column("Status", "Whether the component is healthy."),
            Column("Message", "Message of the component."),
            Column("Error", "Error of the health check."),
        ),
        _component_status,
    ),
    "ResourceQuota": Table(
        (
            NAME,
            Column("Request", "Used and allowed requests and numbers of objects."),
            Column("Limit", "Used and allowed limits."),
            AGE,
        ),
        _resource_quota,
    ),
}
