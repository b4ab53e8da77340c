"""`kubist serve`: a small control plane on an embedded store, with nothing to configure.

The data directory gets certificates, the administrator's credentials, a signing key and a kubeconfig on first
start.
"""

from __future__ import annotations

import shlex
import tempfile
from pathlib import Path

from kubist import files, logs
from kubist.cli import flags
from kubist.cli.kubeconfig import default_data_dir
from kubist.config import Config
from kubist.runtime import kubeconfig
from kubist.runtime.pki import credential, prepare
from kubist.runtime.run import explain, fail, run
from kubist.server import Server

FLAGS = (
    flags.Flag(
        "data-dir", "string", "", "Directory of all data (default: kubist in the user's data directory)."
    ),
    flags.Flag("in-memory", "bool", "false", "Store nothing on disk: every start is a new, empty server."),
    flags.Flag("bind-address", "ip", "127.0.0.1", "Address to listen on."),
    flags.Flag("secure-port", "int", "6443", "Port to listen on; 0 takes any free one."),
    flags.Flag(
        "kubeconfig", "string", "", "Path of the kubeconfig to write (default: in the data directory)."
    ),
    flags.Flag(
        "kubeconfig-merge", "bool", "false", "Also add a context `kubist` to the user's own kubeconfig."
    ),
    flags.Flag("service-cluster-ip-range", "string", "10.96.0.0/16", "Cluster IP range of services."),
    flags.Flag("service-node-port-range", "portRange", "30000-32767", "Node ports of services."),
    flags.Flag("enable-admission-plugins", "strings", "", "Admission plugins to enable."),
    flags.Flag("disable-admission-plugins", "strings", "", "Admission plugins to disable."),
    flags.Flag("controllers", "strings", "*", "Controllers to run: `*` for all, `-name` to exclude one."),
    flags.Flag("workloads", "bool", "false", "Simulate a node, running pods and the workload controllers."),
    flags.Flag("workload-delay", "duration", "0s", "Time that a simulated pod takes to become ready."),
    flags.Flag(
        "etcd-servers", "strings", "", "Store objects in this etcd instead. Several servers may share it."
    ),
    flags.Flag("etcd-cafile", "string", "", "CA file for the certificates of the etcd servers."),
    flags.Flag("etcd-certfile", "string", "", "Client certificate file for etcd."),
    flags.Flag("etcd-keyfile", "string", "", "Key file of the client certificate for etcd."),
    flags.Flag(
        "encryption-provider-config",
        "string",
        "",
        "Encryption configuration file: resources to encrypt, and providers.",
    ),
    flags.Flag(
        "encryption-provider-config-automatic-reload", "bool", "false", "Reload that file when it changes."
    ),
    flags.Flag("event-ttl", "duration", "1h0m0s", "Time to keep events."),
    flags.WORKERS,
    flags.Flag("v", "Level", "0", "Log level; from 3 on, every request is logged."),
    flags.Flag("log-format", "string", "text", "Log format: text or json."),
    flags.Flag("logging-format", "string", "text", "Same as --log-format, under kube-apiserver's name."),
)
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
        base = Config(
            bind_address="127.0.0.1",
            authorization_mode=("RBAC",),
            service_cluster_ip_range="10.96.0.0/16",
            service_account_issuer=("https://kubernetes.default.svc.cluster.local",),
            allow_privileged=True,
            controllers=("*",),
        )
        config = flags.config(values, known, base)
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
        print(f"  export KUBECONFIG={shlex.quote(str(path.absolute()))}", flush=True)

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
