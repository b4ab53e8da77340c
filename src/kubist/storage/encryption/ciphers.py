"""Ciphers with one key each: AES-CBC, AES-GCM, secretbox and identity (no encryption).

The stored bytes have kube-apiserver's format. Each cipher imports its library in its constructor, so a server
without encryption does not load it.
"""

from __future__ import annotations

import os

from cryptography.exceptions import InvalidTag
from cryptography.hazmat.primitives.ciphers import Cipher, algorithms, modes
from cryptography.hazmat.primitives.ciphers.aead import AESGCM

from kubist.storage.encryption.sealed import ENCRYPTED, NOT_PLAIN, Unreadable
from kubist.storage.encryption.tally import DataContext

BLOCK = 16
GCM_NONCE = 12
BOX_NONCE = 24
BOX_TAG = 16
TOO_SHORT = "the stored data was shorter than the required size"


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
