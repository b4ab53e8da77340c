"""IPAddress: records the holder of a cluster IP. The name is the address in canonical form."""

from __future__ import annotations

from typing import TYPE_CHECKING

from kubist.api.kinds.shared.ip import validate_canonical_ip
from kubist.api.kinds.shared.update import immutable
from kubist.api.resources.strategy import Errors, Strategy
from kubist.model.meta import names, objectmeta
from kubist.model.meta.fields import invalid, required
from kubist.model.meta.object import Object

if TYPE_CHECKING:
    from kubist.api.resources.context import Context


class IPAddressStrategy(Strategy):
    metadata_rules = ("object",)

    def generate_name(self, base: str) -> str:
        """Returns the base unchanged, because a random suffix would not be an address."""
        return base

    def validate_name(self, name: str, prefix: bool) -> list[str]:
        return [error.body.split(": ", 2)[-1] for error in validate_canonical_ip(name, "")]

    def validate(self, ctx: Context, new: Object, old: Object | None) -> Errors:
        parent = new["spec"].get("parentRef")
        errors = _validate_parent(parent, "spec.parentRef")
        if old is not None:
            before = old["spec"].get("parentRef")
            errors += objectmeta.validate_update(new["metadata"], old["metadata"])
            errors += immutable(parent, before, "spec.parentRef", "*networking.ParentReference")
        return errors


def _validate_parent(parent: Object | None, path: str) -> Errors:
    if parent is None:
        return [required(path)]
    errors: Errors = []
    if group := parent.get("group"):
        errors += [invalid(f"{path}.group", group, message) for message in names.dns_subdomain(group)]
    for field in ("resource", "name", "namespace"):
        value = parent.get(field, "")
        if value:
            messages = names.path_segment(value)
            errors += [invalid(f"{path}.{field}", value, message) for message in messages]
        elif field != "namespace":
            errors.append(required(f"{path}.{field}"))
    return errors


strategy = IPAddressStrategy()
