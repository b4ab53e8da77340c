"""Path validation of client certificates: trusted and rejected chains."""

from __future__ import annotations

import datetime
import random
import subprocess
import time
from collections.abc import Callable
from pathlib import Path

import pytest
from cryptography import x509
from cryptography.hazmat.primitives import hashes, serialization
from cryptography.hazmat.primitives.asymmetric import ec, ed25519, rsa
from cryptography.x509.oid import ExtendedKeyUsageOID

from kubist.api.filters.authentication.chains import MAX_SIGNATURES, Certificate, NotTrusted, Roots
from tests import programs
from tests.filters.certs import Made, authority, key_usage, make

_PEM = serialization.Encoding.PEM
ROOT = authority("root")
MIDDLE = authority("middle", ROOT)
NAMES = (x509.SubjectAlternativeName([x509.DNSName("a.example")]), False)
CONSTRAINED = x509.NameConstraints([x509.DNSName("example.com")], None)
UNKNOWN = x509.UnrecognizedExtension(x509.ObjectIdentifier("1.2.3.4"), b"\x05\x00")


def trusted(roots: list[Made], chain: list[bytes]) -> str:
    """Empty if the chain is trusted, else the reason."""
    try:
        Roots([root.der for root in roots]).verify(chain, time.time())
    except NotTrusted as error:
        return str(error)
    return ""


Case = Callable[[], tuple[list[Made], list[bytes]]]


def below(issuer: Made) -> tuple[list[Made], list[bytes]]:
    return [ROOT], make("jane", issuer).chain


def rooted(root: Made) -> tuple[list[Made], list[bytes]]:
    return [root], make("jane", root).chain


ACCEPTED: dict[str, Case] = {
    "issued by the root": lambda: below(ROOT),
    "issued by an intermediate": lambda: below(MIDDLE),
    "two intermediates": lambda: below(authority("lower", MIDDLE)),
    "intermediate is the anchor": lambda: ([MIDDLE], make("jane", MIDDLE).chain[:1]),
    "leaf is the anchor": lambda: (lambda leaf: ([leaf], leaf.chain))(make("jane", ROOT)),
    "self-signed leaf is the anchor": lambda: (lambda leaf: ([leaf], leaf.chain))(make("jane")),
    "no purpose": lambda: ([ROOT], make("jane", ROOT, usages=()).chain),
    "any purpose": lambda: (
        [ROOT],
        make("jane", ROOT, usages=[ExtendedKeyUsageOID.ANY_EXTENDED_KEY_USAGE]).chain,
    ),
    "only key encipherment": lambda: (
        [ROOT],
        make("jane", ROOT, extensions=[(key_usage(key_encipherment=True), True)]).chain,
    ),
    "alternative names": lambda: ([ROOT], make("jane", ROOT, extensions=[NAMES]).chain),
    "unknown extension": lambda: ([ROOT], make("jane", ROOT, extensions=[(UNKNOWN, False)]).chain),
    "Ed25519": lambda: rooted(authority("ed", key=ed25519.Ed25519PrivateKey.generate())),
    "RSA": lambda: rooted(authority("rsa", key=rsa.generate_private_key(65537, 2048))),
    "P-384 with SHA-384": lambda: (
        [ROOT],
        make("jane", ROOT, key=ec.generate_private_key(ec.SECP384R1()), hash_algorithm=hashes.SHA384()).chain,
    ),
    "path length is enough": lambda: below(authority("short", ROOT, path_length=0)),
    "root for signing certificates": lambda: rooted(
        authority("signs", extensions=[(key_usage(key_cert_sign=True), True)])
    ),
    "constrained root, no names": lambda: rooted(authority("c", extensions=[(CONSTRAINED, True)])),
    "useless certificates in the chain": lambda: (
        [ROOT],
        [*make("jane", ROOT).chain, authority("other").der, b"garbage"],
    ),
    "two anchors of one name": lambda: ([authority("root"), ROOT], make("jane", ROOT).chain),
}

REJECTED: dict[str, tuple[Case, str]] = {
    "unknown authority": (lambda: ([ROOT], make("jane", authority("other")).chain), "unknown authority"),
    "authority of the same name": (lambda: ([ROOT], make("jane", authority("root")).chain), "unknown auth"),
    "self-signed": (lambda: ([ROOT], make("jane").chain), "unknown authority"),
    "no anchors": (lambda: ([], make("jane", ROOT).chain), "unknown authority"),
    "missing intermediate": (lambda: ([ROOT], make("jane", MIDDLE).chain[:1]), "unknown authority"),
    "root in the chain is no anchor": (
        lambda: (lambda other: ([ROOT], [*make("jane", other).chain, other.der]))(authority("other")),
        "unknown authority",
    ),
    "leaf signs": (lambda: below(make("mallory", ROOT)), "unknown authority"),
    "leaf without constraints signs": (lambda: below(make("mallory", ROOT, ca=None)), "unknown authority"),
    "anchored leaf signs": (
        lambda: (lambda leaf: ([leaf], make("jane", leaf).chain))(make("mallory", ROOT)),
        "unknown authority",
    ),
    "expired": (lambda: ([ROOT], make("jane", ROOT, ends=-1).chain), "expired"),
    "not yet valid": (lambda: ([ROOT], make("jane", ROOT, starts=60).chain), "not yet valid"),
    "expired intermediate": (lambda: below(authority("old", ROOT, ends=-1)), "unknown authority"),
    "expired root": (lambda: rooted(authority("old", ends=-1)), "unknown authority"),
    "server only": (
        lambda: ([ROOT], make("jane", ROOT, usages=[ExtendedKeyUsageOID.SERVER_AUTH]).chain),
        "key usage",
    ),
    "anchored leaf for servers only": (
        lambda: (lambda leaf: ([leaf], leaf.chain))(make("a", usages=[ExtendedKeyUsageOID.SERVER_AUTH])),
        "key usage",
    ),
    "intermediate for servers only": (
        lambda: below(authority("web", ROOT, usages=[ExtendedKeyUsageOID.SERVER_AUTH])),
        "unknown authority",
    ),
    "path too long": (
        lambda: below(authority("lower", authority("short", ROOT, path_length=0))),
        "unknown authority",
    ),
    "authority may not sign certificates": (
        lambda: below(authority("crl", ROOT, extensions=[(key_usage(crl_sign=True), True)])),
        "unknown authority",
    ),
    "unknown critical extension": (
        lambda: ([ROOT], make("jane", ROOT, extensions=[(UNKNOWN, True)]).chain),
        "critical extension 1.2.3.4",
    ),
    "critical extension of an intermediate": (
        lambda: below(authority("odd", ROOT, extensions=[(UNKNOWN, True)])),
        "unknown authority",
    ),
    "names under constraints": (
        lambda: (lambda root: ([root], make("jane", root, extensions=[NAMES]).chain))(
            authority("c", extensions=[(CONSTRAINED, True)])
        ),
        "unknown authority",
    ),
    "signature by another key": (
        lambda: ([ROOT], make("jane", ROOT, signer=authority("x").key).chain),
        "unknown authority",
    ),
    "garbage": (lambda: ([ROOT], [b"garbage"]), "malformed"),
}


@pytest.mark.parametrize("case", ACCEPTED)
def test_trusted_certificates(case: str) -> None:
    assert trusted(*ACCEPTED[case]()) == ""


@pytest.mark.parametrize("case", REJECTED)
def test_rejected_certificates(case: str) -> None:
    make_case, reason = REJECTED[case]
    assert reason in trusted(*make_case())


def test_verdict_holds_until_the_first_certificate_of_the_path_expires() -> None:
    middle = authority("middle", ROOT, ends=100)
    leaf = make("jane", middle, ends=2000)
    _, until = Roots([ROOT.der]).verify(leaf.chain, time.time())
    assert until == middle.certificate.not_valid_after_utc.timestamp()


OPENSSL_DIFFERS = (
    "any purpose",
    "only key encipherment",
    "two anchors of one name",
    "names under constraints",
    "no anchors",
    "garbage",
)
"""Go accepts the first three. We reject names under constraints without comparing them."""


def openssl(*arguments: str, cwd: Path) -> subprocess.CompletedProcess[bytes]:
    return subprocess.run(["openssl", *arguments], cwd=cwd, capture_output=True, check=False, timeout=20)


def issue_with_openssl(directory: Path, bits: int, digest: str) -> bytes:
    """Client certificate of X.509 version 1 (DER), as many guides create it."""
    (directory / "root.crt").write_bytes(ROOT.pem)
    (directory / "root.key").write_bytes(ROOT.pair.key_pem)
    request = f"req -new -nodes -newkey rsa:{bits} -keyout leaf.key -out leaf.csr -subj /CN=old"
    sign = f"x509 -req -in leaf.csr -CA root.crt -CAkey root.key -CAcreateserial -{digest} -days 1"
    sign += " -out leaf.crt -outform DER"
    # Newer releases of OpenSSL make version 3, unless another command asks for version 1 in a configuration without
    # extensions.
    (directory / "plain.cnf").write_text("[req]\ndistinguished_name = name\n[name]\n")
    again = f"req -x509 -x509v1 -config plain.cnf -CA root.crt -CAkey root.key {request.removeprefix('req ')}"
    again = f"{again.replace('leaf.csr', 'leaf.crt')} -outform DER -{digest} -days 1"
    for command in (request, sign, again):
        done = openssl(*command.split(), cwd=directory)
        assert done.returncode == 0, done.stderr
        if command == sign and x509.load_der_x509_certificate(_leaf(directory)).version is x509.Version.v1:
            break
    return _leaf(directory)


def _leaf(directory: Path) -> bytes:
    return (directory / "leaf.crt").read_bytes()


@programs.needs("openssl")
def test_x509_version_1_ca_is_trusted(tmp_path: Path) -> None:
    der = issue_with_openssl(tmp_path, 2048, "sha256")
    assert x509.load_der_x509_certificate(der).version is x509.Version.v1
    assert trusted([ROOT], [der]) == ""


@programs.needs("openssl")
@pytest.mark.parametrize(("bits", "digest"), [(2048, "sha1"), (512, "sha256")])
def test_weak_signatures_and_short_keys_are_rejected(tmp_path: Path, bits: int, digest: str) -> None:
    assert trusted([ROOT], [issue_with_openssl(tmp_path, bits, digest)]) != ""


@programs.needs("openssl")
@pytest.mark.parametrize("case", [case for case in (*ACCEPTED, *REJECTED) if case not in OPENSSL_DIFFERS])
def test_verdicts_agree_with_openssl(case: str, tmp_path: Path) -> None:
    roots, chain = ACCEPTED[case]() if case in ACCEPTED else REJECTED[case][0]()
    pem = [x509.load_der_x509_certificate(der).public_bytes(_PEM) for der in chain if der != b"garbage"]
    (tmp_path / "roots").write_bytes(b"".join(root.pem for root in roots))
    (tmp_path / "leaf").write_bytes(pem[0])
    (tmp_path / "others").write_bytes(b"".join(pem[1:]))
    others = ["-untrusted", "others"] if pem[1:] else []
    done = openssl(
        "verify", "-partial_chain", "-purpose", "sslclient", "-CAfile", "roots", "-no-CApath", *others, "leaf",
        cwd=tmp_path,
    )  # fmt: skip
    assert (done.returncode == 0) is (case in ACCEPTED), done.stderr


def test_malformed_certificates_are_rejected_without_other_errors() -> None:
    """Every byte of a certificate comes from the client."""
    der = make("jane", ROOT, extensions=[NAMES, (key_usage(digital_signature=True), True)]).der
    roots, chance = Roots([ROOT.der]), random.Random(1)
    for _ in range(2000):
        damaged = bytearray(der)
        for _ in range(chance.randint(1, 3)):
            damaged[chance.randrange(len(damaged))] = chance.randrange(256)
        if bytes(damaged) != der:
            with pytest.raises(NotTrusted):
                roots.verify([bytes(damaged)], time.time())


def test_signature_checks_are_limited(monkeypatch: pytest.MonkeyPatch) -> None:
    """A client may send many certificates of one name."""
    decoys = [authority("middle", ROOT).der for _ in range(60)]
    leaf = make("jane", authority("middle", authority("far", ROOT)))
    checks = 0
    original = Certificate.signed_by

    def count(self: Certificate, issuer: Certificate) -> bool:
        nonlocal checks
        checks += 1
        return original(self, issuer)

    monkeypatch.setattr(Certificate, "signed_by", count)
    assert trusted([ROOT], [leaf.der, *decoys]) != ""
    assert 0 < checks <= MAX_SIGNATURES


def test_certificate_validity_times_are_inclusive() -> None:
    leaf = make("jane", ROOT)
    end = leaf.certificate.not_valid_after_utc
    roots = Roots([authority("root", key=ROOT.key, ends=10**6).der])
    roots.verify(leaf.chain, end.timestamp())
    with pytest.raises(NotTrusted):
        roots.verify(leaf.chain, (end + datetime.timedelta(seconds=0.5)).timestamp())
