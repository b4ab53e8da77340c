"""Schemas of the operations on simulated pods and nodes."""

from __future__ import annotations

from kubist.model.meta.object import Object
from kubist.testbench.control_api.schemas import closed, list_of, text

_CHOICE: Object = {
    "namespace": {"type": "string", "default": "default"},
    "name": text("Name of one pod."),
    "labelSelector": text("Labels of the pods, instead of a name. Neither: all pods of the namespace."),
    "container": text("Name of one container. Missing: all."),
}
_EXIT_CODE: Object = {"type": "integer", "minimum": 1, "maximum": 255, "default": 1}
_PODS: dict[str, tuple[str, Object, tuple[str, ...]]] = {
    "fail": (
        "PodFailure",
        {"exitCode": _EXIT_CODE, "reason": text("Such as OOMKilled."), "message": text("Message.")},
        (),
    ),
    "succeed": ("PodSuccess", {}, ()),
    "crash-loop": ("PodCrashLoop", {"exitCode": _EXIT_CODE}, ()),
    "ready": ("PodReadiness", {"ready": {"type": "boolean"}}, ("ready",)),
    "outcome": ("PodOutcome", {"outcome": text("As in the annotation. Empty: the default.")}, ()),
    "usage": ("PodUsage", {"cpu": text("Such as 250m."), "memory": text("Such as 64Mi.")}, ()),
}
"""Schema of each operation on pods: its name, its own fields, and the required ones."""
WORKLOAD_SCHEMAS: dict[str, Object] = {
    **{name: closed(_CHOICE | own, *required) for name, own, required in _PODS.values()},
    "PodNames": list_of("PodName"),
    "PodName": closed({"namespace": {"type": "string"}, "name": {"type": "string"}}, "namespace", "name"),
    "NodeChoice": closed(
        {"name": text("Name of one node."), "labelSelector": text("Labels of the nodes, instead of a name.")}
    ),
    "NodeNames": list_of("NodeName"),
    "NodeName": closed({"name": {"type": "string"}}, "name"),
}
WORKLOAD_BODIES = {
    **{("POST", f"pods/{operation}"): name for operation, (name, _, _) in _PODS.items()},
    ("POST", "nodes/{operation}"): "NodeChoice",
}
WORKLOAD_RESULTS = {
    **{("POST", f"pods/{operation}"): "PodNames" for operation in _PODS},
    ("POST", "nodes/{operation}"): "NodeNames",
}
