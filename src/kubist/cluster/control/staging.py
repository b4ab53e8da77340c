"""Objects that KWOK Stages drive. The simulated kubelet, the nodes and the volume controller leave them alone.

if governs(self.client, "pods", pod):
    return
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Protocol
from weakref import WeakSet

from kubist.api.object_client import ObjectClient
from kubist.model.meta.object import Object

Rule = Callable[[str, Object], bool]
"""Whether Stages drive an object of a resource of the core group, such as pods."""


class Listener(Protocol):
    """Control loop that leaves objects to Stages."""

    def stages_changed(self) -> None:
        """Other Stages apply, so `governs` may answer differently."""


class _Staging:
    """State of the Stages of one server."""

    def __init__(self) -> None:
        self.rule: Rule | None = None
        self.listeners: WeakSet[Listener] = WeakSet()


def governs(client: ObjectClient, resource: str, obj: Object) -> bool:
    """Whether Stages drive a pod, node or claim. The answer changes only when Stages or the object change."""
    rule = client.shared(_Staging).rule
    return rule is not None and rule(resource, obj)


def claim(client: ObjectClient, rule: Rule) -> None:
    """Makes `governs` use this rule for objects of the client's server."""
    client.shared(_Staging).rule = rule


def release(client: ObjectClient) -> None:
    client.shared(_Staging).rule = None


def listen(client: ObjectClient, listener: Listener) -> None:
    """Tells a listener about changes as long as it exists."""
    client.shared(_Staging).listeners.add(listener)


def notify(client: ObjectClient) -> None:
    """Tells the listeners that the Stages of pods, nodes or claims changed."""
    for listener in list(client.shared(_Staging).listeners):
        listener.stages_changed()
