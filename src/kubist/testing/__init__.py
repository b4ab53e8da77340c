"""Kubernetes API servers for tests: the pytest plugin (`kubist.testing.plugin`) and the classes of its fixtures."""

from __future__ import annotations

import importlib

TYPE_CHECKING = False  # Saves start-up time: pytest loads this package even if no test uses a server.
if TYPE_CHECKING:
    from kubist.cluster.simulation.kubelet_api.handlers import Exec, LogRequest
    from kubist.testing.cluster import Cluster
    from kubist.testing.errors import Denied, Refused
    from kubist.testing.host import Host
    from kubist.testing.operators.kopf_operators import KopfOperators
    from kubist.testing.operators.operator import OperatorFailed
    from kubist.testing.replaying import replay
    from kubist.testing.webhooks.admission import AdmissionRequest
    from kubist.testing.webhooks.authorizer import AuthorizationRequest

__all__ = [
    "AdmissionRequest",
    "AuthorizationRequest",
    "Cluster",
    "Denied",
    "Exec",
    "Host",
    "KopfOperators",
    "LogRequest",
    "OperatorFailed",
    "Refused",
    "replay",
]

LATER = {
    "AdmissionRequest": "kubist.testing.webhooks.admission",
    "AuthorizationRequest": "kubist.testing.webhooks.authorizer",
    "Cluster": "kubist.testing.cluster",
    "Denied": "kubist.testing.errors",
    "Exec": "kubist.cluster.simulation.kubelet_api.handlers",
    "Host": "kubist.testing.host",
    "KopfOperators": "kubist.testing.operators.kopf_operators",
    "LogRequest": "kubist.cluster.simulation.kubelet_api.handlers",
    "OperatorFailed": "kubist.testing.operators.operator",
    "Refused": "kubist.testing.errors",
    "replay": "kubist.testing.replaying",
}
"""Modules of the public names. They are imported on first use, because they load a server."""


if not TYPE_CHECKING:  # a type checker that saw it would take every name for a public one

    def __getattr__(name):
        if name in LATER:
            return getattr(importlib.import_module(LATER[name]), name)
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")


def __dir__() -> list[str]:
    """Names of the package, including those imported on first use."""
    return sorted({*globals(), *__all__})
