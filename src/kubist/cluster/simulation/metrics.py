"""metrics.k8s.io: usage of simulated nodes and pods, as metrics-server reports it. Computed, never stored."""

from __future__ import annotations

from collections.abc import Iterable

from kubist.api.resources.context import is_simulated
from kubist.api.resources.resource import Resource
from kubist.api.resources.strategy import Strategy
from kubist.api.verbs.resource_request import Services
from kubist.cluster.control.usage import Usage, total, usage_of
from kubist.model.meta.object import Object
from kubist.model.meta.quantity import ZERO
from kubist.model.meta.times import format_time

GROUP, VERSION = "metrics.k8s.io", "v1beta1"
API_VERSION = f"{GROUP}/{VERSION}"
WINDOW = "15s"
"""Time over which metrics-server measures, with its default settings."""


def serve_metrics(api: Services) -> None:
    """Adds the resources `nodes` and `pods` of metrics.k8s.io to a server."""
    kinds = (("nodes", "NodeMetrics", NodeMetrics(api)), ("pods", "PodMetrics", PodMetrics(api)))
    made = []
    for plural, kind, strategy in kinds:
        resource = Resource(
            group=GROUP,
            version=VERSION,
            resource=plural,
            kind=kind,
            singular="",
            namespaced=plural == "pods",
            verbs=("get", "list"),
            list_kind=f"{kind}List",
            storage_version=API_VERSION,
            prefix=f"/registry/{GROUP}/{plural}/",
        )
        resource.strategy = strategy
        made.append(resource)
    api.resources.extend(made)


class _Metrics(Strategy):
    """Strategy of a kind that is computed from the pods of simulated nodes."""

    def __init__(self, api: Services) -> None:
        self._api = api

    def _simulated_nodes(self) -> dict[str, Object]:
        nodes = self._api.cluster.list("nodes")
        return {node["metadata"]["name"]: node for node in nodes if is_simulated(node)}

    def _object(self, kind: str, source: Object) -> Object:
        """Metrics object without its usage. Name and labels are those of the node or pod."""
        now, own = format_time(int(self._api.clock.now())), source["metadata"]
        metadata: Object = {"name": own["name"]}
        if own.get("namespace"):
            metadata["namespace"] = own["namespace"]
        metadata["creationTimestamp"] = now
        if own.get("labels"):
            metadata["labels"] = own["labels"]
        return {
            "kind": kind,
            "apiVersion": API_VERSION,
            "metadata": metadata,
            "timestamp": now,
            "window": WINDOW,
        }


class NodeMetrics(_Metrics):
    def virtual_objects(self, namespace: str = "") -> Iterable[Object]:
        """Usage of each simulated node: the sum of its pods."""
        usages: dict[str, Usage] = {}
        for pod in self._api.cluster.list("pods", None):
            node = pod["spec"].get("nodeName")
            if node:
                sums = usages.get(node, {"cpu": ZERO, "memory": ZERO})
                usages[node] = {name: sums[name] + amount for name, amount in total(usage_of(pod)).items()}
        for name, node in self._simulated_nodes().items():
            usage = usages.get(name, {"cpu": ZERO, "memory": ZERO})
            yield {**self._object("NodeMetrics", node), "usage": _format_usage(usage)}


class PodMetrics(_Metrics):
    def virtual_objects(self, namespace: str = "") -> Iterable[Object]:
        """Usage of each pod with a running container on a simulated node."""
        nodes = self._simulated_nodes()
        for pod in self._api.cluster.list("pods", namespace or None):
            usages = usage_of(pod) if pod["spec"].get("nodeName") in nodes else {}
            if usages:
                containers = [{"name": name, "usage": _format_usage(usage)} for name, usage in usages.items()]
                yield {**self._object("PodMetrics", pod), "containers": containers}


def _format_usage(usage: Usage) -> Object:
    return {name: str(amount) for name, amount in usage.items()}
