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
from kubist.cli import flags
from kubist.cli.kubeconfig import default_data_dir
from kubist.config import SERVE_DEFAULTS, Config
from kubist.runtime import kubeconfig
from kubist.runtime.pki import credential, prepare
from kubist.runtime.run import explain, fail, run
from kubist.server import Server

_SWITCHES = (
    flags.Flag("in-memory", "bool", "false", "Store nothing on disk: every start is a new, empty server."),
    flags.Flag(
        "kubeconfig", "string", "", "Path of the kubeconfig to write (default: in the data directory)."
    ),
    flags.Flag(
        "kubeconfig-merge", "bool", "false", "Also add a context `kubist` to the user's own kubeconfig."
    ),
)
"""Flags without a setting in Config."""
_SETTINGS = (
    ("data-dir", "string", "Directory of all data (default: kubist in the user's data directory)."),
    ("bind-address", "ip", "Address to listen on."),
    ("secure-port", "int", "Port to listen on; 0 takes any free one."),
    ("service-cluster-ip-range", "string", "Cluster IP range of services."),
    ("service-node-port-range", "portRange", "Node ports of services."),
    ("enable-admission-plugins", "strings", "Admission plugins to enable."),
    ("disable-admission-plugins", "strings", "Admission plugins to disable."),
    ("runtime-config", "mapStringString", "API versions to serve or not: group/version=true, api/beta=true."),
    ("feature-gates", "mapStringBool", "Feature gates of kube-apiserver: Name=true,Other=false."),
    ("controllers", "strings", "Controllers to run: `*` for all, `-name` to exclude one."),
    ("workloads", "bool", "Simulate nodes, a scheduler, running pods and the workload controllers."),
    ("workload-delay", "duration", "Time that a simulated pod takes to become ready."),
    ("stages", "stringArray", "File or directory with KWOK Stages; the flag may be repeated."),
    ("workload-nodes", "int", "Number of simulated nodes."),
    ("workload-node-capacity", "mapStringString", "Size of simulated nodes: cpu=4,memory=16Gi,pods=110."),
    (
        "workload-node-labels",
        "mapStringString",
        "Labels of simulated nodes: topology.kubernetes.io/zone=zone-{i%3}.",
    ),
    ("etcd-servers", "strings", "Store objects in this etcd instead. Several servers may share it."),
    ("etcd-cafile", "string", "CA file for the certificates of the etcd servers."),
    ("etcd-certfile", "string", "Client certificate file for etcd."),
    ("etcd-keyfile", "string", "Key file of the client certificate for etcd."),
    (
        "encryption-provider-config",
        "string",
        "Encryption configuration file: resources to encrypt, and providers.",
    ),
    ("encryption-provider-config-automatic-reload", "bool", "Reload that file when it changes."),
    ("event-ttl", "duration", "Time to keep events."),
    ("v", "Level", "Log level; from 3 on, every request is logged."),
    ("log-format", "string", "Log format: text or json."),
    ("logging-format", "string", "Same as --log-format, under kube-apiserver's name."),
)
"""Flags with a setting in Config, which has their defaults."""
FLAGS = (*_SWITCHES, *(flags.setting(*words, SERVE_DEFAULTS) for words in _SETTINGS), flags.WORKERS)
SIMULATED = "Pods are simulated: no container runs."
NOT_SIMULATED = "Pods do not run: --workloads simulates nodes, a scheduler and the workload controllers."
TITLE = "A small Kubernetes control plane on this machine.\n\nUsage:\n  kubist serve [flags]"


def main(arguments: list[str]) -> int:
    known = {flag.name: flag for flag in FLAGS}
    try:
        values = flags.parse(arguments, known)
        if "help" in values:
            print(flags.usage(TITLE, FLAGS), end="")
            return 0
        flags.check_combinations(values)
        in_memory, merge = flags.is_on(values, "in-memory"), flags.is_on(values, "kubeconfig-merge")
        values = {
            name: given for name, given in values.items() if name not in ("in-memory", "kubeconfig-merge")
        }
        target = values.pop("kubeconfig", [""])[-1]
        config = flags.config(values, known, SERVE_DEFAULTS)
        if "*" in config.controllers:
            config = replace(config, controllers=(*config.controllers, "guidance"))
    except flags.FlagError as error:
        return fail(str(error))
    logs.setup(config.verbosity, config.logging_format)
    if in_memory:
        with tempfile.TemporaryDirectory(prefix="kubist-") as temporary:
            return _serve(config, Path(temporary), target, merge, in_memory=True)
    directory = Path(config.data_dir) if config.data_dir else default_data_dir()
    return _serve(config, directory, target, merge, in_memory=False)


def _serve(config: Config, directory: Path, target: str, merge: bool, *, in_memory: bool) -> int:
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
