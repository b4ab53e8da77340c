"""The Kubernetes API server as a Python package.

Start a server inside a program and talk to it with any Kubernetes client:

    import kubist

    with kubist.Server() as server:
        print(server.url, server.kubeconfig)

`kubist.Server` takes the fields of `kubist.Config` as keyword arguments. `kubist.testing` has the pytest fixtures and
`Cluster`, a server with helpers for tests. The command line is `kubist --help`.
"""

from __future__ import annotations

from kubist.version import __version__

TYPE_CHECKING = False  # Saves start-up time: executables of envtest do without `typing`.
if TYPE_CHECKING:
    # Saves start-up time: `import kubist` loads no server.
    from typing import Any

    from kubist.config import Config
    from kubist.inprocess import Server

__all__ = ["Config", "Server", "__version__"]


def __getattr__(name: str) -> Any:
    if name == "Server":
        # Saves start-up time: `import kubist` loads no server.
        from kubist.inprocess import Server

        return Server
    if name == "Config":
        # Saves start-up time: `import kubist` loads no server.
        from kubist.config import Config

        return Config
    raise AttributeError(f"module 'kubist' has no attribute {name!r}")


def __dir__() -> list[str]:
    """Names of the package, including those imported on first use, so that `help(kubist)` shows them."""
    return sorted({*globals(), *__all__})
