"""Node objects as a kubelet reports them: size, labels, addresses, pod network and conditions.

The n-th simulated node has the n-th address of 198.18.0.0/15, which is reserved for tests, and the n-th part of
10.128.0.0/9 for its pods. Nodes have the IP families of the service networks.
"""

from __future__ import annotations

import ipaddress
import re
import uuid
from dataclasses import dataclass

from kubist.api.config import KUBERNETES_VERSION, Config
from kubist.model.meta import names
from kubist.model.meta.conditions import find, set_condition
from kubist.model.meta.object import Object
from kubist.model.meta.quantity import ZERO, parse_quantity

SIMULATED = "kubist.io/simulated"
"""Label of nodes that are simulated. Users may create such nodes."""
STATE = "kubist.io/node-state"
"""Annotation with the faults of a simulated node, separated by commas."""
NOT_READY, UNREACHABLE = "NotReady", "Unreachable"
PRESSURES = {
    "MemoryPressure": ("InsufficientMemory", "SufficientMemory", "insufficient memory", "sufficient memory"),
    "DiskPressure": ("DiskPressure", "NoDiskPressure", "disk pressure", "no disk pressure"),
    "PIDPressure": ("InsufficientPID", "SufficientPID", "insufficient PID", "sufficient PID"),
}
STATES = (NOT_READY, UNREACHABLE, *PRESSURES)

CAPACITY = {"cpu": "64", "memory": "256Gi", "ephemeral-storage": "1Ti", "pods": "1000"}
HUGE_PAGES = {"hugepages-1Gi": "0", "hugepages-2Mi": "0"}
ADDRESSES = ipaddress.IPv4Network("198.18.0.0/15")
PODS = ipaddress.IPv4Network("10.128.0.0/9")
FIRST_PODS = ipaddress.IPv4Address("10.244.0.0")
ADDRESSES_6 = ipaddress.IPv6Network("fd00:198:18::/64")
PODS_6 = ipaddress.IPv6Network("fd00:10:244::/48")
SMALLEST_BLOCK = 256
"""Number of pod addresses of a small node. A larger node has at least two for each pod."""
_placeholder = re.compile(r"\{i(?:%([1-9][0-9]*))?\}")


@dataclass(frozen=True)
class NodeTemplate:
    """Number, size and labels of the nodes that the server creates."""

    count: int
    capacity: dict[str, str]
    labels: dict[str, str]
    families: tuple[int, ...] = (4,)
    """IP families of nodes and pods, the first one first."""

    @property
    def block(self) -> int:
        """Number of addresses in the pod network of a node."""
        pods = parse_quantity(self.capacity["pods"]).value()
        return max(1 << (2 * pods - 1).bit_length() if pods else 0, SMALLEST_BLOCK)

    def names(self) -> list[str]:
        return [f"kubist-node-{number}" for number in range(self.count)]

    def pod_network_of(self, number: int) -> ipaddress.IPv4Network:
        first = int(FIRST_PODS) - int(PODS.network_address)
        offset = (first // self.block + number) * self.block % PODS.num_addresses
        return ipaddress.IPv4Network((int(PODS.network_address) + offset, 33 - self.block.bit_length()))

    def pod_networks_of(self, number: int) -> list[str]:
        """Networks of the pods of the n-th node, one of each family."""
        networks = {4: self.pod_network_of(number), 6: PODS_6[number << 64]}
        return [str(networks[4]) if family == 4 else f"{networks[6]}/64" for family in self.families]

    def addresses_of(self, number: int) -> list[str]:
        """Addresses of the n-th node, one of each family."""
        return [str((ADDRESSES if family == 4 else ADDRESSES_6)[number + 1]) for family in self.families]


def template_of(config: Config) -> NodeTemplate:
    """Template of the configured nodes. ValueError if a setting is malformed."""
    capacity = CAPACITY | checked_capacity(config.workload_node_capacity)
    labels = checked_labels(config.workload_node_labels)
    count = config.simulated_nodes or config.workload_nodes
    families = tuple(6 if ":" in text else 4 for text in config.service_cluster_ip_range.split(",") if text)
    template = NodeTemplate(count, capacity, labels, families or (4,))
    most = min(PODS.num_addresses // template.block, ADDRESSES.num_addresses - 2)
    if not 0 <= template.count <= most:
        raise ValueError(
            f"{template.count} nodes with {capacity['pods']} pods each are not possible: the number of nodes must be "
            f"from 0 to {most}; fewer pods in --workload-node-capacity allow more nodes"
        )
    return template


def checked_capacity(capacity: dict[str, str]) -> dict[str, str]:
    for resource, amount in capacity.items():
        if messages := names.qualified_name(resource):
            raise ValueError(f'"{resource}" is not a resource name: {messages[0]}')
        try:
            wrong = parse_quantity(amount) < ZERO
        except ValueError:
            wrong = True
        if wrong:
            raise ValueError(
                f'"{amount}" is not an amount of {resource}; write for example cpu=4,memory=16Gi'
            )
    return capacity


def checked_labels(labels: dict[str, str]) -> dict[str, str]:
    for key, pattern in labels.items():
        value = expand(pattern, 0)
        if "{" in value:
            raise ValueError(
                f'label {key}: "{pattern}" has an unknown placeholder; use {{i}} for the number of the node or '
                "{i%3} for its remainder by 3"
            )
        if messages := names.qualified_name(key) or names.label_value(value):
            raise ValueError(f"label {key}={pattern}: {messages[0]}")
    return labels


def expand(pattern: str, number: int) -> str:
    """Value of a label template for the n-th node: `{i}` is n, `{i%3}` the remainder of n by 3."""
    return _placeholder.sub(lambda match: str(number % int(match[1]) if match[1] else number), pattern)


def pod_network(node: Object) -> ipaddress.IPv4Network | ipaddress.IPv6Network:
    """First network of the pods of a simulated node."""
    return ipaddress.ip_network(node["spec"]["podCIDR"])


def node_address(node: Object) -> str:
    """InternalIP of a node, or an empty string."""
    addresses = (node.get("status") or {}).get("addresses") or ()
    return next((str(entry["address"]) for entry in addresses if entry.get("type") == "InternalIP"), "")


def number_of(node: Object) -> int | None:
    """Number of a simulated node, by its address. None if it has no address of simulated nodes."""
    try:
        address = ipaddress.ip_address(node_address(node))
    except ValueError:
        return None
    for network in (ADDRESSES, ADDRESSES_6):
        if address in network:
            return int(address) - int(network.network_address) - 1
    return None


def states_of(node: Object) -> tuple[set[str], str]:
    """Faults of a node in its annotation, and a problem with the annotation or an empty string."""
    text = (node["metadata"].get("annotations") or {}).get(STATE, "")
    states = {part.strip() for part in text.split(",") if part.strip()}
    unknown = sorted(states.difference(STATES))
    if not unknown:
        return states, ""
    return states & set(STATES), f"annotation {STATE}: {unknown[0]} is not one of {', '.join(STATES)}"


def new_node(name: str, number: int, template: NodeTemplate, now: str) -> Object:
    """Node as a kubelet registers it."""
    labels = {
        "beta.kubernetes.io/arch": "amd64",
        "beta.kubernetes.io/os": "linux",
        "kubernetes.io/arch": "amd64",
        "kubernetes.io/hostname": name,
        "kubernetes.io/os": "linux",
        SIMULATED: "true",
    }
    labels |= {key: expand(pattern, number) for key, pattern in template.labels.items()}
    attach = {"volumes.kubernetes.io/controller-managed-attach-detach": "true"}
    node: Object = {
        "metadata": {"name": name, "labels": labels, "annotations": attach},
        "spec": pod_cidrs(template, number),
        "status": {},
    }
    return reported(node, number, template, now)


def pod_cidrs(template: NodeTemplate, number: int) -> dict[str, object]:
    networks = template.pod_networks_of(number)
    return {"podCIDR": networks[0], "podCIDRs": networks}


def reported(
    node: Object,
    number: int,
    template: NodeTemplate,
    now: str,
    *,
    of_user: bool = False,
    heartbeat: bool = False,
) -> Object:
    """The node with the status that its kubelet reports.

    A user's node keeps its size. Other nodes keep resources that the template does not have. The times of the
    conditions change with the conditions, or with `heartbeat`.
    """
    status, name = node["status"], node["metadata"]["name"]
    size = HUGE_PAGES | template.capacity
    capacity, allocatable = status.get("capacity") or {}, status.get("allocatable") or {}
    status["capacity"] = size | capacity if of_user else capacity | size
    status["allocatable"] = status["capacity"] | allocatable
    if not of_user:
        status["allocatable"] |= size
    if not status.get("addresses"):
        internal = [{"type": "InternalIP", "address": address} for address in template.addresses_of(number)]
        status["addresses"] = [*internal, {"type": "Hostname", "address": name}]
    status["daemonEndpoints"] = {"kubeletEndpoint": {"Port": 10250}}
    status["nodeInfo"] = _node_info(name)
    _set_conditions(node, now, heartbeat)
    return node


def _node_info(name: str) -> dict[str, str]:
    def identity(use: str) -> str:
        return str(uuid.uuid5(uuid.NAMESPACE_DNS, f"{use}.{name}.kubist.io"))

    return {
        "architecture": "amd64",
        "bootID": identity("boot"),
        "containerRuntimeVersion": "kubist://simulated",
        "kernelVersion": "simulated",
        "kubeProxyVersion": "",
        "kubeletVersion": KUBERNETES_VERSION,
        "machineID": identity("machine").replace("-", ""),
        "operatingSystem": "linux",
        "osImage": "simulated by Kubist, runs no containers",
        "systemUUID": identity("system"),
    }


def _set_conditions(node: Object, now: str, heartbeat: bool) -> None:
    states, _ = states_of(node)
    conditions = node["status"].setdefault("conditions", [])
    expected = []
    for kind, (bad, good, trouble, peace) in PRESSURES.items():
        under = kind in states
        text = f"kubelet has {trouble if under else peace}{' available' if 'Pressure' not in good else ''}"
        reason = f"KubeletHas{bad if under else good}"
        expected.append({"type": kind, "status": str(under), "reason": reason, "message": text})
    if NOT_READY in states:
        why = f"the annotation {STATE} says that the kubelet is not ready"
        expected.append({"type": "Ready", "status": "False", "reason": "KubeletNotReady", "message": why})
    else:
        posting = "kubelet is posting ready status"
        expected.append({"type": "Ready", "status": "True", "reason": "KubeletReady", "message": posting})
    for condition in expected:
        old = find(conditions, condition["type"]) or {}
        beat = now if heartbeat or not condition.items() <= old.items() else old["lastHeartbeatTime"]
        set_condition(conditions, {**condition, "lastHeartbeatTime": beat}, now)
