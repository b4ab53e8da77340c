"""Pod conditions, which have lastProbeTime, unlike the common conditions."""

from __future__ import annotations

from kubist.model.meta.conditions import find
from kubist.model.meta.object import Object


def set_pod_condition(status: Object, condition: Object, now: str) -> None:
    """Replaces the condition of the same type, or appends it. Keeps lastTransitionTime if the status is unchanged."""
    conditions = status.setdefault("conditions", [])
    old = find(conditions, condition["type"])
    same_status = old is not None and old.get("status") == condition["status"]
    moved = (old or {}).get("lastTransitionTime") if same_status else now
    full = {**condition, "lastProbeTime": None, "lastTransitionTime": moved}
    if old is None:
        conditions.append(full)
    else:
        conditions[conditions.index(old)] = full


def mark_disrupted(pod: Object, reason: str, message: str, now: str) -> None:
    """Sets the condition DisruptionTarget of a pod that a controller is about to delete."""
    condition = {"type": "DisruptionTarget", "status": "True", "reason": reason, "message": message}
    observe_generation(condition, pod)
    set_pod_condition(pod["status"], condition, now)


def observe_generation(condition: Object, pod: Object) -> None:
    """Sets observedGeneration, unless the pod has no generation."""
    if generation := pod["metadata"].get("generation"):
        condition["observedGeneration"] = generation


def is_ready(pod: Object) -> bool:
    ready = find((pod.get("status") or {}).get("conditions"), "Ready")
    return ready is not None and ready.get("status") == "True"
