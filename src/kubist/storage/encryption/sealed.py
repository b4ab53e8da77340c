"""Values that cannot be read: what marks them, and the words for why."""

from __future__ import annotations

ENCRYPTED = b"k8s:enc:"
"""How every encrypted value begins, whatever the cipher; no other value does."""
NOT_PLAIN = "identity transformer tried to read encrypted data"


class Unreadable(Exception):
    """A stored value that does not open; the text says why, as the reference does."""


class Sealed(bytes):
    """A value that does not open, as it is stored."""

    reason: str

    def __new__(cls, value: bytes, reason: str) -> Sealed:
        sealed = super().__new__(cls, value)
        sealed.reason = reason
        return sealed


def reason(value: bytes, error: Exception) -> str:
    """Why a value is no object: it does not open, or holds something else."""
    if isinstance(value, Sealed):
        return value.reason
    return NOT_PLAIN if value.startswith(ENCRYPTED) else str(error)
