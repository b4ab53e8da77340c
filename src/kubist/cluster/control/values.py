"""Helpers for several controllers: scaled values, readiness and activity of pods."""

from __future__ import annotations

from kubist.api.kinds.shared.values import percent
from kubist.model.meta.object import Object


def scaled(value: int | str | None, total: int, *, up: bool) -> int:
    """An int-or-percent value as a number. A percentage is of `total`, rounded up or down. None is 0."""
    if value is None:
        return 0
    if isinstance(value, int):
        return value
    share = (percent(value) or 0) * total
    return -(-share // 100) if up else share // 100


def pod_ready(pod: Object) -> bool:
    conditions = (pod.get("status") or {}).get("conditions") or ()
    return any(each.get("type") == "Ready" and each.get("status") == "True" for each in conditions)


def pod_active(pod: Object) -> bool:
    """Whether a pod counts for its controller: it has not finished and is not being deleted."""
    phase = (pod.get("status") or {}).get("phase")
    return phase not in ("Succeeded", "Failed") and "deletionTimestamp" not in pod["metadata"]
