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
    return next((entry for entry in versions(crd) if entry["name"] == name), None)


def storage_version(crd: Object) -> str:
    return next((str(entry["name"]) for entry in versions(crd) if entry.get("storage")), "")


def schema_of(entry: Object) -> Object | None:
    """OpenAPI v3 schema of a version."""
    return (entry.get("schema") or {}).get("openAPIV3Schema")


def subresources_of(entry: Object) -> Object:
    return entry.get("subresources") or {}


def condition(crd: Object, kind: str) -> Object | None:
    conditions = (crd.get("status") or {}).get("conditions") or ()
    return next((item for item in conditions if item["type"] == kind), None)


def is_true(crd: Object, kind: str) -> bool:
    current = condition(crd, kind)
    return current is not None and current["status"] == "True"


def established(crd: Object) -> bool:
    return is_true(crd, "Established")


def set_condition(crd: Object, kind: str, status: str, reason: str, message: str, now: str) -> None:
    current = condition(crd, kind)
    if current is None:
        new = {
            "type": kind,
            "status": status,
            "lastTransitionTime": now,
            "reason": reason,
            "message": message,
        }
        crd["status"]["conditions"] = [*(crd["status"].get("conditions") or ()), new]
        return
    if current["status"] != status or not current.get("lastTransitionTime"):
        current["lastTransitionTime"] = now
    current["status"], current["reason"], current["message"] = status, reason, message
