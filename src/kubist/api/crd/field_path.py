"""Paths from a CRD to fields of its own schema: `.spec.size`, `.labels['a.b']`."""

from __future__ import annotations

import re
from typing import Any

Props = dict[str, Any]
_TOKEN = re.compile(r"[.\[\]]|'(?:[^'\\]|\\.)*'|[^.\[\]]+")
_ESCAPES = {"n": "\n", "r": "\r", "t": "\t", "a": "\a", "b": "\b", "f": "\f", "v": "\v", "'": "'", "\\": "\\"}


class BadPath(ValueError):
    """Malformed path, or path to a field that the schema does not have."""


def resolve(path: str, props: Props, *, arrays: bool = True) -> tuple[str, Props | None]:
    """The path as error causes show it (relative to the schema), and the schema of its field. The schema is None for a
    value of `additionalProperties: true`. `arrays`: whether the bracket notation is allowed."""
    tokens = _TOKEN.findall(path)
    if not tokens or tokens[0] not in (".", "["):
        raise BadPath("expected [ or . but got: " + (tokens[0] if tokens else ""))
    schema: Props | None = props
    spelled = ""
    position = 0

    def take() -> str:
        nonlocal position
        if position >= len(tokens):
            raise BadPath("unexpected end of JSON path")
        position += 1
        return str(tokens[position - 1])

    while position < len(tokens):
        token = take()
        if token == "[":
            if not arrays:
                raise BadPath("array notation is not allowed")
            quoted = take()
            if len(quoted) < 2 or quoted[0] != "'" or quoted[-1] != "'":
                raise BadPath(f"expected single quoted string but got {quoted}")
            name = _unescaped(quoted[1:-1])
            schema, spelled = _step(schema, spelled, name)
            closing = take()
            if closing != "]":
                raise BadPath(f"expected ] but got {closing}")
        elif token == ".":
            schema, spelled = _step(schema, spelled, take())
        else:
            raise BadPath(f"expected [ or . but got: {token}")
    return spelled, schema


def _step(props: Props | None, spelled: str, name: str) -> tuple[Props | None, str]:
    if props is None:
        raise BadPath("does not refer to a valid field")
    properties = props.get("properties")
    if properties:
        if name not in properties:
            raise BadPath("does not refer to a valid field")
        return properties[name], f"{spelled}.{name}" if spelled else name
    additional = props.get("additionalProperties")
    if additional is None:
        raise BadPath("does not refer to a valid field")
    return additional if isinstance(additional, dict) else None, f"{spelled}[{name}]"


def _unescaped(text: str) -> str:
    def replace(match: re.Match[str]) -> str:
        if match[1] not in _ESCAPES:
            raise BadPath(f"invalid string literal: invalid escape sequence \\{match[1]}")
        return _ESCAPES[match[1]]

    return re.sub(r"\\(.)", replace, text)
