"""ResourceQuota: total of each resource that a namespace may use. Admission counts the usage in status."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import TYPE_CHECKING, Any, ClassVar

from kubist.api.kinds.core.podspec.resources import round_up_to_milli
from kubist.api.kinds.shared.resource_names import (
    is_standard_quota,
    validate_quantity,
    validate_quota_resource_name,
)
from kubist.api.resources.strategy import Errors, Status, Strategy, Subresource
from kubist.model.meta.fields import FieldError, fitting, invalid, required
from kubist.model.meta.object import Object

if TYPE_CHECKING:
    from kubist.api.resources.context import Context

_POD_RESOURCES = frozenset(
    {
        "pods",
        "cpu",
        "memory",
        "limits.cpu",
        "limits.memory",
        "requests.cpu",
        "requests.memory",
    }
)
SCOPES: dict[str, frozenset[str]] = {
    "Terminating": _POD_RESOURCES,
    "NotTerminating": _POD_RESOURCES,
    "BestEffort": frozenset({"pods"}),
    "NotBestEffort": _POD_RESOURCES,
    "PriorityClass": _POD_RESOURCES,
    "CrossNamespacePodAffinity": _POD_RESOURCES,
    "VolumeAttributesClass": frozenset({"persistentvolumeclaims", "requests.storage"}),
}
"""Scope → the resources that a quota with that scope may limit."""

MANY_REQUIREMENTS = 64
"""Number of requirements above which a misapplied scope is reported once, because each error shows all
requirements."""
_EXCLUSIVE = (("BestEffort", "NotBestEffort"), ("Terminating", "NotTerminating"))
_EXISTS_ONLY = (
    "BestEffort",
    "NotBestEffort",
    "Terminating",
    "NotTerminating",
    "CrossNamespacePodAffinity",
)


class ResourceQuotaStatus(Status):
    def validate(self, ctx: Context, new: Object, old: Object) -> Errors:
        return _validate_status(new)


class ResourceQuotaStrategy(Strategy):
    returns_deleted = True
    reset_fields = ("status",)
    first_status: ClassVar = {}
    subresources: Mapping[str, Subresource] = {"status": ResourceQuotaStatus()}

    def default(self, obj: Object) -> None:
        round_up_to_milli(obj["spec"].get("hard"))
        round_up_to_milli(obj["status"].get("hard"))
        round_up_to_milli(obj["status"].get("used"))

    def validate(self, ctx: Context, new: Object, old: Object | None) -> Errors:
        errors = _validate_spec(new["spec"])
        if old is not None:
            scopes = new["spec"].get("scopes")
            if set(scopes or ()) != set(old["spec"].get("scopes") or ()):
                errors.append(invalid("spec.scopes", scopes, "field is immutable"))
        return errors


def _validate_amounts(amounts: dict[str, str] | None, path: str) -> Errors:
    errors: Errors = []
    for name, amount in (amounts or {}).items():
        errors += validate_quota_resource_name(name, f"{path}[{name}]")
        errors += validate_quantity(name, amount, f"{path}[{name}]")
    return errors


def _validate_status(quota: Object) -> Errors:
    errors = _validate_amounts(quota["status"].get("hard"), "status.hard")
    return errors + _validate_amounts(quota["status"].get("used"), "status.used")


def _validate_spec(spec: dict[str, Any]) -> Errors:
    errors = _validate_amounts(spec.get("hard"), "spec.hard")
    scopes = spec.get("scopes") or []
    errors += fitting(_validate_scopes(spec, scopes))
    errors += _validate_pairs(scopes, "spec.scopes", scopes)
    if (selector := spec.get("scopeSelector")) is not None:
        errors += _validate_selector(spec, selector, "spec.scopeSelector.matchExpressions")
    return errors


def _validate_scopes(spec: dict[str, Any], scopes: list[str]) -> Iterator[FieldError]:
    unfit = _unfit_resources(spec)
    for scope in scopes:
        if scope not in SCOPES:
            yield invalid("spec.scopes", scopes, "unsupported scope")
        yield from _validate_scope(unfit, scope, "spec.scopes", scopes)


def _unfit_resources(spec: dict[str, Any]) -> dict[str, int]:
    """Scope → number of the quota's resources that a quota with this scope must not limit."""
    standard = [name for name in spec.get("hard") or () if is_standard_quota(name)]
    return {scope: sum(name not in allowed for name in standard) for scope, allowed in SCOPES.items()}


def _validate_scope(unfit: dict[str, int], scope: str, path: str, value: Any) -> Iterator[FieldError]:
    for _ in range(unfit.get(scope, 0)):
        yield invalid(path, value, "unsupported scope applied to resource")


def _validate_pairs(scopes: list[str], path: str, value: Any) -> Errors:
    return [
        invalid(path, value, "conflicting scopes")
        for one, other in _EXCLUSIVE
        if one in scopes and other in scopes
    ]


def _validate_selector(spec: dict[str, Any], selector: dict[str, Any], path: str) -> Errors:
    errors: Errors = []
    requirements = selector.get("matchExpressions") or ()
    unfit = _unfit_resources(spec)
    misapplied: set[str] = set()
    for requirement in requirements:
        scope, operator = requirement.get("scopeName", ""), requirement.get("operator", "")
        values = requirement.get("values") or []
        if scope not in SCOPES:
            errors.append(invalid(f"{path}.scopeName", scope, "unsupported scope"))
        if scope not in misapplied or len(requirements) <= MANY_REQUIREMENTS:
            errors += fitting(_validate_scope(unfit, scope, path, selector))
            misapplied.add(scope)
        if scope in _EXISTS_ONLY and operator != "Exists":
            detail = (
                "must be 'Exists' when scope is any of ResourceQuotaScopeTerminating, "
                "ResourceQuotaScopeNotTerminating, ResourceQuotaScopeBestEffort, "
                "ResourceQuotaScopeNotBestEffort or ResourceQuotaScopeCrossNamespacePodAffinity"
            )
            errors.append(invalid(f"{path}.operator", operator, detail))
        if operator in ("In", "NotIn"):
            if not values:
                detail = "must be at least one value when `operator` is 'In' or 'NotIn' for scope selector"
                errors.append(required(f"{path}.values", detail))
        elif operator in ("Exists", "DoesNotExist"):
            if values:
                detail = "must be no value when `operator` is 'Exist' or 'DoesNotExist' for scope selector"
                errors.append(invalid(f"{path}.values", values, detail))
        else:
            errors.append(invalid(f"{path}.operator", operator, "not a valid selector operator"))
    scopes = [requirement.get("scopeName", "") for requirement in requirements]
    return errors + _validate_pairs(scopes, path, spec.get("scopes"))


strategy = ResourceQuotaStrategy()
