"""IPAddress: records the holder of a cluster IP. The name is the address in canonical form."""

from __future__ import annotations

from typing import TYPE_CHECKING

from kubist.api.kinds.shared.ip import validate_canonical_ip
from kubist.api.kinds.shared.rules import field, not_null, optional, path_segment, required, struct, subdomain
from kubist.api.kinds.shared.update import immutable
from kubist.api.resources.strategy import Errors, Strategy
from kubist.model.meta import objectmeta
from kubist.model.meta.object import Object

if TYPE_CHECKING:
    from kubist.api.resources.context import Context

_PARENT = struct(
    field("group", optional, subdomain),
    field("resource", required, path_segment),
    field("name", required, path_segment),
    field("namespace", optional, path_segment),
)


class IPAddressStrategy(Strategy):
    metadata_rules = ("object",)

    def generate_name(self, base: str) -> str:
        """Returns the base unchanged, because a random suffix would not be an address."""
        return base

    def validate_name(self, name: str, prefix: bool) -> list[str]:
        return [error.body.split(": ", 2)[-1] for error in validate_canonical_ip(name, "")]

    def validate(self, ctx: Context, new: Object, old: Object | None) -> Errors:
        errors = field("parentRef", not_null, _PARENT)(new["spec"], "spec")
        if old is not None:
            parent, before = new["spec"].get("parentRef"), old["spec"].get("parentRef")
            errors += objectmeta.validate_update(new["metadata"], old["metadata"])
            errors += immutable(parent, before, "spec.parentRef", "*networking.ParentReference")
        return errors


strategy = IPAddressStrategy()
