"""Containers of a PodSpec in the order of the rules: init, regular, ephemeral."""

from __future__ import annotations

from kubist.model.meta.object import Object

FIELDS = ("initContainers", "containers", "ephemeralContainers")


def containers_of(spec: Object) -> list[Object]:
    return [container for field in FIELDS for container in spec.get(field) or ()]


def with_paths(spec: Object, path: str) -> list[tuple[Object, str]]:
    """Each container with its field path, for a spec at `path`."""
    return [
        (container, f"{path}.{field}[{index}]" if path else f"{field}[{index}]")
        for field in FIELDS
        for index, container in enumerate(spec.get(field) or ())
    ]


def restarts_always(container: Object) -> bool:
    """Whether an init container is a sidecar."""
    return container.get("restartPolicy") == "Always"
