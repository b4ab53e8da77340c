"""Kubernetes API servers for tests: the pytest plugin (`kubist.testing.plugin`) and the classes of its fixtures."""

from __future__ import annotations

import importlib

TYPE_CHECKING = False  # Saves start-up time: pytest loads this package even if no test uses a server.
if TYPE_CHECKING:
    from typing import Any

    from kubist.simulation.kubeletapi.handlers import Exec, LogRequest
    from kubist.testing.cluster import Cluster
    from kubist.testing.host import Host
    from kubist.testing.replaying import replay
    from kubist.testing.webhooks.admission import AdmissionRequest
    from kubist.testing.webhooks.authorizer import AuthorizationRequest
    from kubist.testing.webhooks.denied import Denied

__all__ = [
    "AdmissionRequest",
    "AuthorizationRequest",
    "Cluster",
    "Denied",
    "Exec",
    "Host",
    "LogRequest",
    "replay",
]

LATER = {
    "AdmissionRequest": "kubist.testing.webhooks.admission",
    "AuthorizationRequest": "kubist.testing.webhooks.authorizer",
    "Cluster": "kubist.testing.cluster",
    "Denied": "kubist.testing.webhooks.denied",
    "Exec": "kubist.simulation.kubeletapi.handlers",
    "Host": "kubist.testing.host",
    "LogRequest": "kubist.simulation.kubeletapi.handlers",
    "replay": "kubist.testing.replaying",
}
"""Modules of the public names. They are imported on first use, because they load a server."""


def __getattr__(name: str) -> Any:
    if name in LATER:
        return getattr(importlib.import_module(LATER[name]), name)
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")


def __dir__() -> list[str]:
    """Names of the package, including those imported on first use."""
    return sorted({*globals(), *__all__})
