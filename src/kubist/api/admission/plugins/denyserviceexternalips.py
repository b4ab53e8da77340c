"""DenyServiceExternalIPs: rejects external IPs that a service did not have before."""

from __future__ import annotations

from kubist.api.admission.plugin import CREATE, UPDATE, Plugin, forbidden
from kubist.api.resources.context import Context
from kubist.model.meta.object import Object


class DenyServiceExternalIPs(Plugin):
    resources = ("services",)
    operations = (CREATE, UPDATE)

    def validate(self, ctx: Context, new: Object | None, old: Object | None) -> None:
        if set(_addresses(new)) - set(_addresses(old)):
            raise forbidden(ctx, new, "Use of external IPs is denied by admission control")


def _addresses(service: Object | None) -> list[str]:
    return ((service or {}).get("spec") or {}).get("externalIPs") or []
