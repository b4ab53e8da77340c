"""Types and ranges of settings that a program passes. The command line checks its flags while it parses them."""

from __future__ import annotations

import dataclasses
import ipaddress
from typing import Any

from kubist.api.config import Config
from kubist.errors import InvalidSettings

_DEFAULTS = Config()
_EXPECTED = {
    bool: "True or False",
    int: "a whole number",
    float: "a number",
    str: "a string",
    tuple: "a tuple of strings",
    dict: "a dict",
}


def check_settings(config: Config) -> None:
    """Raises ValueError for a value of the wrong type, for addresses and ports out of range, and for settings of
    simulated nodes."""
    for field in dataclasses.fields(config):
        value, kind = getattr(config, field.name), type(getattr(_DEFAULTS, field.name))
        if not _has_type(value, kind):
            raise InvalidSettings(f"{field.name} must be {_EXPECTED[kind]}, not {value!r}")
    if not 0 <= config.secure_port <= 65535:
        raise InvalidSettings(
            f"secure_port must be a port number, from 0 to 65535, not {config.secure_port}: 0 takes any free one"
        )
    try:
        ipaddress.ip_address(config.bind_address)
    except ValueError:
        raise InvalidSettings(f"bind_address must be an IP address, not {config.bind_address!r}") from None
    try:
        for part in config.service_cluster_ip_range.split(","):
            ipaddress.ip_network(part.strip())
    except ValueError as error:
        raise InvalidSettings(f"service_cluster_ip_range: {error}") from None
    if config.workloads or config.simulated_nodes:
        # Saves start-up time: few servers simulate nodes.
        from kubist.cluster.simulation.node_objects import template_of

        template_of(config)


def _has_type(value: Any, kind: type) -> bool:
    if kind is tuple:
        return isinstance(value, tuple | list) and all(isinstance(item, str) for item in value)
    if kind is bool:
        return isinstance(value, bool)
    if kind in (int, float):
        return isinstance(value, (int, kind)) and not isinstance(value, bool)
    return isinstance(value, kind)
