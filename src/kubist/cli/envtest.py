"""`kubist envtest`: makes the folder that KUBEBUILDER_ASSETS names, and is the `kube-apiserver` in it."""

from __future__ import annotations

import os
import shlex
from pathlib import Path

USAGE = """\
Makes a folder with the executables kube-apiserver, etcd and kubectl for envtest and similar test libraries, and
prints the setting for them. Running it again changes nothing.

Usage:
  kubist envtest [DIR]
  eval "$(kubist envtest)" && go test ./...

DIR is `envtest` in the user's data directory if it is missing. docs/envtest.md describes the environment variables.
"""


def main(arguments: list[str]) -> int:
    # Saves start-up time: the kube-apiserver of the assets does without them.
    from kubist.cli.kubeconfig import default_data_dir
    from kubist.envtest.assets import write_assets
    from kubist.runtime.run import explain, fail

    if "--help" in arguments or "-h" in arguments:
        print(USAGE, end="")
        return 0
    if len(arguments) > 1 or any(word.startswith("-") for word in arguments):
        return fail(f"unexpected argument {arguments[-1]!r}: the usage is kubist envtest [DIR]")
    directory = Path(arguments[0]).absolute() if arguments else default_data_dir() / "envtest"
    try:
        write_assets(directory)
    except OSError as error:
        return fail(explain(error))
    print(f"export KUBEBUILDER_ASSETS={shlex.quote(str(directory))}")
    return 0


def kube_apiserver(arguments: list[str]) -> int:
    """The `kube-apiserver` of the assets: `kubist apiserver` with the settings of `envtest.environment`."""
    # Saves start-up time: `kubist envtest` needs no server.
    from kubist.cli import apiserver
    from kubist.envtest.environment import configured

    return apiserver.main(arguments, lambda config: configured(config, os.environ))
