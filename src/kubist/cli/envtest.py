"""`kubist envtest`: makes the folder that KUBEBUILDER_ASSETS names."""

from __future__ import annotations

import shlex
from pathlib import Path

from kubist.cli import apiserver, help
from kubist.cli.data_dir import default_data_dir
from kubist.cli.exits import USAGE as USAGE_ERROR
from kubist.cli.exits import fail
from kubist.cli.flag_list import of_kube_apiserver, usage
from kubist.testing.envtest.assets import write_assets

USAGE = """\
Makes a folder with the executables kube-apiserver, etcd and kubectl for envtest and similar test libraries, and
prints the setting for them. Running it again changes nothing.

Usage:
  kubist envtest [--warm] [DIR]
  eval "$(kubist envtest)" && go test ./...

DIR is `envtest` in the user's data directory if it is missing. docs/envtest.md describes the environment variables.

--warm starts a helper process that has the server loaded, so that kube-apiserver starts faster. The helper ends after
15 minutes without a start, or when DIR is removed.
"""


def main(arguments: list[str]) -> int:
    if "--help" in arguments or "-h" in arguments:
        print(help.coloured(USAGE), end="")
        return 0
    places = [word for word in arguments if word != "--warm"]
    if len(places) > 1 or any(word.startswith("-") for word in places):
        return fail(
            f"unexpected argument {places[-1]!r}: the usage is kubist envtest [--warm] [DIR]", USAGE_ERROR
        )
    directory = Path(places[0]).absolute() if places else default_data_dir() / "envtest"
    try:
        make_assets(directory)
        if "--warm" in arguments:
            # Saves start-up time: only --warm needs it.
            from kubist.cli import warm

            warm.start(directory)
    except ValueError as error:
        return fail(str(error))
    print(f"export KUBEBUILDER_ASSETS={shlex.quote(str(directory))}")
    return 0


def make_assets(directory: Path) -> None:
    """Makes the executables, or repairs them."""
    write_assets(directory, usage(apiserver.TITLE, of_kube_apiserver().values()))
