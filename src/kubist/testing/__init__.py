"""Kubernetes API servers for tests: the pytest plugin (`kubist.testing.plugin`) and the classes of its fixtures."""

from __future__ import annotations

from kubist.testing.cluster import Cluster
from kubist.testing.host import Host

__all__ = ["Cluster", "Host"]
