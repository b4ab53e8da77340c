"""Index of pods by their node, for controllers that act when a node changes."""

from __future__ import annotations

import re

from kubist.control.loop import entry_of
from kubist.storage.cache import Change

_node_name = re.compile(rb'"nodeName":"([^"]+)"').search
"""Finds spec.nodeName in stored JSON. No other field of a pod has this name, and quotes in strings are escaped."""

Key = tuple[str, str]


class PodsByNode:
    def __init__(self) -> None:
        self._nodes: dict[Key, str] = {}
        self._pods: dict[str, set[Key]] = {}

    def apply(self, change: Change) -> str:
        """Notes a change of a pod, and returns the node of the pod or an empty string."""
        entry = entry_of(change)
        key = (entry.namespace, entry.name)
        found = _node_name(change.new.tail) if change.new is not None else None
        node = found[1].decode() if found is not None else ""
        old = self._nodes.get(key, "")
        if old != node:
            if old:
                self._pods[old].discard(key)
                if not self._pods[old]:
                    del self._pods[old]
                del self._nodes[key]
            if node:
                self._nodes[key] = node
                self._pods.setdefault(node, set()).add(key)
        return node

    def node_of(self, key: Key) -> str:
        return self._nodes.get(key, "")

    def on(self, node: str) -> list[Key]:
        return sorted(self._pods.get(node, ()))

    def nodes(self) -> list[str]:
        return list(self._pods)
