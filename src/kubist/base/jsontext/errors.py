"""Error of decoding a body, for all representations. The verbs turn it into a 400."""

from __future__ import annotations


class DecodeError(Exception):
    """Body that cannot be decoded. The text is the message for the client."""
