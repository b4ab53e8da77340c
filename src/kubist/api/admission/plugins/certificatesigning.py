"""CertificateSigning: issuing a certificate requires `sign` on the request's signer."""

from __future__ import annotations

from kubist.api.admission.plugin import UPDATE, Plugin, forbidden
from kubist.api.admission.plugins.certificateapproval import REQUESTS, may
from kubist.api.resources.context import Context
from kubist.api.resources.strategy import at
from kubist.model.meta.object import Object


class CertificateSigning(Plugin):
    resources = (f"{REQUESTS}/status",)
    operations = (UPDATE,)

    async def validate(self, ctx: Context, new: Object | None, old: Object | None) -> None:
        assert new is not None and old is not None
        if all((at(new, path) or None) == (at(old, path) or None) for path in WATCHED):
            return
        signer = old["spec"].get("signerName", "")
        if not await may(ctx, "sign", signer):
            raise forbidden(ctx, new, f'user not permitted to sign requests with signerName "{signer}"')


WATCHED = ("status.certificate", "status.conditions")
