"""Protobuf format of the API: the `k8s\\0` envelope, lists and watch frames around encoded objects.

The encoding of objects is in `protobuf_encode.py` and `protobuf_decode.py`.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any, NamedTuple

from kubist.base.jsontext.errors import DecodeError
from kubist.model.codec import protobuf_wire as wire
from kubist.model.codec.protobuf_decode import decode
from kubist.model.codec.protobuf_encode import encode
from kubist.model.codec.protobuf_mistakes import envelope_mistake
from kubist.model.schema.catalog import by_name

__all__ = ["MAGIC", "Envelope", "decode", "encode", "join_list", "unwrap", "watch_frame", "wrap"]

MAGIC = b"k8s\0"
_LIST_META = "io.k8s.apimachinery.pkg.apis.meta.v1.ListMeta"


class Envelope(NamedTuple):
    api_version: str
    kind: str
    raw: bytes


def wrap(api_version: str, kind: str, raw: bytes) -> bytes:
    """Message in its envelope. Encoding and content type of the envelope are written as empty strings."""
    meta = wire.delimited(b"\x0a", api_version.encode()) + wire.delimited(b"\x12", kind.encode())
    return b"".join((MAGIC, wire.delimited(b"\x0a", meta), wire.delimited(b"\x12", raw), b"\x1a\x00\x22\x00"))


def unwrap(data: bytes) -> Envelope:
    """Content of an envelope. Kind and apiVersion may be empty."""
    if not data:
        raise DecodeError("empty data")
    if not data.startswith(MAGIC):
        raise DecodeError(
            "provided data does not appear to be a protobuf message, "
            f"expected prefix [{' '.join(str(octet) for octet in MAGIC)}]"
        )
    if len(data) == len(MAGIC):
        raise DecodeError("empty body")
    content = data[len(MAGIC) :]
    try:
        return _envelope(content)
    except DecodeError as error:
        raise envelope_mistake(content) or error from None


def _envelope(data: bytes) -> Envelope:
    texts = {1: "", 2: ""}
    raw = b""
    for number, value in wire.fields(data, "Unknown"):
        if number not in (1, 2, 3, 4):
            continue
        if not isinstance(value, bytes):
            raise DecodeError("proto: wrong wireType")
        if number == 1:
            for inner, text in wire.fields(value, "TypeMeta"):
                if inner in texts:
                    if not isinstance(text, bytes):
                        raise DecodeError("proto: wrong wireType")
                    texts[inner] = text.decode(errors="replace")
        elif number == 2:
            raw = value
    return Envelope(texts[1], texts[2], raw)


def join_list(metadata: dict[str, Any], items: Iterable[bytes]) -> bytes:
    """Message of a list with encoded items: metadata first, then the items."""
    parts = [wire.delimited(b"\x0a", encode(by_name(_LIST_META), metadata))]
    for item in items:
        parts += (b"\x12", wire.varint(len(item)), item)
    return b"".join(parts)


def watch_frame(type: str, object: bytes) -> bytes:
    """Event of a watch stream: four bytes of length, then a WatchEvent with an enveloped object."""
    event = wire.delimited(b"\x0a", type.encode()) + wire.delimited(b"\x12", wire.delimited(b"\x0a", object))
    return len(event).to_bytes(4, "big") + event
