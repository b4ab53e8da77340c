"""Kubist: the Kubernetes API server as a Python package."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from kubist.config import Config
    from kubist.embedded import Server

__version__ = "0.1.0"
__all__ = ["Config", "Server", "__version__"]


def __getattr__(name: str) -> Any:
    if name == "Server":
        from kubist.embedded import Server

        return Server
    if name == "Config":
        from kubist.config import Config

        return Config
    raise AttributeError(f"module 'kubist' has no attribute {name!r}")
