"""Controllers for CertificateSigningRequests: sign approved requests, delete old ones."""

from __future__ import annotations

import asyncio
import base64
import datetime
from collections.abc import Sequence
from pathlib import Path
from typing import NamedTuple

from cryptography import x509
from cryptography.hazmat.primitives import serialization
from cryptography.hazmat.primitives.asymmetric.types import CertificateIssuerPrivateKeyTypes
from cryptography.x509.oid import NameOID

from kubist.api.kinds.certificates.pem import read_request
from kubist.base import clock
from kubist.base.http.tls.certificates import signature_hash
from kubist.cluster.control.loop import Loop
from kubist.model.meta import times
from kubist.model.meta.object import Object
from kubist.model.meta.status import APIError
from kubist.model.meta.times import parse_time
from kubist.storage.cache.cache import Change

GROUP = "certificates.k8s.io"


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

        def edit(current: Object) -> Object:
            current["status"]["certificate"] = base64.b64encode(certificate).decode()
            return current

        await self.client.update(
            "certificatesigningrequests", key, "", edit, group=GROUP, subresource="status"
        )

    async def _fail(self, key: str, why: str) -> None:
        now = times.now()
        condition = {
            "type": "Failed",
            "status": "True",
            "reason": "SignerValidationFailure",
            "message": why,
            "lastUpdateTime": now,
            "lastTransitionTime": now,
        }

        def edit(current: Object) -> Object:
            current["status"].setdefault("conditions", []).append(condition)
            return current

        await self.client.update(
            "certificatesigningrequests", key, "", edit, group=GROUP, subresource="status"
        )

    def _sign(self, spec: Object, signer: Signer) -> bytes:
        request = read_request(spec["request"])
        usages = spec.get("usages") or ()
        check(request, usages, signer)
        authority = x509.load_pem_x509_certificate(Path(self.config.cluster_signing_cert_file).read_bytes())
        key = serialization.load_pem_private_key(
            Path(self.config.cluster_signing_key_file).read_bytes(), None
        )
        signed = issue(request, usages, spec.get("expirationSeconds"), authority, key)  # type: ignore[arg-type]
        return signed.public_bytes(serialization.Encoding.PEM)


class CertificateCleaner(Loop):
    """Deletes requests one hour after their last decision (Approved, Denied, Failed), or 24 hours after
    creation without one."""

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
        left = parse_time(since) + seconds - clock.now()
        if left > 0:
            self.queue.add_after(key, left)
            return
        try:
            await self.client.delete("certificatesigningrequests", key, group=GROUP)
        except APIError as error:
            if error.code != 404:
                raise


# Rules of the built-in signers, as in kube-controller-manager. The key usage extension is present only if a key usage
# was requested


YEAR = datetime.timedelta(days=365)
_MINIMUM_LIFETIME = datetime.timedelta(minutes=10)
_SHORT_LIFETIME = datetime.timedelta(hours=8)
"""A shorter lifetime is kept in full: the end of the certificate is not backdated."""
_BACKDATED = datetime.timedelta(minutes=5)

_NODE_PREFIX = "system:node:"
_NODE_GROUP = "system:nodes"

_OPTIONAL = frozenset(("digital signature", "key encipherment"))


class Signer(NamedTuple):
    """Rules of a signer. `usage` is the required extended key usage. `node`: only kubelet certificates are signed."""

    usage: str
    node: bool = False


SIGNERS = {
    "kubernetes.io/kube-apiserver-client": Signer("client auth"),
    "kubernetes.io/kube-apiserver-client-kubelet": Signer("client auth", node=True),
    "kubernetes.io/kubelet-serving": Signer("server auth", node=True),
    "kubernetes.io/legacy-unknown": Signer(""),
}

_LISTS = (
    NameOID.COUNTRY_NAME,
    NameOID.ORGANIZATION_NAME,
    NameOID.ORGANIZATIONAL_UNIT_NAME,
    NameOID.LOCALITY_NAME,
    NameOID.STATE_OR_PROVINCE_NAME,
    NameOID.STREET_ADDRESS,
    NameOID.POSTAL_CODE,
)
_SINGLE = (NameOID.COMMON_NAME, NameOID.SERIAL_NUMBER)
"""Names whose last value counts."""

_KEY_USAGES = {
    "signing": "digital_signature",
    "digital signature": "digital_signature",
    "content commitment": "content_commitment",
    "key encipherment": "key_encipherment",
    "key agreement": "key_agreement",
    "data encipherment": "data_encipherment",
    "cert sign": "key_cert_sign",
    "crl sign": "crl_sign",
    "encipher only": "encipher_only",
    "decipher only": "decipher_only",
}

_EXTENDED_KEY_USAGES = {
    "any": "2.5.29.37.0",
    "server auth": "1.3.6.1.5.5.7.3.1",
    "client auth": "1.3.6.1.5.5.7.3.2",
    "code signing": "1.3.6.1.5.5.7.3.3",
    "email protection": "1.3.6.1.5.5.7.3.4",
    "s/mime": "1.3.6.1.5.5.7.3.4",
    "ipsec end system": "1.3.6.1.5.5.7.3.5",
    "ipsec tunnel": "1.3.6.1.5.5.7.3.6",
    "ipsec user": "1.3.6.1.5.5.7.3.7",
    "timestamping": "1.3.6.1.5.5.7.3.8",
    "ocsp signing": "1.3.6.1.5.5.7.3.9",
    "microsoft sgc": "1.3.6.1.4.1.311.10.3.3",
    "netscape sgc": "2.16.840.1.113730.4.1",
}


def check(request: x509.CertificateSigningRequest, usages: Sequence[str], signer: Signer) -> None:
    """Raises ValueError if the signer does not sign such a request."""
    if signer.node:
        _check_node(request, frozenset(usages), signer.usage)
    elif signer.usage:
        for usage in usages:
            if usage != signer.usage and usage not in _OPTIONAL:
                raise ValueError(f"invalid usage for client certificate: {usage}")
        if signer.usage not in usages:
            raise ValueError(f"missing required usage for client certificate: {signer.usage}")


def _check_node(request: x509.CertificateSigningRequest, usages: frozenset[str], required: str) -> None:
    organizations = [a.value for a in request.subject.get_attributes_for_oid(NameOID.ORGANIZATION_NAME)]
    names = [str(a.value) for a in request.subject.get_attributes_for_oid(NameOID.COMMON_NAME)]
    if organizations != [_NODE_GROUP]:
        raise ValueError(f"subject organization is not {_NODE_GROUP}")
    kinds = {type(name) for name in _alternative_names(request)}
    serving = required == "server auth"
    if serving and not kinds & {x509.DNSName, x509.IPAddress}:
        raise ValueError("DNS or IP subjectAltName is required")
    for label, kind in (
        ("DNS", x509.DNSName),
        ("Email", x509.RFC822Name),
        ("IP", x509.IPAddress),
        ("URI", x509.UniformResourceIdentifier),
    ):
        if kind in kinds and not (serving and label in ("DNS", "IP")):
            raise ValueError(f"{label} subjectAltNames are not allowed")
    if not {required, "digital signature"} <= usages <= {required, *_OPTIONAL}:
        raise ValueError(f"usages did not match [{' '.join(sorted({required, *_OPTIONAL}))}]")
    if not names or not names[-1].startswith(_NODE_PREFIX):
        raise ValueError(f"subject common name does not begin with {_NODE_PREFIX}")


def issue(
    request: x509.CertificateSigningRequest,
    usages: Sequence[str],
    expiration_seconds: int | None,
    authority: x509.Certificate,
    key: CertificateIssuerPrivateKeyTypes,
) -> x509.Certificate:
    """Signs the request. Raises ValueError if its signature is invalid or the CA has expired."""
    if not request.is_signature_valid:
        raise ValueError("unable to verify certificate request signature")
    now = datetime.datetime.fromtimestamp(int(clock.now()), datetime.UTC)
    if now >= authority.not_valid_after_utc:
        raise ValueError(f"the signer has expired: NotAfter={authority.not_valid_after_utc}")
    start, end = validity(now, expiration_seconds)
    subject = known_names(request.subject)
    builder = (
        x509.CertificateBuilder()
        .subject_name(subject)
        .issuer_name(authority.subject)
        .public_key(request.public_key())
        .serial_number(x509.random_serial_number())
        .not_valid_before(start)
        .not_valid_after(min(end, authority.not_valid_after_utc))
    )
    if (key_usage := _key_usage(usages)) is not None:
        builder = builder.add_extension(key_usage, critical=True)
    if extended := _extended(usages):
        builder = builder.add_extension(x509.ExtendedKeyUsage(extended), critical=False)
    builder = builder.add_extension(x509.BasicConstraints(ca=False, path_length=None), critical=True)
    if (identifier := _authority_key_identifier(authority)) is not None:
        builder = builder.add_extension(identifier, critical=False)
    if names := _alternative_names(request):
        builder = builder.add_extension(x509.SubjectAlternativeName(names), critical=not subject)
    return builder.sign(key, signature_hash(key))


def validity(
    now: datetime.datetime, expiration_seconds: int | None
) -> tuple[datetime.datetime, datetime.datetime]:
    """Start and end of a certificate's validity: backdated by five minutes, ten minutes to one year long."""
    lifetime = YEAR
    if expiration_seconds is not None:
        lifetime = min(YEAR, max(_MINIMUM_LIFETIME, datetime.timedelta(seconds=expiration_seconds)))
    end = now + lifetime if lifetime < _SHORT_LIFETIME else now + lifetime - _BACKDATED
    return now - _BACKDATED, end


def known_names(subject: x509.Name) -> x509.Name:
    """Subject of a certificate: the names of a request that Go's `pkix.Name` has fields for, in its order.

    Others are left out. They include the name that is a user's uid, which a requester must not choose.
    """
    parts = []
    for oids, first in ((_LISTS, 0), (_SINGLE, -1)):
        for oid in oids:
            attributes = [name for name in subject.get_attributes_for_oid(oid) if isinstance(name.value, str)]
            if attributes:
                parts.append(x509.RelativeDistinguishedName(dict.fromkeys(attributes[first:])))
    return x509.Name(parts)


def _alternative_names(request: x509.CertificateSigningRequest) -> list[x509.GeneralName]:
    """DNS, email, IP and URI names of a request. Other kinds of names are not copied."""
    try:
        names = list(request.extensions.get_extension_for_class(x509.SubjectAlternativeName).value)
    except x509.ExtensionNotFound:
        return []
    order = (x509.DNSName, x509.RFC822Name, x509.IPAddress, x509.UniformResourceIdentifier)
    return [name for kind in order for name in names if isinstance(name, kind)]


def _key_usage(usages: Sequence[str]) -> x509.KeyUsage | None:
    """Key usage extension; None if no key usage is requested, because an empty one makes a certificate unusable."""
    requested = {_KEY_USAGES[usage] for usage in usages if usage in _KEY_USAGES}
    if "key_agreement" not in requested:
        # X.509 gives these two a meaning only together with key agreement.
        requested -= {"encipher_only", "decipher_only"}
    if not requested:
        return None
    return x509.KeyUsage(**{name: name in requested for name in set(_KEY_USAGES.values())})


def _extended(usages: Sequence[str]) -> list[x509.ObjectIdentifier]:
    oids = dict.fromkeys(oid for usage, oid in _EXTENDED_KEY_USAGES.items() if usage in usages)
    return [x509.ObjectIdentifier(oid) for oid in oids]


def _authority_key_identifier(authority: x509.Certificate) -> x509.AuthorityKeyIdentifier | None:
    try:
        identifier = authority.extensions.get_extension_for_class(x509.SubjectKeyIdentifier).value
    except x509.ExtensionNotFound:
        return None
    return x509.AuthorityKeyIdentifier(identifier.digest, None, None)
