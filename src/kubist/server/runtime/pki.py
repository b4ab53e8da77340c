"""Certificates and keys of a server, created once in its data directory."""

from __future__ import annotations

import dataclasses
import datetime
import shlex
import socket
from pathlib import Path
from typing import Any

from cryptography import x509
from cryptography.hazmat.primitives.asymmetric import ec

from kubist.api.config import Config
from kubist.base import files
from kubist.base.http.tls import certificates
from kubist.errors import CertificateError
from kubist.server.runtime import kubeconfig
from kubist.server.serving_tls import serving_names

AUTHORITY = "kubist-ca"
ADMINISTRATOR = ("kubernetes-admin", ["system:masters"])


def prepare(config: Config, directory: Path, *, in_memory: bool) -> Config:
    """Creates missing certificates and keys. Returns the configuration that uses them."""
    pki = directory / "pki"
    files.make_directory(pki)
    signing_key = pki / "service-account.key"
    with files.locked(pki):  # without the lock, two starting servers would replace each other's keys
        _check_readable(pki)
        for path in pki.glob("*.key"):
            files.private(path)  # A copy of a data directory may have other modes.
        made = _make_certificates(config, pki)
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


def _make_certificates(config: Config, pki: Path) -> bool:
    """Makes the authority, the serving certificate and the administrator's certificate, unless the existing ones are
    usable. Returns whether it made any. Raises CertificateError before it would replace a file of the user."""
    authority = _authority(pki)
    by_name: dict[str, list[str]] = {"apiserver": _names(config), "admin": []}
    problems = {
        name: _problem(pki / f"{name}.crt", pki / f"{name}.key", names) for name, names in by_name.items()
    }
    if authority is None:
        problems = {name: problem or "its authority is lost" for name, problem in problems.items()}
    for name, problem in problems.items():
        certificate = pki / f"{name}.crt"
        if problem and certificate.exists() and not certificates.is_own(_read_certificate(certificate)):
            raise CertificateError(
                f"{certificate} and {pki / name}.key cannot be used: {problem}. Kubist did not make them: replace both "
                "files, or delete both so that Kubist makes its own"
            )
    if authority is None:
        authority = certificates.new_authority(AUTHORITY)
        authority.save(pki / "ca.crt", pki / "ca.key")
    for name in filter(problems.get, problems):
        pair = (
            authority.issue_server(by_name[name]) if by_name[name] else authority.issue_client(*ADMINISTRATOR)
        )
        certificates.save(pair, pki / f"{name}.crt", pki / f"{name}.key")
    return any(problems.values())


def _authority(pki: Path) -> certificates.Authority | None:
    """Authority in the files. None if one of them is missing. Raises CertificateError if the key of the user's own
    authority is missing."""
    certificate, key = pki / "ca.crt", pki / "ca.key"
    cert = _read_certificate(certificate) if certificate.exists() else None
    if cert is not None and key.exists():
        return certificates.load_authority(certificate, key)
    if cert is not None and cert.subject != certificates.subject(AUTHORITY):
        raise CertificateError(
            f"{certificate} cannot be used: its key {key} is missing. Kubist did not make it: add the key, or delete "
            "the certificate so that Kubist makes its own"
        )
    return None


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


def _problem(certificate: Path, key: Path, names: list[str]) -> str:
    """Reason why a certificate must be replaced; empty if there is none. Kubist renews its own early."""
    if not certificate.exists() or not key.exists():
        return f"the {'key' if certificate.exists() else 'certificate'} is missing"
    cert = _read_certificate(certificate)
    early = RENEWAL if certificates.is_own(cert) else datetime.timedelta()
    if cert.not_valid_after_utc <= datetime.datetime.now(datetime.UTC) + early:
        return "the certificate has expired"
    missing = certificates.missing_names(cert, names)
    return (
        f"the certificate lacks the name{'s' if missing[1:] else ''} {', '.join(missing)}" if missing else ""
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


# Front proxy: a CA and a client certificate for requests to extension API servers, with the file names of kubeadm

_PROXY_AUTHORITY, _PROXY_CLIENT = "front-proxy-ca", "front-proxy-client"
RENEWAL = datetime.timedelta(days=30)
"""Certificates are replaced at a start in the last days before they expire."""


def front_proxy(config: Config, pki: Path) -> dict[str, Any]:
    """Settings that use the files of `make_front_proxy`. Empty if the configuration has a front proxy already."""
    made = {
        "requestheader_client_ca_file": str(pki / f"{_PROXY_AUTHORITY}.crt"),
        "requestheader_allowed_names": (_PROXY_CLIENT,),
        "requestheader_username_headers": ("X-Remote-User",),
        "requestheader_group_headers": ("X-Remote-Group",),
        "requestheader_extra_headers_prefix": ("X-Remote-Extra-",),
        "proxy_client_cert_file": str(pki / f"{_PROXY_CLIENT}.crt"),
        "proxy_client_key_file": str(pki / f"{_PROXY_CLIENT}.key"),
    }
    return {} if any(getattr(config, name) for name in made) else made


def make_front_proxy(pki: Path) -> bool:
    """Creates missing files, and replaces certificates that expire soon. Returns whether it wrote any. Raises
    ValueError with the path for a file that is not a certificate."""
    ca, ca_key, client, client_key = (
        pki / f"{name}.{kind}" for name in (_PROXY_AUTHORITY, _PROXY_CLIENT) for kind in ("crt", "key")
    )
    is_kept = _is_current(ca, ca_key)
    if is_kept and _is_current(client, client_key):
        return False
    if is_kept:
        authority = certificates.load_authority(ca, ca_key)
    else:
        authority = certificates.new_authority(_PROXY_AUTHORITY)
        authority.save(ca, ca_key)
    certificates.save(authority.issue_client(_PROXY_CLIENT), client, client_key)
    return True


def _is_current(certificate: Path, key: Path) -> bool:
    if not (certificate.exists() and key.exists()):
        return False
    try:
        cert = x509.load_pem_x509_certificate(certificate.read_bytes())
    except ValueError:
        raise ValueError(certificate) from None
    return cert.not_valid_after_utc > datetime.datetime.now(datetime.UTC) + RENEWAL
