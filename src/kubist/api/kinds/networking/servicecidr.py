"""ServiceCIDR: ranges of cluster IPs, at most one per IP family. An update may only add the second one."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, ClassVar

from kubist.api.kinds.shared.ip import parse_cidr, validate_canonical_cidr
from kubist.api.kinds.shared.update import StatusOnly
from kubist.api.resources.strategy import Errors, Strategy, Subresource
from kubist.model.meta.fields import invalid, required
from kubist.model.meta.object import Object

if TYPE_CHECKING:
    from kubist.api.resources.context import Context

_PATH = "spec.cidrs"
_IMMUTABLE = "field is immutable"


class ServiceCIDRStrategy(Strategy):
    reset_fields = ("status",)
    first_status: ClassVar = {}
    subresources: Mapping[str, Subresource] = {"status": StatusOnly()}

    def validate(self, ctx: Context, new: Object, old: Object | None) -> Errors:
        cidrs = new["spec"].get("cidrs") or []
        if old is None:
            return _validate_cidrs(cidrs)
        before = old["spec"].get("cidrs") or []
        errors: Errors = []
        if len(cidrs) == len(before):
            pairs = enumerate(zip(cidrs, before, strict=True))
            errors += [invalid(f"{_PATH}[{i}]", cidr, _IMMUTABLE) for i, (cidr, was) in pairs if cidr != was]
        elif len(before) == 1 and len(cidrs) == 2:
            if cidrs[0] != before[0]:
                errors.append(invalid(f"{_PATH}[0]", cidrs[0], _IMMUTABLE))
            errors += _validate_cidrs(cidrs)
        else:
            errors.append(invalid(_PATH, new["spec"].get("cidrs"), _IMMUTABLE))
        return errors


def _validate_cidrs(cidrs: list[str]) -> Errors:
    if not cidrs:
        return [required(_PATH, "at least one CIDR required")]
    if len(cidrs) > 2:
        return [invalid(_PATH, {"CIDRs": cidrs}, "may only hold up to 2 values")]
    errors: Errors = []
    for i, cidr in enumerate(cidrs):
        errors += validate_canonical_cidr(cidr, f"{_PATH}[{i}]")
    versions = [network.version for cidr in cidrs if (network := parse_cidr(cidr)) is not None]
    if len(versions) == 2 and versions[0] == versions[1]:
        detail = "may specify no more than one IP for each IP family, i.e 192.168.0.0/24 and 2001:db8::/64"
        errors.append(invalid(_PATH, cidrs, detail))
    return errors


strategy = ServiceCIDRStrategy()
