"""CertificateApproval: approving or denying a CertificateSigningRequest requires `approve` on its signer."""

from __future__ import annotations

from kubist.api.admission.plugin import UPDATE, Plugin, forbidden
from kubist.api.resources.context import Context
from kubist.model.meta.object import Object

REQUESTS = "certificatesigningrequests.certificates.k8s.io"


class CertificateApproval(Plugin):
    resources = (f"{REQUESTS}/approval",)
    operations = (UPDATE,)

    async def validate(self, ctx: Context, new: Object | None, old: Object | None) -> None:
        assert old is not None
        signer = old["spec"].get("signerName", "")
        if not await may(ctx, "approve", signer):
            raise forbidden(ctx, new, f'user not permitted to approve requests with signerName "{signer}"')


async def may(ctx: Context, verb: str, signer: str) -> bool:
    """Whether the user has the verb on a signer, by the signer's name or on its domain (`domain/*`)."""
    for name in (signer, f"{signer.partition('/')[0]}/*"):
        allowed, _ = await ctx.authorize(verb, group="certificates.k8s.io", resource="signers", name=name)
        if allowed:
            return True
    return False
