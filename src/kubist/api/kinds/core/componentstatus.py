"""ComponentStatus: health of the control plane's components. Computed, never stored."""

from __future__ import annotations

from collections.abc import Iterable
from typing import TYPE_CHECKING

from kubist.api.resources.strategy import Strategy
from kubist.model.meta.object import Object

if TYPE_CHECKING:
    pass

_REFUSED = "connect: connection refused"


def _component(name: str, status: str, message: str, error: str = "") -> Object:
    condition = {"type": "Healthy", "status": status}
    if message:
        condition["message"] = message
    if error:
        condition["error"] = error
    return {
        "apiVersion": "v1",
        "kind": "ComponentStatus",
        "metadata": {"name": name},
        "conditions": [condition],
    }


def _absent(name: str, port: int) -> Object:
    url = f"https://127.0.0.1:{port}/healthz"
    return _component(name, "False", f'Get "{url}": dial tcp 127.0.0.1:{port}: {_REFUSED}')


class ComponentStatusStrategy(Strategy):
    deprecation = "v1 ComponentStatus is deprecated in v1.19+"

    def virtual_objects(self, namespace: str = "") -> Iterable[Object]:
        """Reports etcd-0 as healthy, because this server only runs with a working store. Scheduler and
        controller-manager are not part of this process and are reported as unreachable."""
        return [
            _absent("controller-manager", 10257),
            _component("etcd-0", "True", "ok"),
            _absent("scheduler", 10259),
        ]


strategy = ComponentStatusStrategy()
