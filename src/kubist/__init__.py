"""The Kubernetes API server as a Python package.

Start a server inside a program and talk to it with any Kubernetes client:

    import kubist

    with kubist.Server() as server:
        print(server.url, server.kubeconfig)

The settings of `kubist.Config` are keyword arguments:

    kubist.Server(data_dir="./data", secure_port=7443, workloads=True)

A server that cannot start raises an error of `kubist.errors`, such as `PortInUse` or `DataDirectoryInUse`. Its message
is one line with the next step. `kubist.testing` has the pytest fixtures and `Cluster`, a server with helpers for tests.
`kubist.validate` checks manifests without a server. The command line is `kubist --help`.
"""

from __future__ import annotations

from kubist.base.version import __version__

TYPE_CHECKING = False  # Saves start-up time: executables of envtest do without `typing`.
if TYPE_CHECKING:
    # Saves start-up time: `import kubist` loads no server.
    from kubist import errors
    from kubist.api.config import Config
    from kubist.server.inprocess import Server
    from kubist.testing.offline.validation import validate

__all__ = ["Config", "Server", "__version__", "errors", "validate"]


if not TYPE_CHECKING:  # a type checker that saw it would take every name for a public one

    def __getattr__(name):
        if name == "Server":
            # Saves start-up time: `import kubist` loads no server.
            from kubist.server.inprocess import Server

            return Server
        if name == "Config":
            # Saves start-up time: `import kubist` loads no server.
            from kubist.api.config import Config

            return Config
        if name == "errors":
            # Saves start-up time: needed only by programs that run a server.
            import importlib

            return importlib.import_module("kubist.errors")
        if name == "validate":
            # Saves start-up time: `import kubist` loads no server.
            from kubist.testing.offline.validation import validate

            return validate
        raise AttributeError(f"module 'kubist' has no attribute {name!r}")


def __dir__() -> list[str]:
    """Names of the package, including those imported on first use, so that `help(kubist)` shows them."""
    return sorted({*globals(), *__all__})
