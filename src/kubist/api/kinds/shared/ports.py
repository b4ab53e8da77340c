"""Validation of ports in services, endpoints, policies and probes: a number or a port name."""

from __future__ import annotations

from kubist.model.meta import names
from kubist.model.meta.fields import FieldError, invalid, not_supported, required

Errors = list[FieldError]

PROTOCOLS = ("SCTP", "TCP", "UDP")
MAX_PORT = 65535


def validate_port(number: int, path: str) -> Errors:
    return [invalid(path, number, message) for message in names.port_number(number)]


def validate_port_or_name(port: int | str, path: str) -> Errors:
    """Validates a target port. An absent port counts as 0, which is invalid."""
    messages = names.port_name(port) if isinstance(port, str) else names.port_number(port)
    return [invalid(path, port, message) for message in messages]


def validate_protocol(protocol: str, path: str) -> Errors:
    if not protocol:
        return [required(path)]
    return [] if protocol in PROTOCOLS else [not_supported(path, protocol, PROTOCOLS)]
