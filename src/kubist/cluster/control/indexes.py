"""Indexes for controllers that act when another object changes: names by namespace, and pods by node."""

from __future__ import annotations

from kubist.cluster.control.loop import entry_of
from kubist.storage.cache.cache import Change


class NamesByNamespace:
    """Names of all objects of a resource."""

    def __init__(self) -> None:
        self._names: dict[str, set[str]] = {}

    def __bool__(self) -> bool:
        return bool(self._names)

    def apply(self, change: Change) -> None:
        if change.new is not None:
            self._names.setdefault(change.new.namespace, set()).add(change.new.name)
        elif change.old is not None and (names := self._names.get(change.old.namespace)) is not None:
            names.discard(change.old.name)
            if not names:
                del self._names[change.old.namespace]

    def keys(self, namespace: str) -> list[tuple[str, str]]:
        """Namespace and name of every object in the namespace."""
        return [(namespace, name) for name in self._names.get(namespace, ())]


NODE_NAME = b'"nodeName":"'
"""Start of spec.nodeName in stored JSON. No other field of a pod has this name, and quotes in strings are escaped."""

Key = tuple[str, str]


class PodsByNode:
    def __init__(self) -> None:
        self._nodes: dict[str, str] = {}
        """Node of each assigned pod, by the key of the store."""
        self._pods: dict[str, set[Key]] = {}

    def apply(self, change: Change) -> str:
        """Records a change of a pod. Returns the node of the pod or an empty string."""
        entry = entry_of(change)
        node = node_in(change.new.tail) if change.new is not None else ""
        old = self._nodes.get(entry.key, "")
        if old != node:
            key = (entry.namespace, entry.name)
            if old:
                self._pods[old].discard(key)
                if not self._pods[old]:
                    del self._pods[old]
                del self._nodes[entry.key]
            if node:
                self._nodes[entry.key] = node
                self._pods.setdefault(node, set()).add(key)
        return node

    def on(self, node: str) -> list[Key]:
        return sorted(self._pods.get(node, ()))


def node_in(tail: bytes) -> str:
    """Node of a stored pod, or an empty string."""
    start = tail.find(NODE_NAME)
    if start < 0:
        return ""
    start += len(NODE_NAME)
    return tail[start : tail.index(b'"', start)].decode()
