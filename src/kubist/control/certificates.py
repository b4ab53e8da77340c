"""Certificate requests to the built-in signers: signed by the cluster's authority once somebody approved them.

What each signer signs is in `SIGNERS`. Old requests are removed.
"""

from __future__ import annotations

import asyncio
import base64
import datetime
import time
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple

from kubist.api import timestamp
from kubist.control.loop import Loop
from kubist.meta.status import APIError
from kubist.meta.times import parse_time
from kubist.storage.cache import Change

if TYPE_CHECKING:
    from cryptography import x509

Object = dict[str, Any]
GROUP = "certificates.k8s.io"
YEAR = datetime.timedelta(days=365)
SHORTEST = 600
BACKDATED = datetime.timedelta(minutes=5)


class Signer(NamedTuple):
    """What a signer takes: usages that a request must and may name, and whose requests they must be."""

    required: frozenset[str]
    allowed: frozenset[str]
    organization: str = ""
    common_name: str = ""


_BASE = frozenset(("digital signature", "key encipherment"))
SIGNERS = {
    "kubernetes.io/kube-apiserver-client": Signer(frozenset(("client auth",)), _BASE | {"client auth"}),
    "kubernetes.io/kube-apiserver-client-kubelet": Signer(
        frozenset(("client auth", "digital signature")),
        _BASE | {"client auth"},
        "system:nodes",
        "system:node:",
    ),
    "kubernetes.io/kubelet-serving": Signer(
        frozenset(("server auth", "digital signature")),
        _BASE | {"server auth"},
        "system:nodes",
        "system:node:",
    ),
    "kubernetes.io/legacy-unknown": Signer(frozenset(), frozenset()),
}


class CertificateSigning(Loop):
    name = "certificatesigningrequest-signing"

    def follow(self) -> None:
        if self.config.cluster_signing_key_file:
            self.watch("certificatesigningrequests", self._request_changed, group=GROUP)

    def _request_changed(self, change: Change) -> None:
        if change.new is not None and b'"Approved"' in change.new.tail:
            self.queue.add(change.new.name)

    async def reconcile(self, key: str) -> None:
        request = self.client.get("certificatesigningrequests", key, group=GROUP)
        if request is None or request["status"].get("certificate"):
            return
        signer = SIGNERS.get(request["spec"].get("signerName", ""))
        types = {
            condition["type"]
            for condition in request["status"].get("conditions") or ()
            if condition.get("status") == "True"
        }
        if signer is None or "Approved" not in types or types & {"Denied", "Failed"}:
            return
        try:
            certificate = await asyncio.to_thread(self._sign, request["spec"], signer)
        except ValueError as error:
            await self._fail(key, str(error))
            return

        def edit(held: Object) -> Object:
            held["status"]["certificate"] = base64.b64encode(certificate).decode()
            return held

        await self.client.update(
            "certificatesigningrequests", key, "", edit, group=GROUP, subresource="status"
        )

    async def _fail(self, key: str, why: str) -> None:
        now = timestamp()
        condition = {
            "type": "Failed",
            "status": "True",
            "reason": "SignerValidationFailure",
            "message": why,
            "lastUpdateTime": now,
            "lastTransitionTime": now,
        }

        def edit(held: Object) -> Object:
            held["status"].setdefault("conditions", []).append(condition)
            return held

        await self.client.update(
            "certificatesigningrequests", key, "", edit, group=GROUP, subresource="status"
        )

    def _sign(self, spec: Object, signer: Signer) -> bytes:
        from cryptography import x509

        asked = x509.load_pem_x509_csr(base64.b64decode(spec["request"]))
        check(asked, frozenset(spec.get("usages") or ()), signer)
        return self._issue(asked, spec)

    def _issue(self, asked: x509.CertificateSigningRequest, spec: Object) -> bytes:
        from cryptography import x509
        from cryptography.hazmat.primitives import hashes, serialization

        authority = x509.load_pem_x509_certificate(Path(self.config.cluster_signing_cert_file).read_bytes())
        key = serialization.load_pem_private_key(
            Path(self.config.cluster_signing_key_file).read_bytes(), None
        )
        now = datetime.datetime.now(datetime.UTC)
        lifetime = YEAR
        if spec.get("expirationSeconds") is not None:
            lifetime = min(YEAR, datetime.timedelta(seconds=max(spec["expirationSeconds"], SHORTEST)))
        end = min(now + lifetime, authority.not_valid_after_utc)
        usages = frozenset(spec.get("usages") or ())
        builder = (
            x509.CertificateBuilder()
            .subject_name(asked.subject)
            .issuer_name(authority.subject)
            .public_key(asked.public_key())
            .serial_number(x509.random_serial_number())
            .not_valid_before(now - BACKDATED)
            .not_valid_after(end)
            .add_extension(x509.BasicConstraints(ca=False, path_length=None), True)
            .add_extension(_key_usage(usages), True)
        )
        extended = _extended(usages)
        if extended:
            builder = builder.add_extension(x509.ExtendedKeyUsage(extended), False)
        for extension in asked.extensions:
            if isinstance(extension.value, x509.SubjectAlternativeName):
                builder = builder.add_extension(extension.value, extension.critical)
        signed = builder.sign(key, hashes.SHA256())  # type: ignore[arg-type]
        return signed.public_bytes(serialization.Encoding.PEM)


def check(asked: x509.CertificateSigningRequest, usages: frozenset[str], signer: Signer) -> None:
    """Raise ValueError with what a signer objects to."""
    from cryptography import x509
    from cryptography.x509.oid import NameOID

    if signer.allowed and not (signer.required <= usages <= signer.allowed):
        wanted, allowed = sorted(signer.required), sorted(signer.allowed)
        raise ValueError(f"usages must include {wanted} and may only be of {allowed}")
    if not signer.organization:
        return
    organizations = [str(a.value) for a in asked.subject.get_attributes_for_oid(NameOID.ORGANIZATION_NAME)]
    names = [str(a.value) for a in asked.subject.get_attributes_for_oid(NameOID.COMMON_NAME)]
    if organizations != [signer.organization]:
        raise ValueError(f"subject organization is not {signer.organization}")
    if not names or not names[0].startswith(signer.common_name):
        raise ValueError(f"subject common name does not begin with {signer.common_name}")
    try:
        alternatives = asked.extensions.get_extension_for_class(x509.SubjectAlternativeName).value
    except x509.ExtensionNotFound:
        alternatives = None
    if "client auth" in usages and alternatives is not None:
        raise ValueError("subject alternative names are not allowed")
    if "server auth" in usages and alternatives is None:
        raise ValueError("DNS or IP subjectAltName is required")


def _key_usage(usages: frozenset[str]) -> x509.KeyUsage:
    from cryptography import x509

    agreement = "key agreement" in usages
    return x509.KeyUsage(
        digital_signature="digital signature" in usages or "signing" in usages,
        content_commitment="content commitment" in usages,
        key_encipherment="key encipherment" in usages,
        data_encipherment="data encipherment" in usages,
        key_agreement=agreement,
        key_cert_sign=False,
        crl_sign=False,
        encipher_only=agreement and "encipher only" in usages,
        decipher_only=agreement and "decipher only" in usages,
    )


def _extended(usages: frozenset[str]) -> list[x509.ObjectIdentifier]:
    from cryptography.x509.oid import ExtendedKeyUsageOID as Oid

    known = {
        "client auth": Oid.CLIENT_AUTH,
        "server auth": Oid.SERVER_AUTH,
        "code signing": Oid.CODE_SIGNING,
        "email protection": Oid.EMAIL_PROTECTION,
        "timestamping": Oid.TIME_STAMPING,
        "ocsp signing": Oid.OCSP_SIGNING,
        "any": Oid.ANY_EXTENDED_KEY_USAGE,
    }
    return [oid for usage, oid in known.items() if usage in usages]


class CertificateCleaner(Loop):
    """Requests are removed an hour after they were decided, a day after nobody decided."""

    name = "certificatesigningrequest-cleaner"

    def follow(self) -> None:
        self.watch("certificatesigningrequests", self._request_changed, group=GROUP)

    def _request_changed(self, change: Change) -> None:
        if change.new is not None:
            self.queue.add(change.new.name)

    async def reconcile(self, key: str) -> None:
        request = self.client.get("certificatesigningrequests", key, group=GROUP)
        if request is None:
            return
        since, seconds = request["metadata"]["creationTimestamp"], 86_400
        for condition in request["status"].get("conditions") or ():
            if condition.get("type") in ("Approved", "Denied", "Failed"):
                since, seconds = condition.get("lastUpdateTime") or since, 3600
        left = parse_time(since) + seconds - time.time()
        if left > 0:
            self.queue.add_after(key, left)
            return
        try:
            await self.client.delete("certificatesigningrequests", key, group=GROUP)
        except APIError as error:
            if error.code != 404:
                raise
