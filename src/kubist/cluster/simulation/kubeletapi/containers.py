"""Containers of a pod: their spec, their status, and whether a kubelet would find them running."""

from __future__ import annotations

from kubist.api.kinds.core.podspec.visit import containers_of
from kubist.model.meta.object import Object

ANNOTATION = "kubist.io/"
STATUSES = ("containerStatuses", "initContainerStatuses", "ephemeralContainerStatuses")


def spec_of(pod: Object, name: str) -> Object:
    """Spec of a container, init container or ephemeral container. LookupError if there is none."""
    for container in containers_of(pod["spec"]):
        if container.get("name") == name:
            found: Object = container
            return found
    raise LookupError(name)


def status_of(pod: Object, name: str) -> Object | None:
    """Status of a container; None if the kubelet has not reported one."""
    for field in STATUSES:
        for status in (pod.get("status") or {}).get(field) or ():
            if status["name"] == name:
                found: Object = status
                return found
    return None


def is_running(pod: Object, name: str) -> bool:
    status = status_of(pod, name)
    return status is not None and "running" in (status.get("state") or {})


def has_ended(pod: Object, name: str) -> bool:
    status = status_of(pod, name)
    return status is not None and "terminated" in (status.get("state") or {})


def annotation(pod: Object, name: str, container: str) -> str | None:
    """Annotation `kubist.io/NAME.CONTAINER`, else `kubist.io/NAME`."""
    annotations = pod["metadata"].get("annotations") or {}
    key = f"{ANNOTATION}{name}"
    found: str | None = annotations.get(f"{key}.{container}", annotations.get(key))
    return found


def shown(pod: Object) -> str:
    metadata = pod["metadata"]
    return f"{metadata['namespace']}/{metadata['name']}"
