"""In-place resize of simulated pods: which containers differ from their status, whether the node has room, Events."""

from __future__ import annotations

from orjson import dumps

from kubist.api.admission import amounts
from kubist.api.kinds.shared.pod_conditions import observe_generation
from kubist.cluster.simulation.containers import PodEvent
from kubist.model.meta.conditions import find
from kubist.model.meta.object import Object

PENDING = "PodResizePending"


def is_resized(container: Object, status: Object) -> bool:
    """Whether the resources of a running container differ from those in its status."""
    resources = container.get("resources") or {}
    return "resources" in status and status["resources"] != resources


def needs_restart(container: Object, status: Object) -> bool:
    """Whether the resize policy of a changed resource requires a restart of the container."""
    resources, known = container.get("resources") or {}, status.get("resources") or {}
    restarting = {
        policy["resourceName"]
        for policy in container.get("resizePolicy") or ()
        if policy.get("restartPolicy") == "RestartContainer"
    }
    return any(
        (resources.get(side) or {}).get(resource) != (known.get(side) or {}).get(resource)
        for side in ("requests", "limits")
        for resource in restarting
    )


def resized_status(container: Object, old_status: Object) -> Object:
    resources = container.get("resources") or {}
    status = {**old_status, "resources": resources}
    if resources.get("requests"):
        status["allocatedResources"] = resources["requests"]
    else:
        status.pop("allocatedResources", None)
    return status


def infeasible(pod: Object, allocatable: Object | None) -> str:
    """Reason why the requests of a pod can never fit on its node. Empty if they can."""
    if not allocatable:
        return ""
    room = amounts.read(allocatable)
    for name, amount in amounts.pod_requests(pod).items():
        if name in ("cpu", "memory") and name in room and amount > room[name]:
            is_cpu = name == "cpu"
            request = amount.milli_value() if is_cpu else amount.value()
            most = room[name].milli_value() if is_cpu else room[name].value()
            return f"Node didn't have enough capacity: {name}, requested: {request}, capacity: {most}"
    return ""


def pending_condition(pod: Object, message: str, stamp: str) -> Object:
    old = find(pod["status"].get("conditions"), PENDING) or {}
    condition: Object = {"type": PENDING}
    observe_generation(condition, pod)
    return condition | {
        "status": "True",
        "lastProbeTime": None,
        "lastTransitionTime": old.get("lastTransitionTime", stamp),
        "reason": "Infeasible",
        "message": message,
    }


def resize_events(pod: Object) -> list[PodEvent]:
    return [
        PodEvent("Normal", "ResizeStarted", f"Pod resize started: {_summary(pod)}"),
        PodEvent("Normal", "ResizeCompleted", f"Pod resize completed: {_summary(pod)}"),
    ]


def infeasible_event(pod: Object, message: str) -> PodEvent:
    return PodEvent("Warning", "ResizeInfeasible", f"Pod resize Infeasible: {_summary(pod, message)}")


def _summary(pod: Object, error: str = "") -> str:
    summary: Object = {
        part: [{"name": each["name"], "resources": each.get("resources") or {}} for each in pod["spec"][part]]
        for part in ("initContainers", "containers")
        if pod["spec"].get(part)
    }
    summary["generation"] = pod["metadata"].get("generation", 0)
    if error:
        summary["error"] = error
    return dumps(summary).decode()
