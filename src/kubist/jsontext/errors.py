"""The one error of reading a body, whatever its representation. Verbs turn it into a 400."""

from __future__ import annotations


class DecodeError(Exception):
    """A body that cannot be read; the text is what the client is told."""
