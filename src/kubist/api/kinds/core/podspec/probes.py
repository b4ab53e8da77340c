"""Validation of probes and lifecycle hooks."""

from __future__ import annotations

import re

from kubist.api.kinds.shared.values import validate_port_or_name
from kubist.model.meta import names
from kubist.model.meta.fields import FieldError, forbidden, invalid, not_supported, required
from kubist.model.meta.object import Object

Errors = list[FieldError]

NEGATIVE = "must be greater than or equal to 0"
_NUMBERS = (
    "initialDelaySeconds",
    "timeoutSeconds",
    "periodSeconds",
    "successThreshold",
    "failureThreshold",
)
_HEADER = "[-A-Za-z0-9]+"
_HEADER_MESSAGE = names.regex_error(
    "a valid HTTP header must consist of alphanumeric characters or '-'", _HEADER, "X-Header-Name"
)
_is_header = re.compile(_HEADER).fullmatch


def validate_probes(container: Object, grace: int | None, path: str) -> Errors:
    errors: Errors = []
    for field in ("livenessProbe", "readinessProbe", "startupProbe"):
        if field in container:
            errors += _probe(container[field], field, grace, f"{path}.{field}")
    return errors


def _probe(probe: Object, field: str, grace: int | None, path: str) -> Errors:
    errors = _handler(probe, grace, path, ("exec", "httpGet", "tcpSocket", "grpc"))
    for number in _NUMBERS:
        if number in probe and probe[number] < 0:
            errors.append(invalid(f"{path}.{number}", probe[number], NEGATIVE))
    grace_of_probe = probe.get("terminationGracePeriodSeconds")
    if grace_of_probe is not None:
        where = f"{path}.terminationGracePeriodSeconds"
        if grace_of_probe <= 0:
            errors.append(invalid(where, grace_of_probe, "must be greater than 0"))
        if field == "readinessProbe":
            errors.append(invalid(where, grace_of_probe, "must not be set for readinessProbes"))
    if field != "readinessProbe" and probe.get("successThreshold", 0) != 1:
        errors.append(invalid(f"{path}.successThreshold", probe.get("successThreshold", 0), "must be 1"))
    return errors


def validate_lifecycle(lifecycle: Object, grace: int | None, path: str) -> Errors:
    errors: Errors = []
    for field in ("postStart", "preStop"):
        if field in lifecycle:
            kinds = ("exec", "httpGet", "tcpSocket", "sleep")
            errors += _handler(lifecycle[field], grace, f"{path}.{field}", kinds)
    return errors


def _handler(handler: Object, grace: int | None, path: str, kinds: tuple[str, ...]) -> Errors:
    """Requires exactly one handler type. Only the first one is validated further."""
    types = [kind for kind in kinds if kind in handler]
    if not types:
        return [required(path, "must specify a handler type")]
    errors = _ACTIONS[types[0]](handler[types[0]], f"{path}.{types[0]}", grace)
    if len(types) > 1:
        errors += [
            forbidden(f"{path}.{kind}", "may not specify more than 1 handler type") for kind in types[1:]
        ]
    return errors


def _exec(action: Object, path: str, _grace: int | None) -> Errors:
    return [] if action.get("command") else [required(f"{path}.command")]


def _http_get(action: Object, path: str, _grace: int | None) -> Errors:
    errors = [] if action.get("path") else [required(f"{path}.path")]
    errors += validate_port_or_name(action.get("port", 0), f"{path}.port")
    if action.get("scheme", "") not in ("HTTP", "HTTPS"):
        errors.append(not_supported(f"{path}.scheme", action.get("scheme", ""), ("HTTP", "HTTPS")))
    for header in action.get("httpHeaders") or ():
        if not _is_header(header.get("name", "")):
            errors.append(invalid(f"{path}.httpHeaders", header.get("name", ""), _HEADER_MESSAGE))
    return errors


def _tcp_socket(action: Object, path: str, _grace: int | None) -> Errors:
    return validate_port_or_name(action.get("port", 0), f"{path}.port")


def _sleep(action: Object, path: str, grace: int | None) -> Errors:
    seconds = action.get("seconds", 0)
    if grace is None or 0 <= seconds <= grace:
        return []
    return [
        invalid(path, seconds, f"must be non-negative and less than terminationGracePeriodSeconds ({grace})")
    ]


_ACTIONS = {
    "exec": _exec,
    "httpGet": _http_get,
    "tcpSocket": _tcp_socket,
    "grpc": _tcp_socket,
    "sleep": _sleep,
}
