"""Spec of a ResourceClaim or template: device requests, constraints between them, configuration."""

from __future__ import annotations

from kubist.api.kinds.resource.common import CONFIGURATION, TOLERATION, full_name
from kubist.api.kinds.resource.expressions import validate_selector
from kubist.api.kinds.shared.rules import (
    Rule,
    Stop,
    field,
    items,
    label,
    nullable,
    one_of,
    required,
    struct,
    subdomain,
)
from kubist.api.resources.context import Context
from kubist.api.resources.strategy import Errors
from kubist.model.meta import fields
from kubist.model.meta.object import Object

MAX_REQUESTS = 32
ADMIN_LABEL = "resource.kubernetes.io/admin-access"
_NOT_A_REQUEST = (
    "must be the name of a request in the claim or the name of a request and a subrequest separated by '/'"
)
RequestNames = set[str]
"""Names of requests, and of their subrequests as `request/subrequest`."""


def default_claim(spec: Object) -> None:
    for request in (spec.get("devices") or {}).get("requests") or ():
        alternatives = request.get("firstAvailable") or ()
        exactly = request.get("exactly")
        for ask in (*alternatives, *(() if exactly is None else (exactly,))):
            ask["allocationMode"] = ask.get("allocationMode") or "ExactCount"
            if ask["allocationMode"] == "ExactCount":
                ask["count"] = ask.get("count") or 1
            default_tolerations(ask)


def default_tolerations(obj: Object) -> None:
    for toleration in obj.get("tolerations") or ():
        toleration["operator"] = toleration.get("operator") or "Equal"


def request_names(spec: Object) -> RequestNames:
    known = set()
    for request in (spec.get("devices") or {}).get("requests") or ():
        known.add(request.get("name", ""))
        known.update(
            f"{request.get('name', '')}/{alternative.get('name', '')}"
            for alternative in request.get("firstAvailable") or ()
        )
    return known


def validate_claim(spec: Object, path: str) -> Errors:
    refs = request_refs(request_names(spec))
    rules = struct(
        items("requests", _REQUEST, most=MAX_REQUESTS, unique="name"),
        items("constraints", refs, _validate_attribute, most=32),
        items("config", refs, CONFIGURATION, most=32),
    )
    return rules(spec.get("devices") or {}, f"{path}.devices")


def _validate_choice(request: Object, path: str) -> Errors:
    why = "exactly one of `exactly` or `firstAvailable` is required"
    is_exact, has_alternatives = request.get("exactly") is not None, bool(request.get("firstAvailable"))
    if is_exact and has_alternatives:
        return Stop([fields.invalid(path, None, f"{why}, but multiple fields are set")])
    return [] if is_exact or has_alternatives else Stop([fields.required(path, why)])


def _validate_number(ask: Object, path: str) -> Errors:
    mode, count = ask.get("allocationMode", ""), ask.get("count", 0)
    if mode == "All" and count:
        why = "must not be specified when allocationMode is 'All'"
        return [fields.invalid(f"{path}.count", count, why)]
    if mode == "ExactCount" and count <= 0:
        return [fields.invalid(f"{path}.count", count, "must be greater than zero")]
    return one_of("All", "ExactCount")(mode, f"{path}.allocationMode")


def _validate_attribute(constraint: Object, path: str) -> Errors:
    for name in ("matchAttribute", "distinctAttribute"):
        if constraint.get(name) is not None:
            return full_name(constraint[name], f"{path}.{name}")
    why = 'exactly one of "matchAttribute" or "distinctAttribute" is required, but multiple fields are set'
    return [fields.required(path, why)]


_ASK = struct(
    field("deviceClassName", required, subdomain),
    items("selectors", validate_selector, most=32),
    _validate_number,
    items("tolerations", TOLERATION),
)
"""Rules of a device request: device class, selectors, number of devices, and tolerations."""
_REQUEST = struct(
    field("name", label),
    _validate_choice,
    field("exactly", nullable, _ASK),
    items("firstAvailable", field("name", label), _ASK, most=8, unique="name"),
)


def request_refs(known: RequestNames) -> Rule:
    """Rules of the request names in a constraint or configuration."""
    return items("requests", request_ref(known), most=MAX_REQUESTS, unique=str)


def request_ref(known: RequestNames) -> Rule:
    def validate(name: str | None, path: str) -> Errors:
        name = name or ""
        parts = name.split("/")
        if len(parts) > 2:
            return [fields.invalid(path, name, _NOT_A_REQUEST)]
        errors = [error for part in parts for error in label(part, path)]
        if name not in known:
            errors.append(fields.invalid(path, name, _NOT_A_REQUEST))
        return errors

    return validate


def validate_admin_request(ctx: Context, spec: Object, namespace: str) -> Errors:
    """Validates adminAccess, which gives access to devices in use. It requires a label on the namespace."""
    for index, request in enumerate((spec.get("devices") or {}).get("requests") or ()):
        if (request.get("exactly") or {}).get("adminAccess"):
            return admin_access_error(ctx, namespace, f"spec.devices.requests[{index}].adminAccess")
    return []


def admin_access_error(ctx: Context, namespace: str, path: str) -> Errors:
    containing = ctx.objects.get("namespaces", namespace)
    if containing is None:
        return [fields.internal(path, "could not retrieve namespace to verify admin access")]
    if (containing["metadata"].get("labels") or {}).get(ADMIN_LABEL) == "true":
        return []
    why = f"admin access to devices requires the `{ADMIN_LABEL}: true` label on the containing namespace"
    return [fields.forbidden(path, why)]
