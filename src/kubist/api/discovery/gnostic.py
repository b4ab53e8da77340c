"""Protobuf encoding of OpenAPI documents, in gnostic's messages. A message is a table of its fields by JSON
name.

Keys that start with `x-` and are not in the table are vendor extensions. The tables of v2 and v3 are in
gnostic_v2.py and gnostic_v3.py.
"""

from __future__ import annotations

import struct
from collections.abc import Callable
from typing import Any

import orjson

from kubist.model.codec.protobuf_wire import BYTES, FIXED64, VARINT, delimited, tag, varint
from kubist.model.codec.yaml_emit import flow
from kubist.model.meta.object import Object

Fields = dict[str, tuple[int, str]]
"""By JSON name: field number, and the kind of its value (a message, a scalar or a key of `unions`). The
prefix `[` marks a repeated field, the prefix `*` an object with values of that kind by name."""


class Gnostic:
    """Encoder for the messages of one format. `unions` holds encoders for kinds that a table cannot describe."""

    def __init__(
        self,
        messages: dict[str, Fields],
        extensions: dict[str, int],
        unions: dict[str, Callable[[Any], bytes]],
    ) -> None:
        self.messages = messages
        self.extensions = extensions
        self.unions = unions

    def message(self, name: str, value: Object) -> bytes:
        fields = self.messages[name]
        parts = []
        for key, inner in sorted(value.items(), key=lambda pair: fields.get(pair[0], (99, ""))[0]):
            if key in fields:
                number, kind = fields[key]
                many = kind.startswith("[")
                for item in inner if many else (inner,):
                    parts.append(self.field(number, kind.removeprefix("["), item))
            elif key.startswith("x-") and name in self.extensions:
                parts.append(delimited(tag(self.extensions[name], BYTES), named(key, any_value(inner))))
        return b"".join(parts)

    def field(self, number: int, kind: str, value: Any) -> bytes:
        match kind:
            case "bool":
                return tag(number, VARINT) + b"\1" if value else b""
            case "int":
                return tag(number, VARINT) + varint(int(value)) if value else b""
            case "double":
                return tag(number, FIXED64) + struct.pack("<d", value) if value else b""
        return delimited(tag(number, BYTES), self.content(kind, value))

    def content(self, kind: str, value: Any) -> bytes:
        if kind.startswith("*"):
            return self.by_name(b"\x0a", kind[1:], value)
        match kind:
            case "text":
                return str(value).encode()
            case "Any":
                return any_value(value)
            case "Texts":
                texts = value if isinstance(value, list) else [value]
                return b"".join(delimited(b"\x0a", text.encode()) for text in texts)
        union = self.unions.get(kind)
        return union(value) if union is not None else self.message(kind, value)

    def by_name(self, number: bytes, kind: str, value: Object) -> bytes:
        return b"".join(
            delimited(number, named(name, self.content(kind, inner))) for name, inner in value.items()
        )


def named(name: str, content: bytes) -> bytes:
    return delimited(b"\x0a", name.encode()) + delimited(b"\x12", content)


def any_value(value: Any) -> bytes:
    """A gnostic Any: the value as YAML."""
    return delimited(b"\x12", "".join(line + "\n" for line in _yaml(value)).encode())


def _yaml(value: Any) -> list[str]:
    """Lines of YAML, with keys in their given order."""
    if not isinstance(value, dict | list) or not value:
        return [flow(value) if isinstance(value, str) else orjson.dumps(value).decode()]
    lines = []
    if isinstance(value, list):
        for item in value:
            first, *rest = _yaml(item)
            lines += [f"- {first}", *(f"  {line}" for line in rest)]
        return lines
    for key, item in value.items():
        inner = _yaml(item)
        if isinstance(item, dict | list) and item:
            lines += [f"{key}:", *(f"  {line}" for line in inner)]
        else:
            lines.append(f"{key}: {inner[0]}")
    return lines
