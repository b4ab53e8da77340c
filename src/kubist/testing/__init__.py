"""Kubernetes API servers for tests: the pytest plugin (`kubist.testing.plugin`) and the classes of its fixtures."""

from __future__ import annotations

import importlib
from typing import TYPE_CHECKING, Any

from kubist.testing.cluster import Cluster
from kubist.testing.host import Host

if TYPE_CHECKING:
    from kubist.simulation.kubeletapi.handlers import Exec, LogRequest
    from kubist.testing.webhooks.admission import AdmissionRequest
    from kubist.testing.webhooks.authorizer import AuthorizationRequest
    from kubist.testing.webhooks.denied import Denied

__all__ = ["AdmissionRequest", "AuthorizationRequest", "Cluster", "Denied", "Exec", "Host", "LogRequest"]

LATER = {
    "Exec": "kubist.simulation.kubeletapi.handlers",
    "LogRequest": "kubist.simulation.kubeletapi.handlers",
    "AdmissionRequest": "kubist.testing.webhooks.admission",
    "AuthorizationRequest": "kubist.testing.webhooks.authorizer",
    "Denied": "kubist.testing.webhooks.denied",
}
"""Modules of names that few tests use. They are imported on first use, which saves start-up time."""


def __getattr__(name: str) -> Any:
    if name in LATER:
        return getattr(importlib.import_module(LATER[name]), name)
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
