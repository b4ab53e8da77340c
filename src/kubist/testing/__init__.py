"""Kubernetes API servers for tests: the pytest plugin (`kubist.testing.plugin`) and the classes of its fixtures."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from kubist.testing.cluster import Cluster
from kubist.testing.host import Host

if TYPE_CHECKING:
    from kubist.simulation.kubeletapi.handlers import Exec, LogRequest

__all__ = ["Cluster", "Exec", "Host", "LogRequest"]


def __getattr__(name: str) -> Any:
    if name in ("Exec", "LogRequest"):
        # Saves start-up time: only tests with handlers of simulated pods use it.
        from kubist.simulation.kubeletapi import handlers

        return getattr(handlers, name)
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
