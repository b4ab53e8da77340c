"""Whether the priority level of a flow schema exists: a condition that the server itself keeps."""

from __future__ import annotations

from kubist.kinds.shared.conditions import set_condition
from kubist.kinds.strategy import Object

MANAGER = "api-priority-and-fairness-config-consumer-v1"
"""Under which name the server applies the condition."""


def mark(schema: Object, *, level_exists: bool, now: str) -> bool:
    """Set the condition `Dangling`; False if it said so already."""
    level = schema["spec"]["priorityLevelConfiguration"].get("name", "")
    found = "and it exists" if level_exists else "but there is no such object"
    condition = {
        "type": "Dangling",
        "status": "False" if level_exists else "True",
        "reason": "Found" if level_exists else "NotFound",
        "message": (
            f'This FlowSchema references the PriorityLevelConfiguration object named "{level}" {found}'
        ),
    }
    status = schema.setdefault("status", {})
    return set_condition(status.setdefault("conditions", []), condition, now)
