"""PEM blocks of a text, by the rules of Go's `encoding/pem`.

Text between blocks is skipped, and so is a block with a wrong END line or invalid base64.
"""

from __future__ import annotations

import base64
import binascii
from collections.abc import Iterator
from typing import NamedTuple

_BEGIN, _END, _DASHES = b"-----BEGIN ", b"\n-----END ", b"-----"


class Block(NamedTuple):
    """One block. `label` is the text after BEGIN; `has_headers`: lines with a colon precede the content."""

    label: str
    content: bytes
    has_headers: bool


def blocks(text: bytes) -> Iterator[Block]:
    """Well-formed blocks in their order. A BEGIN line belongs to the next END line; earlier ones are skipped."""
    position = 0
    while (end := text.find(_END, position)) >= 0:
        end_label = end + len(_END)
        begin = text.rfind(_BEGIN, position, end)
        if begin < 0 or (begin > position and text[begin - 1 : begin] != b"\n"):
            position = end_label
            continue
        label, body = _line(text, begin + len(_BEGIN))
        start = _skip_headers(text, body)
        if start > end_label or start >= len(text):
            return
        content = _content(text, label, start, end) if start == body or start <= end else None
        if content is None:
            position = end_label
            continue
        yield Block(label[: -len(_DASHES)].decode(errors="replace"), content, start != body)
        _, position = _line(text, end_label)


def certificates(text: bytes) -> list[bytes]:
    """Content (DER) of the certificate blocks without headers. Other blocks are ignored."""
    return [
        block.content
        for block in blocks(text)
        if block.label == "CERTIFICATE" and not block.has_headers and block.content
    ]


def _line(text: bytes, start: int) -> tuple[bytes, int]:
    """Line without white space at its end, and the position of the next line."""
    end = text.find(b"\n", start)
    if end < 0:
        return text[start:].rstrip(b" \t"), len(text)
    return text[start:end].removesuffix(b"\r").rstrip(b" \t"), end + 1


def _skip_headers(text: bytes, position: int) -> int:
    """Position of the first line without a colon."""
    while position < len(text):
        line, following = _line(text, position)
        if b":" not in line:
            break
        position = following
    return position


def _content(text: bytes, label: bytes, start: int, end: int) -> bytes | None:
    """Decoded content of a block. None if BEGIN and END line do not match, or if the base64 is invalid."""
    after = end + len(_END) + len(label)
    if not label.endswith(_DASHES) or text[end + len(_END) : after] != label or _line(text, after)[0]:
        return None
    try:
        return base64.b64decode(text[start : max(start, end)].translate(None, b" \t\r\n"), validate=True)
    except binascii.Error:
        return None
