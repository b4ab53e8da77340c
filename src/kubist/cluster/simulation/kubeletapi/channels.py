"""Messages of the WebSocket protocols `channel.k8s.io`: a channel number, then data. The base64 forms are text."""

from __future__ import annotations

import base64
import binascii


def encode(channel: int, data: bytes, *, as_text: bool) -> bytes:
    if as_text:
        return bytes([ord("0") + channel]) + base64.b64encode(data)
    return bytes([channel]) + data


def decode(message: bytes, *, as_text: bool) -> tuple[int, bytes] | None:
    """Channel and data of a message; None if it is empty or malformed, because a kubelet ignores such messages."""
    if not message:
        return None
    if not as_text:
        return message[0], message[1:]
    try:
        return message[0] - ord("0"), base64.b64decode(message[1:], validate=True)
    except (binascii.Error, ValueError):
        return None
