"""HPACK (RFC 7541): decodes requests, and encodes responses without a dynamic table.

Huffman codes and the static table come from the `hpack` package. `tests/http/test_hpack.py` compares both coders.
Decoded Huffman strings and encoded headers are cached: the path of a get takes 400 instructions instead of 72,000, a
header of a response 1,500 instead of 8,700 (`benchmarks/optimisations.py`).
"""

from __future__ import annotations

from collections import deque

from hpack.exceptions import HPACKDecodingError
from hpack.huffman_table import decode_huffman
from hpack.table import HeaderTable

from kubist.base.caching import bounded_cache

Header = tuple[bytes, bytes]

_STATIC: tuple[Header, ...] = tuple(HeaderTable.STATIC_TABLE)
_STATIC_COUNT = len(_STATIC)
_NAMES = {name: index for index, (name, _) in reversed(list(enumerate(_STATIC, 1)))}
_FIELDS = {header: index for index, header in enumerate(_STATIC, 1)}
_ENTRY_OVERHEAD = 32
_TABLE_SIZE = 4096

NO_TABLE = b"\x20"
"""Prefix of the first header block of a connection: sets the size of the dynamic table to 0."""


class HpackError(Exception):
    """Header block that cannot be decoded. The compression state of the connection is lost."""


class TooLarge(HpackError):
    """Header list above the limit."""


class Decoder:
    """Decoding state of one connection."""

    __slots__ = ("_count_limit", "_entries", "_limit", "_size", "_size_limit")

    def __init__(self, limit: int, count_limit: int) -> None:
        self._limit = limit
        self._count_limit = count_limit
        self._entries: deque[Header] = deque()
        self._size = 0
        self._size_limit = _TABLE_SIZE

    def decode(self, block: bytes) -> tuple[list[Header], int]:
        """Header list, and its size by RFC 9113 (10.5.1)."""
        headers: list[Header] = []
        left = self._limit
        entries = self._entries
        position = 0
        try:
            while position < len(block):
                first = block[position]
                if first >= 0x80:
                    index = first & 0x7F
                    position += 1
                    if index == 0x7F:
                        index, position = _integer(block, position, 0x7F)
                    if 0 < index <= _STATIC_COUNT:
                        header = _STATIC[index - 1]
                    elif index:
                        header = entries[index - _STATIC_COUNT - 1]
                    else:
                        raise HpackError("index 0")
                elif first >= 0x40 or first < 0x20:
                    mask = 0x3F if first >= 0x40 else 0x0F
                    index = first & mask
                    position += 1
                    if index == mask:
                        index, position = _integer(block, position, mask)
                    if index > _STATIC_COUNT:
                        name = entries[index - _STATIC_COUNT - 1][0]
                    elif index:
                        name = _STATIC[index - 1][0]
                    else:
                        name, position = _string(block, position)
                    value, position = _string(block, position)
                    header = (name, value)
                    if first >= 0x40:
                        self._add(header)
                else:
                    if headers:
                        raise HpackError("a size update after a header")
                    size, position = first & 0x1F, position + 1
                    if size == 0x1F:
                        size, position = _integer(block, position, 0x1F)
                    if size > _TABLE_SIZE:
                        raise HpackError("a table larger than allowed")
                    self._size_limit = size
                    self._evict()
                    continue
                headers.append(header)
                left -= len(header[0]) + len(header[1]) + _ENTRY_OVERHEAD
                if left < 0 or len(headers) > self._count_limit:
                    raise TooLarge("header list")
        except (IndexError, HPACKDecodingError) as error:
            raise HpackError(str(error)) from None
        return headers, self._limit - left

    def _add(self, header: Header) -> None:
        self._entries.appendleft(header)
        self._size += len(header[0]) + len(header[1]) + _ENTRY_OVERHEAD
        if self._size > self._size_limit:
            self._evict()

    def _evict(self) -> None:
        while self._size > self._size_limit:
            name, value = self._entries.pop()
            self._size -= len(name) + len(value) + _ENTRY_OVERHEAD


def _integer(block: bytes, position: int, prefix: int) -> tuple[int, int]:
    number, shift = prefix, 0
    while True:
        byte = block[position]
        position += 1
        number += (byte & 0x7F) << shift
        if byte < 0x80:
            return number, position
        shift += 7
        if shift > 28:
            raise HpackError("a number too large")


def _string(block: bytes, position: int) -> tuple[bytes, int]:
    first = block[position]
    position += 1
    length = first & 0x7F
    if length == 0x7F:
        length, position = _integer(block, position, 0x7F)
    end = position + length
    if end > len(block):
        raise HpackError("a string cut short")
    raw = block[position:end]
    if first < 0x80:
        return raw, end
    return _huffman(raw), end


@bounded_cache(entries=4096, key_length=256)
def _huffman(raw: bytes) -> bytes:
    return decode_huffman(raw)


@bounded_cache(entries=2048, key_length=320)
def encode(name: bytes, value: bytes) -> bytes:
    """One encoded header: indexed if the static table has it, otherwise literal."""
    name = name.lower()
    if (index := _FIELDS.get((name, value))) is not None:
        return bytes([0x80 | index])
    index = _NAMES.get(name, 0)
    start = _prefixed(0x00, 0x0F, index) if index else b"\x00" + _prefixed(0x00, 0x7F, len(name)) + name
    return start + _prefixed(0x00, 0x7F, len(value)) + value


def _prefixed(flags: int, mask: int, number: int) -> bytes:
    if number < mask:
        return bytes([flags | number])
    out = bytearray([flags | mask])
    number -= mask
    while number >= 0x80:
        out.append(number & 0x7F | 0x80)
        number >>= 7
    out.append(number)
    return bytes(out)
