"""Controllers for CertificateSigningRequests: sign approved requests, delete old ones.

`kubist.cluster.control.signing` holds the rules of the built-in signers.
"""

from __future__ import annotations

import asyncio
import base64
from pathlib import Path

from cryptography import x509
from cryptography.hazmat.primitives import serialization

from kubist.api.kinds.certificates.pem import read_request
from kubist.base import clock
from kubist.cluster.control.loop import Loop
from kubist.cluster.control.signing import SIGNERS, Signer, check, issue
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

        def edit(held: Object) -> Object:
            held["status"]["certificate"] = base64.b64encode(certificate).decode()
            return held

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

        def edit(held: Object) -> Object:
            held["status"].setdefault("conditions", []).append(condition)
            return held

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
