"""Key files accept and reject the blocks that client-go's keyutil accepts and rejects."""

from __future__ import annotations

import base64
from pathlib import Path

import pytest
from cryptography.hazmat.primitives import serialization
from cryptography.hazmat.primitives.asymmetric import dsa, ec, ed25519, rsa

from kubist.api.filters.authentication.key_files import (
    PrivateKey,
    PublicKey,
    read_private_key,
    read_public_keys,
)
from kubist.api.filters.authentication.tokens import key_id
from kubist.base.http.tls import pem
from kubist.base.http.tls.certificates import new_authority

PEM = serialization.Encoding.PEM
PLAIN = serialization.NoEncryption()
RSA = rsa.generate_private_key(public_exponent=65537, key_size=2048)
EC = ec.generate_private_key(ec.SECP256R1())
P224 = ec.generate_private_key(ec.SECP224R1())
UNNAMED = ec.generate_private_key(ec.SECP256K1())
ED = ed25519.Ed25519PrivateKey.generate()
DSA = dsa.generate_private_key(1024)
PARAMETERS = b"-----BEGIN EC PARAMETERS-----\nBggqhkjOPQMBBw==\n-----END EC PARAMETERS-----\n"
OTHER = b"-----BEGIN NOTE-----\nbm90ZQ==\n-----END NOTE-----\n"


def private(key: PrivateKey | ed25519.Ed25519PrivateKey | dsa.DSAPrivateKey, *, pkcs8: bool) -> bytes:
    form = serialization.PrivateFormat
    return key.private_bytes(PEM, form.PKCS8 if pkcs8 else form.TraditionalOpenSSL, PLAIN)


def public(key: PrivateKey | ed25519.Ed25519PrivateKey, *, pkcs1: bool = False) -> bytes:
    form = serialization.PublicFormat
    return key.public_key().public_bytes(PEM, form.PKCS1 if pkcs1 else form.SubjectPublicKeyInfo)


def certificate() -> tuple[bytes, str]:
    """Certificate, and the ID of its key."""
    pair = new_authority("ca").issue_server(["localhost"])
    key = serialization.load_pem_private_key(pair.key_pem, None)
    assert isinstance(key, ec.EllipticCurvePrivateKey)
    return pair.cert_pem, key_id(key.public_key())


def ids(*keys: PublicKey | PrivateKey) -> list[str]:
    return [key_id(key if isinstance(key, PublicKey) else key.public_key()) for key in keys]


def found(tmp_path: Path, content: bytes) -> list[str]:
    (tmp_path / "keys.pem").write_bytes(content)
    return ids(*read_public_keys(str(tmp_path / "keys.pem")))


@pytest.mark.parametrize(
    ("content", "keys"),
    [
        (public(RSA), [RSA]),
        (public(EC), [EC]),
        (public(P224), [P224]),
        (private(RSA, pkcs8=False), [RSA]),
        (private(RSA, pkcs8=True), [RSA]),
        (private(EC, pkcs8=False), [EC]),
        (PARAMETERS + private(EC, pkcs8=False), [EC]),
        (public(RSA) + OTHER + public(EC), [RSA, EC]),
        (public(RSA).replace(b"PUBLIC KEY", b"SOMETHING ELSE"), [RSA]),
        (b"first line\n" + public(RSA) + b"last line", [RSA]),
        (public(RSA).replace(b"\n", b"\r\n"), [RSA]),
        (public(RSA).replace(b"KEY-----\n", b"KEY-----\nNote: text\n\n", 1), [RSA]),
        (b"-----BEGIN PUBLIC KEY-----\n" + public(RSA), [RSA]),
        (private(EC, pkcs8=True) + public(RSA), [RSA]),
        (private(ED, pkcs8=True) + public(ED) + public(EC), [EC]),
        (public(RSA, pkcs1=True) + private(DSA, pkcs8=False) + public(UNNAMED) + public(EC), [EC]),
        (public(RSA)[:-20] + b"\n" + public(EC), [EC]),
    ],
)
def test_keys_of_all_usable_blocks_are_read(tmp_path: Path, content: bytes, keys: list[PrivateKey]) -> None:
    assert found(tmp_path, content) == ids(*keys)


def block(label: str, der: bytes) -> bytes:
    return f"-----BEGIN {label}-----\n{base64.encodebytes(der).decode()}-----END {label}-----\n".encode()


def content(text: bytes) -> bytes:
    """DER of the first block."""
    return next(pem.blocks(text)).content


def with_other_public_key(der: bytes) -> bytes:
    """Private ECDSA key whose file has the public key of another key."""
    own, other = (
        key.public_key().public_bytes(
            serialization.Encoding.X962, serialization.PublicFormat.UncompressedPoint
        )
        for key in (EC, ec.generate_private_key(ec.SECP256R1()))
    )
    assert own in der
    return der.replace(own, other)


@pytest.mark.parametrize(
    ("text", "key"),
    [
        (block("EC PRIVATE KEY", content(private(EC, pkcs8=False)) + b"\0"), EC),
        (block("EC PRIVATE KEY", with_other_public_key(content(private(EC, pkcs8=False)))), EC),
        (block("PRIVATE KEY", content(private(RSA, pkcs8=True)) + b"\0"), RSA),
    ],
)
def test_data_that_go_ignores_is_ignored(tmp_path: Path, text: bytes, key: PrivateKey) -> None:
    assert found(tmp_path, text) == ids(key)
    assert ids(read_private_key(str(tmp_path / "keys.pem"))) == ids(key)


def test_data_after_a_pkcs1_key_makes_it_invalid(tmp_path: Path) -> None:
    text = block("RSA PRIVATE KEY", content(private(RSA, pkcs8=False)) + b"\0")
    assert found(tmp_path, text + public(EC)) == ids(EC)


def test_certificate_with_two_signature_algorithms_is_ignored(tmp_path: Path) -> None:
    der = content(certificate()[0])
    algorithm = bytes.fromhex("06082a8648ce3d040302")
    assert der.count(algorithm) == 2
    other = der.replace(algorithm, bytes.fromhex("06082a8648ce3d040303"), 1)
    assert found(tmp_path, block("CERTIFICATE", other) + public(EC)) == ids(EC)


def test_signing_key_file_that_begins_with_an_ed25519_key_is_an_error(tmp_path: Path) -> None:
    (tmp_path / "signing.pem").write_bytes(private(ED, pkcs8=True) + private(RSA, pkcs8=True))
    with pytest.raises(ValueError, match=r"signing\.pem contains no valid RSA or ECDSA private key"):
        read_private_key(str(tmp_path / "signing.pem"))


def test_certificate_gives_its_public_key(tmp_path: Path) -> None:
    text, identity = certificate()
    assert found(tmp_path, text + public(RSA)) == [identity, *ids(RSA)]


@pytest.mark.parametrize(
    "content",
    [
        b"",
        b"no key at all",
        OTHER,
        private(EC, pkcs8=True),
        public(RSA, pkcs1=True),
        public(ED),
        public(UNNAMED),
        private(UNNAMED, pkcs8=False),
        b"text before " + public(RSA),
        public(RSA).replace(b"END PUBLIC", b"END PRIVATE"),
        public(RSA).replace(b"MII", b"!!!"),
    ],
)
def test_file_without_a_usable_key_is_an_error(tmp_path: Path, content: bytes) -> None:
    with pytest.raises(ValueError, match=r"keys\.pem contains no valid RSA or ECDSA public key"):
        found(tmp_path, content)


@pytest.mark.parametrize(
    ("content", "key"),
    [
        (private(RSA, pkcs8=False), RSA),
        (private(RSA, pkcs8=True), RSA),
        (private(EC, pkcs8=True), EC),
        (PARAMETERS + private(EC, pkcs8=False), EC),
        (public(EC) + private(RSA, pkcs8=True) + private(EC, pkcs8=True), RSA),
        (private(RSA, pkcs8=True).replace(b"PRIVATE KEY", b"RSA PRIVATE KEY") + private(EC, pkcs8=True), EC),
    ],
)
def test_first_private_key_of_a_signing_key_file_is_used(
    tmp_path: Path, content: bytes, key: PrivateKey
) -> None:
    (tmp_path / "signing.pem").write_bytes(content)
    assert ids(read_private_key(str(tmp_path / "signing.pem"))) == ids(key)


def altered(**changes: int) -> bytes:
    """The RSA key in PKCS#1 form with other numbers."""
    numbers = RSA.private_numbers()
    public = numbers.public_numbers
    values = {"n": public.n, "e": public.e, "d": numbers.d, "p": numbers.p, "q": numbers.q}
    values |= {"dmp1": numbers.dmp1, "dmq1": numbers.dmq1, "iqmp": numbers.iqmp} | changes
    content = b"".join(integer(number) for number in (0, *values.values()))
    der = b"\x30\x82" + len(content).to_bytes(2, "big") + content
    return b"-----BEGIN RSA PRIVATE KEY-----\n" + base64.encodebytes(der) + b"-----END RSA PRIVATE KEY-----\n"


def integer(number: int) -> bytes:
    """DER of a number."""
    content = number.to_bytes(number.bit_length() // 8 + 1, "big")
    size = len(content).to_bytes(1 + (len(content) > 255), "big")
    return b"\x02" + (size if len(content) < 128 else bytes([0x80 + len(size)]) + size) + content


def test_signing_key_file_without_a_private_key_is_an_error(tmp_path: Path) -> None:
    (tmp_path / "signing.pem").write_bytes(public(RSA))
    with pytest.raises(ValueError, match=r"signing\.pem contains no valid RSA or ECDSA private key"):
        read_private_key(str(tmp_path / "signing.pem"))


def test_unchanged_numbers_are_a_valid_signing_key(tmp_path: Path) -> None:
    (tmp_path / "signing.pem").write_bytes(altered())
    assert ids(read_private_key(str(tmp_path / "signing.pem"))) == ids(RSA)


NUMBERS = RSA.private_numbers()


@pytest.mark.parametrize(
    "changes",
    [
        {"n": NUMBERS.public_numbers.n + 2},
        {"e": 65539},
        {"e": 65537 + (NUMBERS.p - 1) * (NUMBERS.q - 1)},
        {"d": NUMBERS.d + 2},
        {"p": NUMBERS.p + 2},
        {"p": 1, "q": NUMBERS.public_numbers.n},
        {"p": NUMBERS.q, "q": NUMBERS.p},
        {"dmp1": NUMBERS.dmp1 + 2},
        {"dmq1": NUMBERS.dmq1 + 2},
        {"iqmp": NUMBERS.iqmp + 1},
    ],
)
def test_rsa_key_with_numbers_that_do_not_fit_is_ignored(tmp_path: Path, changes: dict[str, int]) -> None:
    (tmp_path / "keys.pem").write_bytes(altered(**changes) + private(EC, pkcs8=False))
    assert ids(read_private_key(str(tmp_path / "keys.pem"))) == ids(EC)
    assert found(tmp_path, altered(**changes) + public(EC)) == ids(EC)


def test_block_that_only_begins_like_a_certificate_is_ignored(tmp_path: Path) -> None:
    text, identity = certificate()
    content = next(pem.blocks(text)).content
    broken = [content[:-1], content + b"\0", content[:200], content.replace(b"\x06\x07", b"\x07\x06", 1)]
    blocks = [
        b"-----BEGIN CERTIFICATE-----\n" + base64.encodebytes(der) + b"-----END CERTIFICATE-----\n"
        for der in broken
    ]
    assert found(tmp_path, b"".join(blocks) + text) == [identity]
