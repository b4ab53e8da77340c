"""Pages: config maps with the label `page`. Both operators use these functions."""

from collections.abc import Iterator
from typing import Any

import kubernetes


def watch(core: kubernetes.client.CoreV1Api, version: str | None = None) -> Iterator[Any]:
    """Changes of pages, since a resource version."""
    arguments = {"resource_version": version} if version else {}
    found = kubernetes.watch.Watch()
    return found.stream(core.list_namespaced_config_map, "default", label_selector="page", **arguments)


def report(core: kubernetes.client.CoreV1Api, known: set[str]) -> None:
    """Publishes the names of all pages."""
    core.patch_namespaced_config_map("report", "default", {"data": {"pages": " ".join(sorted(known))}})
