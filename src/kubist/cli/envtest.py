"""`kubist envtest`: makes the folder that KUBEBUILDER_ASSETS names."""

from __future__ import annotations

import shlex
from pathlib import Path

from kubist.cli.kubeconfig import default_data_dir
from kubist.envtest.assets import write_assets
from kubist.runtime.run import explain, fail

USAGE = """\
Makes a folder with the executables kube-apiserver, etcd and kubectl for envtest and similar test libraries, and
prints the setting for them. Running it again changes nothing.

Usage:
  kubist envtest [DIR]
  eval "$(kubist envtest)" && go test ./...

DIR is `envtest` in the user's data directory if it is missing. docs/envtest.md describes the environment variables.
"""


def main(arguments: list[str]) -> int:
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
