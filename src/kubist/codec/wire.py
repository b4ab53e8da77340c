"""The wire format of protobuf: varints, tags, lengths; what every message is made of."""

from __future__ import annotations

from collections.abc import Iterator

from kubist.codec.errors import DecodeError

VARINT, FIXED64, BYTES, START_GROUP, END_GROUP, FIXED32 = range(6)
EOF = "unexpected EOF"
OVERFLOW = "proto: integer overflow"


def varint(value: int) -> bytes:
    """An integer in groups of seven bits; a negative one takes ten bytes."""
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


SMALL = tuple(_varint(value) for value in range(16384))


def tag(number: int, wire_type: int) -> bytes:
    return varint(number << 3 | wire_type)


def delimited(tag: bytes, content: bytes) -> bytes:
    return tag + varint(len(content)) + content


def read_varint(data: bytes, at: int) -> tuple[int, int]:
    """A varint and where it ends."""
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


def fields(data: bytes, message: str) -> Iterator[tuple[int, int | bytes]]:
    """The fields of a message as (number, value): an integer, or bytes for anything else."""
    at, end = 0, len(data)
    while at < end:
        octet = data[at]
        if octet < 0x80:
            key, at = octet, at + 1
        else:
            key, at = read_varint(data, at)
        number, wire_type = key >> 3, key & 7
        if wire_type == END_GROUP:
            raise DecodeError(f"proto: {message}: wiretype end group for non-group")
        if not 0 < number < 1 << 29:
            raise DecodeError(f"proto: {message}: illegal tag {number} (wire type {wire_type})")
        if wire_type == BYTES:
            if at < end and (octet := data[at]) < 0x80:
                length, at = octet, at + 1
            else:
                length, at = read_varint(data, at)
            if at + length > end:
                raise DecodeError(EOF)
            yield number, data[at : at + length]
            at += length
        elif wire_type == VARINT:
            value, at = read_varint(data, at)
            yield number, value
        elif wire_type == FIXED64:
            if at + 8 > end:
                raise DecodeError(EOF)
            yield number, int.from_bytes(data[at : at + 8], "little")
            at += 8
        elif wire_type == FIXED32:
            at += 4
        elif wire_type == START_GROUP:
            at = _skip_group(data, at)
        else:
            raise DecodeError(f"proto: illegal wireType {wire_type}")
        if at > end:
            raise DecodeError(EOF)


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
