"""Pods behind requests: spec and status of their containers, and changes for open streams."""

from __future__ import annotations

from collections.abc import Callable

from kubist.api.kinds.core.podspec.visit import containers_of
from kubist.api.object_store.registry import Registry
from kubist.model.meta.object import Object
from kubist.storage.cache.cache import Change

ANNOTATION = "kubist.io/"
STATUSES = ("containerStatuses", "initContainerStatuses", "ephemeralContainerStatuses")


def spec_of(pod: Object, name: str) -> Object:
    """Spec of a container, init container or ephemeral container. LookupError if there is none."""
    for container in containers_of(pod["spec"]):
        if container.get("name") == name:
            match: Object = container
            return match
    raise LookupError(name)


def status_of(pod: Object, name: str) -> Object | None:
    """Status of a container; None if the kubelet has not reported one."""
    for field in STATUSES:
        for status in (pod.get("status") or {}).get(field) or ():
            if status["name"] == name:
                match: Object = status
                return match
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
    value: str | None = annotations.get(f"{key}.{container}", annotations.get(key))
    return value


def qualified_name(pod: Object) -> str:
    metadata = pod["metadata"]
    return f"{metadata['namespace']}/{metadata['name']}"


# Changes of pods

Changed = Callable[[Object | None], None]
"""Gets the changed pod; None if it is deleted, or replaced by another pod of the same name."""


class PodWatch:
    """One subscription for all open streams. Without streams there is none."""

    def __init__(self, registry: Registry) -> None:
        resource = registry.resources.stored("", "pods")
        assert resource is not None
        self._collection = registry.collection(resource)
        self._followed: dict[tuple[str, str], dict[object, tuple[str, Changed]]] = {}

    def follow(self, pod: Object, changed: Changed) -> Callable[[], None]:
        """Calls `changed` after each change of a pod. Returns the function that ends it."""
        metadata = pod["metadata"]
        key, token = (metadata["namespace"], metadata["name"]), object()
        if not self._followed:
            self._collection.subscribe(self, self._changed)
        self._followed.setdefault(key, {})[token] = (metadata["uid"], changed)

        def stop() -> None:
            followers = self._followed.get(key)
            if followers is None or followers.pop(token, None) is None:
                return
            if not followers:
                del self._followed[key]
            if not self._followed:
                self._collection.unsubscribe(self)

        return stop

    def _changed(self, changes: list[Change]) -> None:
        for change in changes:
            entry = change.new or change.old
            assert entry is not None
            followers = self._followed.get((entry.namespace, entry.name))
            if not followers:
                continue
            pod = change.new.object() if change.new is not None else None
            for uid, changed in list(followers.values()):
                changed(pod if pod is not None and pod["metadata"]["uid"] == uid else None)
