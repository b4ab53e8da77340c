"""Certificates and keys of a server, created once in its data directory."""

from __future__ import annotations

import dataclasses
import datetime
import shlex
import socket
from pathlib import Path

from cryptography import x509
from cryptography.hazmat.primitives.asymmetric import ec

from kubist import files
from kubist.config import Config
from kubist.errors import CertificateError
from kubist.http import certificates
from kubist.runtime import kubeconfig
from kubist.runtime.front_proxy import RENEWAL, front_proxy, make_front_proxy
from kubist.serving_tls import serving_names

NEEDED = ("ca.crt", "ca.key", "apiserver.crt", "apiserver.key", "admin.crt", "admin.key")


def prepare(config: Config, directory: Path, *, in_memory: bool) -> Config:
    """Creates missing certificates and keys. Returns the configuration that uses them."""
    pki = directory / "pki"
    files.make_directory(pki)
    signing_key = pki / "service-account.key"
    with files.locked(pki):  # without the lock, two starting servers would replace each other's keys
        made = False
        _check_readable(pki)
        for path in pki.glob("*.key"):
            files.private(path)  # A copy of a data directory may have other modes.
        if not all((pki / name).exists() for name in NEEDED) or not _current(config, pki):
            _make_certificates(config, pki)
            made = True
        if not signing_key.exists():
            _make_signing_key(signing_key)
            made = True
        proxy = front_proxy(config, pki)
        if proxy:
            made |= _make_front_proxy(pki)
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
        **proxy,
    )


def _check_readable(pki: Path) -> None:
    """Raises CertificateError for a file without a PEM block."""
    for path in sorted(pki.glob("*.crt")) + sorted(pki.glob("*.key")):
        if "-----BEGIN " not in path.read_text("latin-1"):
            raise _damaged(path, "it contains no PEM block")


def _damaged(path: Path, reason: str) -> CertificateError:
    where = shlex.quote(str(path.parent.parent))
    restore = f"`kubist restore --data-dir {where} --file BACKUP` replaces store and keys by a backup"
    return CertificateError(f"{path} is damaged: {reason}. {restore}")


def _make_certificates(config: Config, pki: Path) -> None:
    if (pki / "ca.crt").exists() and (pki / "ca.key").exists():
        authority = certificates.load_authority(pki / "ca.crt", pki / "ca.key")
    else:
        authority = certificates.new_authority("kubist-ca")
        authority.save(pki / "ca.crt", pki / "ca.key")
    certificates.save(authority.issue_server(_names(config)), pki / "apiserver.crt", pki / "apiserver.key")
    admin = authority.issue_client("kubernetes-admin", ["system:masters"])
    certificates.save(admin, pki / "admin.crt", pki / "admin.key")


def _make_front_proxy(pki: Path) -> bool:
    try:
        return make_front_proxy(pki)
    except ValueError as error:
        raise _damaged(Path(str(error)), "its PEM block is not a certificate") from None


def _names(config: Config) -> list[str]:
    names = [*serving_names(config), socket.getfqdn()]
    if config.bind_address not in ("0.0.0.0", "::"):
        names.append(config.bind_address)
    return list(dict.fromkeys(names))


def _current(config: Config, pki: Path) -> bool:
    """Whether the certificates are valid for at least 30 days and the serving certificate has all needed names."""
    soon = datetime.datetime.now(datetime.UTC) + RENEWAL
    _, serving, admin = (_read_certificate(pki / name) for name in ("ca.crt", "apiserver.crt", "admin.crt"))
    found = serving.extensions.get_extension_for_class(x509.SubjectAlternativeName).value
    names = {
        *found.get_values_for_type(x509.DNSName),
        *map(str, found.get_values_for_type(x509.IPAddress)),
    }
    return (
        names.issuperset(_names(config))
        and min(serving.not_valid_after_utc, admin.not_valid_after_utc) > soon
    )


def _read_certificate(path: Path) -> x509.Certificate:
    try:
        return x509.load_pem_x509_certificate(path.read_bytes())
    except ValueError:
        raise _damaged(path, "its PEM block is not a certificate") from None


def _make_signing_key(path: Path) -> None:
    files.write(path, certificates.key_pem(ec.generate_private_key(ec.SECP256R1())))


def credential(directory: Path, url: str) -> dict[str, object]:
    pki = directory / "pki"
    parts = ((pki / name).read_bytes() for name in ("ca.crt", "admin.crt", "admin.key"))
    return kubeconfig.document(url, *parts)
