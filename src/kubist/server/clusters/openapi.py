"""OpenAPI schemas of `/kubist/v1/clusters`."""

from __future__ import annotations

from kubist.model.meta.object import Object
from kubist.testbench.control_api.schemas import DURATION, closed, list_of

_LIMITS = {
    "type": "object",
    "description": "Limits of the cluster. 0 or missing: no limit.",
    "properties": {
        "objects": {"type": "integer", "minimum": 0},
        "bytes": {"type": "integer", "minimum": 0},
        "requestsPerSecond": {"type": "integer", "minimum": 0},
    },
    "additionalProperties": False,
}
_CONTROLLERS = {
    "type": "array",
    "items": {"type": "string"},
    "description": "Control loops: `*` for all, `name` for one, `-name` to exclude one. Empty: none.",
}
_STORAGE = {"type": "string", "enum": ["memory", "disk"]}
_CLUSTER: Object = {
    "name": {"type": "string"},
    "uid": {"type": "string"},
    "path": {"type": "string", "description": "Path of the cluster's API: /clusters/NAME."},
    "state": {"type": "string", "enum": ["Running", "Unloaded"]},
    "storage": _STORAGE,
    "created": {"type": "string", "format": "date-time"},
    "expires": {"type": "string", "format": "date-time"},
    "controllers": _CONTROLLERS,
    "workloads": {"type": "boolean"},
    "limits": _LIMITS,
}
_CLUSTER_REQUIRED = ("name", "uid", "path", "state", "storage", "created")
SCHEMAS: dict[str, Object] = {
    "ClusterSpec": {
        "type": "object",
        "description": "At most one of fork, snapshot and backup; a snapshot of another cluster needs both fork and "
        "snapshot. Without them the cluster is empty.",
        "properties": {
            "name": {
                "type": "string",
                "description": "A DNS label. Missing: a generated name.",
                "maxLength": 63,
            },
            "storage": _STORAGE | {"default": "memory"},
            "fork": {"type": "string", "description": "Name of the cluster whose content is copied."},
            "snapshot": {
                "type": "string",
                "description": "Name of a snapshot of the host, or of the forked cluster.",
            },
            "backup": {"type": "string", "description": "Path of a file of `kubist backup` on the host."},
            "manifests": {
                "description": "Objects to apply: YAML text, or a list of objects.",
                "oneOf": [{"type": "string"}, {"type": "array", "items": {"type": "object"}}],
            },
            "timeToLive": DURATION,
            "controllers": _CONTROLLERS,
            "workloads": {"type": "boolean", "description": "Whether nodes and pods are simulated."},
            "limits": _LIMITS,
        },
        "additionalProperties": False,
    },
    "Cluster": closed(_CLUSTER, *_CLUSTER_REQUIRED),
    "NewCluster": closed(
        _CLUSTER | {"kubeconfig": {"$ref": "#/components/schemas/Kubeconfig"}},
        *_CLUSTER_REQUIRED,
        "kubeconfig",
    ),
    "ClusterList": list_of("Cluster"),
}
BODIES = {("POST", "clusters"): "ClusterSpec"}
RESULTS = {
    ("GET", "clusters"): "ClusterList",
    ("POST", "clusters"): "NewCluster",
    ("GET", "clusters/{name}"): "Cluster",
    ("DELETE", "clusters/{name}"): "Cluster",
    ("GET", "clusters/{name}/kubeconfig"): "Kubeconfig",
}
