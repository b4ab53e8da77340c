"""Protobuf wire format: varints, tags and lengths."""

from __future__ import annotations

from kubist.base.jsontext.errors import DecodeError

VARINT, FIXED64, BYTES, START_GROUP, END_GROUP, FIXED32 = range(6)
EOF = "unexpected EOF"
OVERFLOW = "proto: integer overflow"


class Fixed(int):
    """Bits of a fixed-width value. Also stands for a group, a wire type that no field may have."""


def varint(value: int) -> bytes:
    """Varint of an integer. A negative one has ten bytes."""
    if 0 <= value < 16384:
        return SMALL[value]
    return _varint(value)


def _varint(value: int) -> bytes:
    value &= 0xFFFFFFFFFFFFFFFF
    out = bytearray()
    while value > 0x7F:
        out.append(value & 0x7F | 0x80)
        value >>= 7
    out.append(value)
    return bytes(out)


_BYTES = [bytes((value,)) for value in range(256)]
SMALL = (*_BYTES[:128], *[low + high for high in _BYTES[1:128] for low in _BYTES[128:]])
"""Varints of the integers from 0 to 16383."""


def tag(number: int, wire_type: int) -> bytes:
    return varint(number << 3 | wire_type)


def delimited(tag: bytes, content: bytes) -> bytes:
    return tag + varint(len(content)) + content


def read_varint(data: bytes, at: int) -> tuple[int, int]:
    """Varint, and the position after it."""
    value = shift = 0
    try:
        while True:
            octet = data[at]
            at += 1
            value |= (octet & 0x7F) << shift
            if octet < 0x80:
                return value & 0xFFFFFFFFFFFFFFFF, at
            shift += 7
            if shift >= 64:
                raise DecodeError(OVERFLOW)
    except IndexError:
        raise DecodeError(EOF) from None


def fields(data: bytes, message: str) -> list[tuple[int, int | bytes]]:
    """Fields of a message as (number, value). A value is an integer, or bytes if it has a length.

    `message` is its name, for error messages.
    """
    pairs: list[tuple[int, int | bytes]] = []
    at, end = 0, len(data)
    while at < end:
        key = data[at]
        at += 1
        if key > 0x7F:
            key, at = read_varint(data, at - 1)
        number, wire_type = key >> 3, key & 7
        if wire_type == BYTES and number:
            if at < end and (length := data[at]) < 0x80:
                at += 1
            else:
                length, at = read_varint(data, at)
            stop = at + length
            if stop > end:
                raise DecodeError(EOF)
            pairs.append((number, data[at:stop]))
            at = stop
        elif wire_type == VARINT and number:
            if at < end and (value := data[at]) < 0x80:
                at += 1
            else:
                value, at = read_varint(data, at)
            pairs.append((number, value))
        else:
            at = _rare(data, at, number, wire_type, message, pairs)
            if at > end:
                raise DecodeError(EOF)
    return pairs


def _rare(
    data: bytes, at: int, number: int, wire_type: int, message: str, pairs: list[tuple[int, int | bytes]]
) -> int:
    """Handles rare wire types: floats, skipped fields and errors."""
    name = message.rpartition(".")[2]
    if wire_type == END_GROUP:
        raise DecodeError(f"proto: {name}: wiretype end group for non-group")
    if not 0 < number < 1 << 29:
        raise DecodeError(f"proto: {name}: illegal tag {number} (wire type {wire_type})")
    if wire_type == FIXED64:
        pairs.append((number, Fixed.from_bytes(data[at : at + 8], "little")))
        return at + 8
    if wire_type in (FIXED32, START_GROUP):
        pairs.append((number, Fixed(0)))
        return at + 4 if wire_type == FIXED32 else _skip_group(data, at)
    raise DecodeError(f"proto: illegal wireType {wire_type}")


def _skip_group(data: bytes, at: int) -> int:
    depth = 1
    while depth:
        key, at = read_varint(data, at)
        match key & 7:
            case 0:
                _, at = read_varint(data, at)
            case 1:
                at += 8
            case 2:
                length, at = read_varint(data, at)
                at += length
            case 3:
                depth += 1
            case 4:
                depth -= 1
            case 5:
                at += 4
            case other:
                raise DecodeError(f"proto: illegal wireType {other}")
    return at
