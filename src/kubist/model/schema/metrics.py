"""Types of metrics.k8s.io/v1beta1, in the form of `catalog.json`.

They are not in the catalog, because kube-apiserver does not serve them. metrics-server does, and so does a server with
simulated pods.
"""

from __future__ import annotations

from typing import Any

PREFIX = "io.k8s.metrics.pkg.apis.metrics.v1beta1."
_MESSAGE = "k8s.io.metrics.pkg.apis.metrics.v1beta1."
_META = "io.k8s.apimachinery.pkg.apis.meta.v1."
_QUANTITIES = "{#io.k8s.apimachinery.pkg.api.resource.Quantity"
_GVK = "x-kubernetes-group-version-kind"
_TYPE_META: list[list[Any]] = [
    ["kind", "o", 0, "string", {"via": "TypeMeta"}],
    ["apiVersion", "o", 0, "string", {"via": "TypeMeta"}],
]

KINDS = {
    f"metrics.k8s.io/v1beta1/{kind}": PREFIX + kind
    for kind in ("NodeMetrics", "NodeMetricsList", "PodMetrics", "PodMetricsList")
}
LEAVES: dict[str, list[Any]] = {_META + "Duration": ["string", "duration", {"type": "string"}]}


def _kind(kind: str, metadata: str, *fields: list[Any]) -> list[Any]:
    own = ["metadata", "o", 1, f"#{_META}{metadata}", {"default": {}}]
    gvk = [{"group": "metrics.k8s.io", "kind": kind, "version": "v1beta1"}]
    return [_MESSAGE + kind, [*_TYPE_META, own, *fields], [], {_GVK: gvk}]


def _metrics(kind: str, field: list[Any]) -> list[Any]:
    timestamp = ["timestamp", "r", 2, f"#{_META}Time"]
    return _kind(kind, "ObjectMeta", timestamp, ["window", "r", 3, f"#{_META}Duration"], field)


def _list(kind: str) -> list[Any]:
    items = ["items", "r", 2, f"[#{PREFIX}{kind}", {"items": {"default": {}}}]
    return _kind(f"{kind}List", "ListMeta", items)


TYPES: dict[str, list[Any]] = {
    PREFIX + "ContainerMetrics": [
        _MESSAGE + "ContainerMetrics",
        [["name", "r", 1, "string", {"default": ""}], ["usage", "r", 2, _QUANTITIES]],
        [],
        {},
    ],
    PREFIX + "NodeMetrics": _metrics("NodeMetrics", ["usage", "r", 4, _QUANTITIES]),
    PREFIX + "NodeMetricsList": _list("NodeMetrics"),
    PREFIX + "PodMetrics": _metrics(
        "PodMetrics", ["containers", "r", 4, f"[#{PREFIX}ContainerMetrics", {"items": {"default": {}}}]
    ),
    PREFIX + "PodMetricsList": _list("PodMetrics"),
}
