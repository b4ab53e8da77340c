"""`kubist serve`: a small control plane on an embedded store, with nothing to configure.

Certificates, the admin's credential, a signing key and a kubeconfig are made once, in the data directory.
"""

from __future__ import annotations

import datetime
import shlex
import socket
import tempfile
from pathlib import Path

from kubist import files, logs
from kubist.cli import flags, kubeconfig
from kubist.config import Config
from kubist.runtime.run import explain, fail, run
from kubist.server import Server, serving_names

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
NEEDED = ("ca.crt", "ca.key", "apiserver.crt", "apiserver.key", "admin.crt", "admin.key")
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
    directory = Path(config.data_dir) if config.data_dir else kubeconfig.default_data_dir()
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
        from kubist.workers.supervisor import supervise

        return supervise(config, announce)
    return run(lambda: Server(config), announce)


def _reachable(address: str) -> str:
    """An address that a client on this machine can use."""
    if address in ("0.0.0.0", "::", ""):
        return "127.0.0.1"
    return f"[{address}]" if ":" in address else address


def prepare(config: Config, directory: Path, *, in_memory: bool) -> Config:
    """Make what the server needs and is not there yet; the configuration that uses it."""
    import dataclasses

    pki = directory / "pki"
    files.make_directory(pki)
    signing_key = pki / "service-account.key"
    with files.locked(pki):  # or two servers that start at once would replace each other's keys
        made = False
        _check_readable(pki)
        if not all((pki / name).exists() for name in NEEDED) or not _current(config, pki):
            _make_certificates(config, pki)
            made = True
        if not signing_key.exists():
            _make_signing_key(signing_key)
            made = True
        if made and not in_memory:
            for path in (*pki.iterdir(), pki):
                files.sync(path)
    return dataclasses.replace(
        config,
        data_dir="" if in_memory else str(directory),
        cert_dir=str(pki),
        tls_cert_file=str(pki / "apiserver.crt"),
        tls_private_key_file=str(pki / "apiserver.key"),
        client_ca_file=str(pki / "ca.crt"),
        root_ca_file=str(pki / "ca.crt"),
        cluster_signing_cert_file=str(pki / "ca.crt"),
        cluster_signing_key_file=str(pki / "ca.key"),
        service_account_signing_key_file=str(signing_key),
        service_account_key_file=(str(signing_key),),
    )


def _check_readable(pki: Path) -> None:
    """ValueError for a file that holds no certificate or key."""
    for path in sorted(pki.glob("*.crt")) + sorted(pki.glob("*.key")):
        if "-----BEGIN " not in path.read_text("latin-1"):
            raise ValueError(
                f"{path} is damaged: it holds no PEM block. `kubist restore --data-dir "
                f"{shlex.quote(str(pki.parent))} --file BACKUP` puts a backup in the place of store and keys"
            )


def _make_certificates(config: Config, pki: Path) -> None:
    from kubist.http import certificates

    if (pki / "ca.crt").exists() and (pki / "ca.key").exists():
        authority = certificates.load_authority(pki / "ca.crt", pki / "ca.key")
    else:
        authority = certificates.new_authority("kubist-ca")
        authority.save(pki / "ca.crt", pki / "ca.key")
    certificates.save(authority.issue_server(_names(config)), pki / "apiserver.crt", pki / "apiserver.key")
    admin = authority.issue_client("kubernetes-admin", ["system:masters"])
    certificates.save(admin, pki / "admin.crt", pki / "admin.key")


def _names(config: Config) -> list[str]:
    names = [*serving_names(config), socket.getfqdn()]
    if config.bind_address not in ("0.0.0.0", "::"):
        names.append(config.bind_address)
    return list(dict.fromkeys(names))


def _current(config: Config, pki: Path) -> bool:
    """Whether the certificates last for some time yet, and the serving one is for all names it is needed for."""
    from cryptography import x509

    soon = datetime.datetime.now(datetime.UTC) + datetime.timedelta(days=30)
    serving, admin = (
        x509.load_pem_x509_certificate((pki / name).read_bytes()) for name in ("apiserver.crt", "admin.crt")
    )
    found = serving.extensions.get_extension_for_class(x509.SubjectAlternativeName).value
    names = {
        *found.get_values_for_type(x509.DNSName),
        *map(str, found.get_values_for_type(x509.IPAddress)),
    }
    return (
        names.issuperset(_names(config))
        and min(serving.not_valid_after_utc, admin.not_valid_after_utc) > soon
    )


def _make_signing_key(path: Path) -> None:
    from cryptography.hazmat.primitives import serialization
    from cryptography.hazmat.primitives.asymmetric import ec

    key = ec.generate_private_key(ec.SECP256R1())
    pem = key.private_bytes(
        serialization.Encoding.PEM, serialization.PrivateFormat.PKCS8, serialization.NoEncryption()
    )
    files.write(path, pem)


def credential(directory: Path, url: str) -> dict[str, object]:
    pki = directory / "pki"
    parts = ((pki / name).read_bytes() for name in ("ca.crt", "admin.crt", "admin.key"))
    return kubeconfig.document(url, *parts)
