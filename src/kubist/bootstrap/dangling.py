"""Whether the priority level of a flow schema exists: a condition that the server itself keeps."""

from __future__ import annotations

from typing import Any

from kubist.meta.conditions import set_condition

Object = dict[str, Any]
API_VERSION = "flowcontrol.apiserver.k8s.io/v1"
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


def apply(schema: Object, *, level_exists: bool, now: str) -> bool:
    """Set the condition as the server's own apply does, with its ownership; False if nothing changed."""
    if not mark(schema, level_exists=level_exists, now=now):
        return False
    condition = next(each for each in schema["status"]["conditions"] if each["type"] == "Dangling")
    said: Object = {f"f:{name}": {} for name in sorted(condition)}
    applied = {
        "manager": MANAGER,
        "operation": "Apply",
        "apiVersion": API_VERSION,
        "time": now,
        "fieldsType": "FieldsV1",
        "fieldsV1": {"f:status": {"f:conditions": {'k:{"type":"Dangling"}': {".": {}, **said}}}},
        "subresource": "status",
    }
    managers = schema["metadata"].get("managedFields") or []
    others = [each for each in managers if (each["manager"], each["operation"]) != (MANAGER, "Apply")]
    schema["metadata"]["managedFields"] = [applied, *others]
    return True
