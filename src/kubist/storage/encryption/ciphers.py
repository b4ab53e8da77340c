"""Transformers of values: the ciphers AES-CBC, AES-GCM, secretbox and identity (no encryption) with one key each, and
the choice of a transformer by the prefix of the stored value.

The stored bytes have kube-apiserver's format. Each cipher imports its library in its constructor, so a server
without encryption does not load it.
"""

from __future__ import annotations

import os
import time
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Protocol

from cryptography.exceptions import InvalidTag
from cryptography.hazmat.primitives.ciphers import Cipher, algorithms, modes
from cryptography.hazmat.primitives.ciphers.aead import AESGCM

from kubist.storage.encryption.metrics import Metrics
from kubist.storage.encryption.unreadable import ENCRYPTED, NOT_PLAIN, Unreadable

BLOCK = 16
GCM_NONCE = 12
BOX_NONCE = 24
BOX_TAG = 16
TOO_SHORT = "the stored data was shorter than the required size"


@dataclass(slots=True, frozen=True)
class DataContext:
    """Context of a value: its storage key, which AES-GCM authenticates, its resource, and the counters."""

    key: bytes
    resource: str
    metrics: Metrics


class Identity:
    """Stores values in plain text. Rejects encrypted values."""

    def seal(self, data: bytes, context: DataContext) -> bytes:
        return data

    def open(self, data: bytes, context: DataContext) -> tuple[bytes, bool]:
        if data.startswith(ENCRYPTED):
            raise Unreadable(NOT_PLAIN)
        return data, False


class AesCbc:
    """AES-CBC: a random IV, then the blocks with PKCS#7 padding. The ciphertext is not authenticated."""

    def __init__(self, key: bytes) -> None:
        algorithm = algorithms.AES(key)

        def cipher(iv: bytes) -> Cipher[modes.CBC]:
            return Cipher(algorithm, modes.CBC(iv))

        self._cipher = cipher

    def seal(self, data: bytes, context: DataContext) -> bytes:
        iv = os.urandom(BLOCK)
        size = BLOCK - len(data) % BLOCK
        encryptor = self._cipher(iv).encryptor()
        return iv + encryptor.update(data + bytes([size]) * size) + encryptor.finalize()

    def open(self, data: bytes, context: DataContext) -> tuple[bytes, bool]:
        if len(data) < BLOCK:
            raise Unreadable(TOO_SHORT)
        if len(data) % BLOCK:
            raise Unreadable("the stored data is not a multiple of the block size")
        decryptor = self._cipher(data[:BLOCK]).decryptor()
        padded = decryptor.update(data[BLOCK:]) + decryptor.finalize()
        size = padded[-1] if padded else 0
        if not 0 < size <= len(padded):
            raise Unreadable("invalid PKCS7 data (empty or not padded)")
        if padded[-size:] != bytes([size]) * size:
            raise Unreadable("invalid padding on input")
        return padded[:-size], False


class AesGcm:
    """AES-GCM: a random nonce, then ciphertext and tag. The storage key is authenticated, so a value copied to
    another key is unreadable."""

    def __init__(self, key: bytes) -> None:
        self._invalid = InvalidTag
        self._cipher = AESGCM(key)

    def seal(self, data: bytes, context: DataContext) -> bytes:
        nonce = os.urandom(GCM_NONCE)
        return nonce + self._cipher.encrypt(nonce, data, context.key)

    def open(self, data: bytes, context: DataContext) -> tuple[bytes, bool]:
        if len(data) < GCM_NONCE:
            raise Unreadable(TOO_SHORT)
        try:
            return self._cipher.decrypt(data[:GCM_NONCE], data[GCM_NONCE:], context.key), False
        except self._invalid:
            raise Unreadable("cipher: message authentication failed") from None


class Secretbox:
    """Secretbox: a random nonce, then NaCl's box (XSalsa20 and Poly1305)."""

    def __init__(self, key: bytes) -> None:
        try:
            # Saves start-up time: PyNaCl is optional, and only this provider needs it.
            from nacl.exceptions import CryptoError
            from nacl.secret import SecretBox
        except ImportError:
            raise ValueError(
                "the provider secretbox needs PyNaCl: install kubist[secretbox], or use aescbc or aesgcm"
            ) from None
        self._invalid = CryptoError
        self._box = SecretBox(key)

    def seal(self, data: bytes, context: DataContext) -> bytes:
        return bytes(self._box.encrypt(data, os.urandom(BOX_NONCE)))

    def open(self, data: bytes, context: DataContext) -> tuple[bytes, bool]:
        if len(data) < BOX_NONCE + BOX_TAG:
            raise Unreadable(TOO_SHORT)
        try:
            return self._box.decrypt(data), False
        except self._invalid:
            raise Unreadable("output array was not large enough for encryption") from None


class Transformer(Protocol):
    """Encrypts and decrypts values."""

    def seal(self, data: bytes, context: DataContext) -> bytes: ...

    def open(self, data: bytes, context: DataContext) -> tuple[bytes, bool]:
        """Plain value, and whether it is stale: a write would use another key or provider. Raises `Unreadable`."""
        ...


class Choice:
    """Transformers selected by the prefix of the stored value: the first writes, all of them read.

    Used twice: for the providers of a resource, and for the keys of a provider. `otherwise` is the error message for a
    value that no prefix matches.
    """

    def __init__(self, options: Sequence[tuple[bytes, Transformer]], otherwise: str) -> None:
        self.options = list(options)
        self._otherwise = otherwise

    def seal(self, data: bytes, context: DataContext) -> bytes:
        prefix, transformer = self.options[0]
        began = time.perf_counter()
        sealed = transformer.seal(data, context)
        context.metrics.add(context.resource, "to_storage", prefix.decode(), began, ok=True)
        return prefix + sealed if prefix else sealed

    def open(self, data: bytes, context: DataContext) -> tuple[bytes, bool]:
        began = time.perf_counter()
        failures: list[str] = []
        for place, (prefix, transformer) in enumerate(self.options):
            if not data.startswith(prefix):
                continue
            label = prefix.decode() or "identity"
            try:
                opened, stale = transformer.open(data[len(prefix) :], context)
            except Unreadable as error:
                # Identity has an empty prefix, so it also sees values of other providers. One cipher may have
                # several providers.
                if prefix:
                    context.metrics.add(context.resource, "from_storage", label, began, ok=False)
                    failures.append(str(error))
                continue
            context.metrics.add(context.resource, "from_storage", label, began, ok=True)
            return opened, stale or place > 0
        if failures:
            reasons = list(dict.fromkeys(failures))
            raise Unreadable(reasons[0] if len(reasons) == 1 else f"[{', '.join(reasons)}]")
        context.metrics.add(context.resource, "from_storage", "unknown", began, ok=False)
        raise Unreadable(self._otherwise)
