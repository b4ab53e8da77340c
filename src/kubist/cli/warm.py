"""Helper process of `kubist envtest --warm`, and its start."""

from __future__ import annotations

import contextlib
import importlib
import subprocess
import sys
from pathlib import Path

from kubist.cli import kube_apiserver
from kubist.testing.envtest import warm
from kubist.testing.envtest.assets import identity, import_paths

_LOADED_LATER = (
    "kubist.cli.flags",
    "kubist.testing.envtest.environment",
    "kubist.server.runtime.run",
    "kubist.api.filters.authentication.chains",
    "kubist.api.filters.authentication.serviceaccounts",
    "encodings.idna",
)
"""Modules that flags and first requests load, in addition to those of a server with default settings."""
_PROGRAM = """\
import sys

sys.path += {paths!r}
from kubist.cli.warm import main

main({directory!r}, {identity!r})
"""


def start(directory: Path) -> None:
    """Starts the helper for the assets in a directory, unless it runs. Raises ValueError if it does not start."""
    warm.check_folder(directory)
    if warm.is_running(directory, identity()):
        return
    program = _PROGRAM.format(paths=import_paths(), directory=str(directory), identity=identity())
    done = subprocess.run(
        [sys.executable, "-I", "-S", "-c", program, "kubist envtest --warm"],
        cwd="/",
        stdin=subprocess.DEVNULL,
        stdout=subprocess.DEVNULL,
        stderr=subprocess.PIPE,
        text=True,
        start_new_session=True,
    )
    if done.returncode:
        raise ValueError(f"the helper of --warm did not start: {done.stderr}")


def main(directory: str, identity: str) -> None:
    """Runs the helper, and in the processes that it forks, a server."""
    load_server()
    sys.exit(warm.serve(Path(directory), identity, kube_apiserver.main))


def load_server() -> None:
    """Loads the modules of a server and fills their caches. Opens no store and starts no thread."""
    # Saves start-up time: the command that starts the helper needs no server.
    from kubist.api.config import Config
    from kubist.server.server import Server

    for name in _LOADED_LATER:
        importlib.import_module(name)
    with contextlib.suppress(ImportError):
        importlib.import_module("uvloop")
    Server(Config())
