"""Objects that KWOK Stages drive. The simulated kubelet, the nodes and the volume controller leave them alone.

if governs(self.client, "pods", pod):
    return
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Protocol
from weakref import WeakKeyDictionary, WeakSet

from kubist.meta.object import Object
from kubist.objectclient import ObjectClient
from kubist.objectstore.registry import Registry

Rule = Callable[[str, Object], bool]
"""Whether Stages drive an object of a resource of the core group, such as pods."""


class Listener(Protocol):
    """Control loop that leaves objects to Stages."""

    def stages_changed(self) -> None:
        """Other Stages apply, so `governs` may answer differently."""


_rules: WeakKeyDictionary[Registry, Rule] = WeakKeyDictionary()
"""The rule of each server whose Stages are played."""
_listeners: WeakKeyDictionary[Registry, WeakSet[Listener]] = WeakKeyDictionary()


def governs(client: ObjectClient, resource: str, obj: Object) -> bool:
    """Whether Stages drive a pod, node or claim. The answer changes only when Stages or the object change."""
    rule = _rules.get(client.registry)
    return rule is not None and rule(resource, obj)


def claim(client: ObjectClient, rule: Rule) -> None:
    """Makes `governs` ask this rule for objects of the client's server."""
    _rules[client.registry] = rule


def release(client: ObjectClient) -> None:
    _rules.pop(client.registry, None)


def listen(client: ObjectClient, listener: Listener) -> None:
    """Tells a listener about changes as long as it exists."""
    _listeners.setdefault(client.registry, WeakSet()).add(listener)


def notify(client: ObjectClient) -> None:
    """Tells the listeners that the Stages of pods, nodes or claims changed."""
    for listener in list(_listeners.get(client.registry, ())):
        listener.stages_changed()
