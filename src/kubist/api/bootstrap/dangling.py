"""Condition `Dangling` of FlowSchemas: whether the referenced priority level is missing. The server sets it."""

from __future__ import annotations

from kubist.model.meta.conditions import set_condition
from kubist.model.meta.object import Object

API_VERSION = "flowcontrol.apiserver.k8s.io/v1"
MANAGER = "api-priority-and-fairness-config-consumer-v1"
"""Field manager of the condition."""


def mark(schema: Object, *, level_exists: bool, now: str) -> bool:
    """Sets the condition `Dangling`. Returns False if it is unchanged."""
    level = schema["spec"]["priorityLevelConfiguration"].get("name", "")
    ending = "and it exists" if level_exists else "but there is no such object"
    condition = {
        "type": "Dangling",
        "status": "False" if level_exists else "True",
        "reason": "Found" if level_exists else "NotFound",
        "message": (
            f'This FlowSchema references the PriorityLevelConfiguration object named "{level}" {ending}'
        ),
    }
    status = schema.setdefault("status", {})
    return set_condition(status.setdefault("conditions", []), condition, now)


def apply(schema: Object, *, level_exists: bool, now: str) -> bool:
    """Sets the condition with the ownership of the server's apply. Returns False if it is unchanged."""
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
