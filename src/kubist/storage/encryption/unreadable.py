"""Unreadable values: their marker and the error messages."""

from __future__ import annotations

ENCRYPTED = b"k8s:enc:"
"""Prefix of every encrypted value, for all ciphers. No plain value starts with it."""
NOT_PLAIN = "identity transformer tried to read encrypted data"


class Unreadable(Exception):
    """Stored value that cannot be decrypted. The message is the reference's."""


class Undecrypted(bytes):
    """Stored bytes of a value that cannot be decrypted, with the reason."""

    reason: str

    def __new__(cls, value: bytes, reason: str) -> Undecrypted:
        undecrypted = super().__new__(cls, value)
        undecrypted.reason = reason
        return undecrypted


def reason(value: bytes, error: Exception) -> str:
    """Reason why a stored value is not an object: decryption failed, or the plain value is invalid."""
    if isinstance(value, Undecrypted):
        return value.reason
    return NOT_PLAIN if value.startswith(ENCRYPTED) else str(error)
