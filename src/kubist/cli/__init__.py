"""Command line: `kubist serve`, `kubist apiserver`, and commands for their data."""

from __future__ import annotations

import gc
import sys

from kubist.version import __version__

USAGE = """\
Kubist: the Kubernetes API server as a Python package.

Usage:
  kubist serve [flags]        a small control plane on an embedded store, nothing to configure
  kubist apiserver [flags]    only the API server, with kube-apiserver's own flags
  kubist exec -- COMMAND      run a command with a temporary server and KUBECONFIG set
  kubist envtest [DIR]        make kube-apiserver and etcd executables for envtest
  kubist kubeconfig [flags]   print the kubeconfig of a data directory of `serve`
  kubist backup [flags]       copy the embedded store to a file, even while the server runs
  kubist restore [flags]      replace the store by such a file
  kubist doctor [flags]       check a store for problems
  kubist version

`kubist COMMAND --help` lists its flags.
"""


def main(arguments: list[str] | None = None) -> int:
    """Runs a command and returns its exit code."""
    given = sys.argv[1:] if arguments is None else arguments
    gc.disable()  # Objects made at start are permanent. `runtime.run` enables it again.
    try:
        return _run(*((given[0], given[1:]) if given else ("help", [])))
    except KeyboardInterrupt:
        return 130
    finally:
        gc.enable()


def _run(command: str, rest: list[str]) -> int:
    if command == "serve":
        # Saves start-up time: a command loads only its own module.
        from kubist.cli import serve

        return serve.main(rest)
    if command == "apiserver":
        # Saves start-up time: a command loads only its own module.
        from kubist.cli import apiserver

        return apiserver.main(rest)
    if command == "exec":
        # Saves start-up time: a command loads only its own module.
        from kubist.cli import exec

        return exec.main(rest)
    if command == "envtest":
        # Saves start-up time: a command loads only its own module.
        from kubist.cli import envtest

        return envtest.main(rest)
    if command == "kubeconfig":
        # Saves start-up time: a command loads only its own module.
        from kubist.cli import kubeconfig

        return kubeconfig.main(rest)
    if command in ("backup", "restore", "doctor"):
        # Saves start-up time: a command loads only its own module.
        from kubist.cli import store

        return store.main(command, rest)
    if command in ("version", "--version"):
        print(f"kubist {__version__} (Kubernetes v1.36)")
        return 0
    if command in ("help", "--help", "-h"):
        print(USAGE, end="")
        return 0
    print(f"kubist: unknown command {command!r}; `kubist --help` lists them", file=sys.stderr)
    return 2
