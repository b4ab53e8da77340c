"""YAML 1.1 bodies and responses. Loads parser (`yaml_parse.py`) and emitter (`yaml_emit.py`) on first use."""

from __future__ import annotations

from typing import Any, NamedTuple


class Document(NamedTuple):
    value: Any
    complaints: list[str]
    """`line 6: key "a" already set in map`, for every duplicate key."""


def parse(body: bytes) -> Document:
    """First document of a body as a JSON value or null, with sorted keys, as the reference's YAML-to-JSON
    conversion.

    The last of duplicate keys wins.
    """
    # Saves start-up time: most servers see no YAML.
    from kubist.model.codec import yaml_parse

    return yaml_parse.parse(body)


def dumps(value: Any) -> bytes:
    """JSON value as YAML."""
    # Saves start-up time: most servers write no YAML.
    from kubist.model.codec import yaml_emit

    return yaml_emit.dumps(value)
