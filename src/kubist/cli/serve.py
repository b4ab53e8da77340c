"""`kubist serve`: a small control plane on an embedded store, with nothing to configure.

Certificates, the admin's credential, a signing key and a kubeconfig are made once, in the data directory.
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
        "data-dir", "string", "", "Where everything is kept (default: kubist in the user's data directory)."
    ),
    flags.Flag("in-memory", "bool", "false", "Keep nothing: a new, empty server every time."),
    flags.Flag("bind-address", "ip", "127.0.0.1", "The address to listen on."),
    flags.Flag("secure-port", "int", "6443", "The port to listen on; 0 takes any free one."),
    flags.Flag("kubeconfig", "string", "", "Where to write the kubeconfig (default: in the data directory)."),
    flags.Flag(
        "kubeconfig-merge", "bool", "false", "Also add a context `kubist` to the user's own kubeconfig."
    ),
    flags.Flag("service-cluster-ip-range", "string", "10.96.0.0/16", "Addresses of services."),
    flags.Flag("service-node-port-range", "portRange", "30000-32767", "Node ports of services."),
    flags.Flag("enable-admission-plugins", "strings", "", "Admission plugins to switch on."),
    flags.Flag("disable-admission-plugins", "strings", "", "Admission plugins to switch off."),
    flags.Flag("controllers", "strings", "*", "The control loops to run; `*` for all, `-name` without one."),
    flags.Flag("workloads", "bool", "false", "Simulate a node and pods that run, and what manages pods."),
    flags.Flag("workload-delay", "duration", "0s", "How long a simulated pod takes to get ready."),
    flags.Flag(
        "etcd-servers", "strings", "", "Keep objects in this etcd instead, which several servers may share."
    ),
    flags.Flag("etcd-cafile", "string", "", "The authority of the etcd servers' certificates."),
    flags.Flag("etcd-certfile", "string", "", "The certificate by which etcd knows this server."),
    flags.Flag("etcd-keyfile", "string", "", "Its key."),
    flags.Flag(
        "encryption-provider-config",
        "string",
        "",
        "File that says which resources are kept encrypted, and how.",
    ),
    flags.Flag(
        "encryption-provider-config-automatic-reload", "bool", "false", "Take up changes of that file."
    ),
    flags.Flag("event-ttl", "duration", "1h0m0s", "How long events are kept."),
    flags.WORKERS,
    flags.Flag("v", "Level", "0", "How much to log; from 3 on every request."),
    flags.Flag("log-format", "string", "text", "How to log: text or json."),
    flags.Flag("logging-format", "string", "text", "The same, by kube-apiserver's name."),
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
