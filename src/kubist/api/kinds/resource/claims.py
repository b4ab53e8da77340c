"""Spec of a ResourceClaim or template: device requests, constraints between them, configuration."""

from __future__ import annotations

from kubist.api.kinds.resource.common import (
    each,
    validate_configuration,
    validate_full_name,
    validate_label,
    validate_subdomain,
    validate_toleration,
)
from kubist.api.kinds.resource.expressions import validate_selector
from kubist.api.resources.context import Context
from kubist.api.resources.strategy import Errors
from kubist.model.meta import fields
from kubist.model.meta.object import Object

MAX_REQUESTS = 32
ADMIN_LABEL = "resource.kubernetes.io/admin-access"
_MODES = ("All", "ExactCount")
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
    found = set()
    for request in (spec.get("devices") or {}).get("requests") or ():
        found.add(request.get("name", ""))
        found.update(
            f"{request.get('name', '')}/{alternative.get('name', '')}"
            for alternative in request.get("firstAvailable") or ()
        )
    return found


def validate_claim(spec: Object, path: str) -> Errors:
    devices = spec.get("devices") or {}
    known = request_names(spec)
    path = f"{path}.devices"

    def constraint(value: Object, place: str) -> Errors:
        return _validate_constraint(value, place, known)

    def configuration(value: Object, place: str) -> Errors:
        return validate_request_refs(value, place, known) + validate_configuration(value, place)

    errors = each(
        devices.get("requests"),
        MAX_REQUESTS,
        f"{path}.requests",
        _validate_request,
        lambda r: r.get("name", ""),
    )
    errors += each(devices.get("constraints"), 32, f"{path}.constraints", constraint)
    return errors + each(devices.get("config"), 32, f"{path}.config", configuration)


def _validate_request(request: Object, path: str) -> Errors:
    errors = validate_label(request.get("name", ""), f"{path}.name")
    exactly, alternatives = request.get("exactly"), request.get("firstAvailable")
    if exactly is None and not alternatives:
        why = "exactly one of `exactly` or `firstAvailable` is required"
        return [*errors, fields.required(path, why)]
    if exactly is not None and alternatives:
        why = "exactly one of `exactly` or `firstAvailable` is required, but multiple fields are set"
        return [*errors, fields.invalid(path, None, why)]
    if exactly is not None:
        return errors + _validate_ask(exactly, f"{path}.exactly")
    return errors + each(
        alternatives, 8, f"{path}.firstAvailable", _validate_alternative, lambda a: a.get("name", "")
    )


def _validate_alternative(request: Object, path: str) -> Errors:
    return validate_label(request.get("name", ""), f"{path}.name") + _validate_ask(request, path)


def _validate_ask(ask: Object, path: str) -> Errors:
    """Validates a device class, selectors, and the number of devices."""
    name = ask.get("deviceClassName", "")
    errors = validate_subdomain(name, f"{path}.deviceClassName") if name else []
    if not name:
        errors.append(fields.required(f"{path}.deviceClassName"))
    errors += each(ask.get("selectors"), 32, f"{path}.selectors", validate_selector)
    mode, count = ask.get("allocationMode", ""), ask.get("count", 0)
    if mode == "All" and count:
        why = "must not be specified when allocationMode is 'All'"
        errors.append(fields.invalid(f"{path}.count", count, why))
    elif mode == "ExactCount" and count <= 0:
        errors.append(fields.invalid(f"{path}.count", count, "must be greater than zero"))
    elif mode not in _MODES:
        errors.append(fields.not_supported(f"{path}.allocationMode", mode, _MODES))
    return errors + each(ask.get("tolerations"), -1, f"{path}.tolerations", validate_toleration)


def _validate_constraint(constraint: Object, path: str, known: RequestNames) -> Errors:
    errors = validate_request_refs(constraint, path, known)
    for name in ("matchAttribute", "distinctAttribute"):
        if constraint.get(name) is not None:
            return errors + validate_full_name(constraint[name], f"{path}.{name}")
    why = 'exactly one of "matchAttribute" or "distinctAttribute" is required, but multiple fields are set'
    return [*errors, fields.required(path, why)]


def validate_request_refs(obj: Object, path: str, known: RequestNames) -> Errors:
    """Validates the request names of a constraint or configuration."""
    return each(
        obj.get("requests"),
        MAX_REQUESTS,
        f"{path}.requests",
        lambda name, place: validate_request_ref(name, place, known),
        lambda name: name,
    )


def validate_request_ref(name: str, path: str, known: RequestNames) -> Errors:
    parts = name.split("/")
    if len(parts) > 2:
        return [fields.invalid(path, name, _NOT_A_REQUEST)]
    errors = [error for part in parts for error in validate_label(part, path)]
    if name not in known:
        errors.append(fields.invalid(path, name, _NOT_A_REQUEST))
    return errors


def validate_admin_request(ctx: Context, spec: Object, namespace: str) -> Errors:
    """Validates adminAccess, which gives access to devices in use. It requires a label on the namespace."""
    for index, request in enumerate((spec.get("devices") or {}).get("requests") or ()):
        if (request.get("exactly") or {}).get("adminAccess"):
            return admin_access_error(ctx, namespace, f"spec.devices.requests[{index}].adminAccess")
    return []


def admin_access_error(ctx: Context, namespace: str, path: str) -> Errors:
    found = ctx.objects.get("namespaces", namespace)
    if found is None:
        return [fields.internal(path, "could not retrieve namespace to verify admin access")]
    if (found["metadata"].get("labels") or {}).get(ADMIN_LABEL) == "true":
        return []
    why = f"admin access to devices requires the `{ADMIN_LABEL}: true` label on the containing namespace"
    return [fields.forbidden(path, why)]
