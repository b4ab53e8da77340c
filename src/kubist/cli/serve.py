"""`kubist serve`: a small control plane on an embedded store, with nothing to configure.

The data directory gets certificates, the administrator's credentials, a signing key and a kubeconfig on first
start.
"""

from __future__ import annotations

import shlex
import tempfile
from dataclasses import replace
from pathlib import Path

from kubist import files, logs
from kubist.cli import flags, help
from kubist.cli.exits import fail
from kubist.cli.kubeconfig import default_data_dir
from kubist.cli.serveflags import FLAGS as FLAGS
from kubist.cli.serveflags import SWITCHES
from kubist.config import SERVE_DEFAULTS, Config

SIMULATED = "Pods are simulated: no container runs."
NOT_SIMULATED = "Pods do not run: --workloads simulates nodes, a scheduler and the workload controllers."
TITLE = "A small Kubernetes control plane on this machine.\n\nUsage:\n  kubist serve [flags]"


def main(arguments: list[str]) -> int:
    known = {flag.name: flag for flag in FLAGS}
    values = flags.parse(arguments, known)
    if "help" in values:
        return help.show(TITLE, FLAGS)
    flags.check_combinations(values)
    in_memory, merge = flags.is_on(values, "in-memory"), flags.is_on(values, "kubeconfig-merge")
    target = values.get("kubeconfig", [""])[-1]
    settings = {name: given for name, given in values.items() if known[name] not in SWITCHES}
    config = flags.config(settings, known, SERVE_DEFAULTS)
    if "*" in config.controllers:
        config = replace(config, controllers=(*config.controllers, "guidance"))
    logs.setup(config.verbosity, config.logging_format)
    if in_memory:
        with tempfile.TemporaryDirectory(prefix="kubist-") as temporary:
            return _serve(config, Path(temporary), target, merge, in_memory=True)
    directory = Path(config.data_dir) if config.data_dir else default_data_dir()
    return _serve(config, directory, target, merge, in_memory=False)


def _serve(config: Config, directory: Path, target: str, merge: bool, *, in_memory: bool) -> int:
    # Saves start-up time: wrong flags and `--help` need no server.
    from kubist.runtime import kubeconfig
    from kubist.runtime.pki import credential, prepare
    from kubist.runtime.run import explain, run
    from kubist.server import Server

    try:
        files.make_directory(directory)
        config = prepare(config, directory, in_memory=in_memory)
    except (OSError, ValueError) as error:
        return fail(explain(error) if isinstance(error, OSError) else str(error))
    path = Path(target) if target else directory / "kubeconfig"

    def announce(port: int) -> None:
        url = f"https://{_reachable(config.bind_address)}:{port}"
        credentials = credential(directory, url)
        kubeconfig.write(path, credentials)
        if merge:
            print(f"Added the context {kubeconfig.CONTEXT!r} to {kubeconfig.merge(credentials)}")
        print(f"Kubist serves Kubernetes v1.36 on {url}")
        print(f"  export KUBECONFIG={shlex.quote(str(path.absolute()))}")
        print(f"  {SIMULATED if config.workloads else NOT_SIMULATED}", flush=True)

    if config.workers > 1:
        # Saves start-up time: only --workers needs it.
        from kubist.workers.supervisor import supervise

        return supervise(config, announce)
    return run(lambda: Server(config), announce)


def _reachable(address: str) -> str:
    """An address that a client on this machine can use."""
    if address in ("0.0.0.0", "::", ""):
        return "127.0.0.1"
    return f"[{address}]" if ":" in address else address
