"""Accessors for a CRD: versions, names, subresources, conditions.

All functions work on the plain object; this module keeps no state.
"""

from __future__ import annotations

from kubist.model.meta.object import Object

FINALIZER = "customresourcecleanup.apiextensions.k8s.io"
GROUP = "apiextensions.k8s.io"
PLURAL = "customresourcedefinitions"
APPROVED_ANNOTATION = "api-approved.kubernetes.io"


def versions(crd: Object) -> list[Object]:
    return crd["spec"].get("versions") or []


def version(crd: Object, name: str) -> Object | None:
    return next((found for found in versions(crd) if found["name"] == name), None)


def storage_version(crd: Object) -> str:
    return next((str(found["name"]) for found in versions(crd) if found.get("storage")), "")


def schema_of(found: Object) -> Object | None:
    """OpenAPI v3 schema of a version."""
    return (found.get("schema") or {}).get("openAPIV3Schema")


def subresources_of(found: Object) -> Object:
    return found.get("subresources") or {}


def condition(crd: Object, kind: str) -> Object | None:
    conditions = (crd.get("status") or {}).get("conditions") or ()
    return next((found for found in conditions if found["type"] == kind), None)


def is_true(crd: Object, kind: str) -> bool:
    found = condition(crd, kind)
    return found is not None and found["status"] == "True"


def established(crd: Object) -> bool:
    return is_true(crd, "Established")


def set_condition(crd: Object, kind: str, status: str, reason: str, message: str, now: str) -> None:
    found = condition(crd, kind)
    if found is None:
        new = {
            "type": kind,
            "status": status,
            "lastTransitionTime": now,
            "reason": reason,
            "message": message,
        }
        crd["status"]["conditions"] = [*(crd["status"].get("conditions") or ()), new]
        return
    if found["status"] != status or not found.get("lastTransitionTime"):
        found["lastTransitionTime"] = now
    found["status"], found["reason"], found["message"] = status, reason, message
