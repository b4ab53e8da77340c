"""CertificateSubjectRestriction: rejects client certificates for the group system:masters."""

from __future__ import annotations

from kubist.api.admission.plugin import CREATE, Plugin, forbidden
from kubist.api.admission.plugins.certificateapproval import REQUESTS
from kubist.api.resources.context import Context
from kubist.model.meta.object import Object

SIGNER = "kubernetes.io/kube-apiserver-client"


class CertificateSubjectRestriction(Plugin):
    resources = (REQUESTS,)
    operations = (CREATE,)

    def validate(self, ctx: Context, new: Object | None, old: Object | None) -> None:
        assert new is not None
        if new["spec"].get("signerName") != SIGNER:
            return
        # Saves start-up time: loaded with the first CertificateSigningRequest.
        from cryptography import x509

        # Saves start-up time: it also loads `cryptography`.
        from kubist.api.kinds.certificates.pem import read_request

        try:
            request = read_request(new["spec"].get("request", ""))
        except ValueError as error:
            raise forbidden(ctx, new, f"failed to parse CSR: {error}") from None
        groups = request.subject.get_attributes_for_oid(x509.NameOID.ORGANIZATION_NAME)
        if any(group.value == "system:masters" for group in groups):
            raise forbidden(ctx, new, f"use of {SIGNER} signer with system:masters group is not allowed")
