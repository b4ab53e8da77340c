"""ClusterTrustBundleAttest: writing a signer's trust bundle requires `attest` on the signer."""

from __future__ import annotations

from kubist.api.admission.plugin import CREATE, UPDATE, Plugin, forbidden
from kubist.api.admission.plugins.certificateapproval import may
from kubist.api.resources.context import Context
from kubist.model.meta.object import Object


class ClusterTrustBundleAttest(Plugin):
    resources = ("clustertrustbundles.certificates.k8s.io",)
    operations = (CREATE, UPDATE)

    async def validate(self, ctx: Context, new: Object | None, old: Object | None) -> None:
        assert new is not None
        signer = new["spec"].get("signerName", "")
        if not signer or (old is not None and new["spec"] == old["spec"]):
            return
        if not await may(ctx, "attest", signer):
            raise forbidden(ctx, new, f'user not permitted to attest for signerName "{signer}"')
