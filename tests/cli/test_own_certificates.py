"""Certificates in `pki/`: Kubist renews those that it made, and never replaces those of the user."""

from __future__ import annotations

import datetime
from pathlib import Path

import pytest
from cryptography import x509

from kubist.api.config import Config
from kubist.base.http.tls.certificates import load_authority, new_authority, save
from kubist.errors import CertificateError
from kubist.server.runtime import pki
from tests.cli.processes import running

FILES = ("ca.crt", "ca.key", "apiserver.crt", "apiserver.key", "admin.crt", "admin.key")


@pytest.fixture
def place(tmp_path: Path) -> Path:
    """Directory `pki` of a data directory that has been used."""
    pki.prepare(Config(), tmp_path, in_memory=False)
    return tmp_path / "pki"


def prepare(place: Path, config: Config | None = None) -> None:
    pki.prepare(config or Config(), place.parent, in_memory=False)


def content(place: Path) -> dict[str, bytes]:
    return {path.name: path.read_bytes() for path in place.iterdir()}


def changed(place: Path, before: dict[str, bytes]) -> set[str]:
    after = content(place)
    return {name for name in FILES if after.get(name) != before.get(name)}


def names_of(place: Path) -> set[str]:
    certificate = x509.load_pem_x509_certificate((place / "apiserver.crt").read_bytes())
    names = certificate.extensions.get_extension_for_class(x509.SubjectAlternativeName).value
    return set(names.get_values_for_type(x509.DNSName)) | set(
        map(str, names.get_values_for_type(x509.IPAddress))
    )


def own(place: Path, names: list[str], days: int = 100) -> dict[str, bytes]:
    """Replaces the serving certificate by one of the user, and returns all files."""
    authority = load_authority(place / "ca.crt", place / "ca.key")
    save(authority.issue_server(names, days=days), place / "apiserver.crt", place / "apiserver.key")
    return content(place)


def refusal(place: Path, config: Config | None = None) -> str:
    """Error of a start, which must change nothing."""
    before = content(place)
    with pytest.raises(CertificateError) as caught:
        prepare(place, config)
    assert content(place) == before
    message = str(caught.value)
    assert "\n" not in message
    return message


def test_each_authority_has_a_name_of_its_own(place: Path) -> None:
    names = {
        path.stem: x509.load_pem_x509_certificate(path.read_bytes()).issuer.rfc4514_string()
        for path in place.glob("*.crt")
    }
    assert names == {
        "ca": "CN=kubist-ca",
        "apiserver": "CN=kubist-ca",
        "admin": "CN=kubist-ca",
        "front-proxy-ca": "CN=front-proxy-ca",
        "front-proxy-client": "CN=front-proxy-ca",
    }


def test_certificates_are_kept(place: Path) -> None:
    before = content(place)
    prepare(place)
    assert content(place) == before


def test_own_certificate_is_renewed_for_a_new_name(place: Path) -> None:
    before = content(place)
    prepare(place, Config(advertise_address="10.1.2.3"))
    assert "10.1.2.3" in names_of(place)
    assert changed(place, before) == {"apiserver.crt", "apiserver.key"}


def test_certificates_of_kubist_are_renewed_before_they_expire(
    place: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    before = content(place)
    monkeypatch.setattr(pki, "RENEWAL", datetime.timedelta(days=366))
    prepare(place)
    assert changed(place, before) == {"apiserver.crt", "apiserver.key", "admin.crt", "admin.key"}


@pytest.mark.parametrize("lost", ["apiserver.crt", "apiserver.key", "admin.crt", "admin.key"])
def test_lost_file_of_kubist_is_made_again_with_its_partner(place: Path, lost: str) -> None:
    before = content(place)
    (place / lost).unlink()
    prepare(place)
    name = lost.partition(".")[0]
    assert changed(place, before) == {f"{name}.crt", f"{name}.key"}


def test_lost_authority_of_kubist_is_made_again_with_all_certificates(place: Path) -> None:
    before = content(place)
    (place / "ca.key").unlink()
    prepare(place)
    assert changed(place, before) == set(FILES)


def test_certificate_of_the_user_is_served(place: Path) -> None:
    before = own(place, [*names_of(place), "my.example"], days=3)
    prepare(place)
    assert content(place) == before


def test_certificate_of_the_user_without_a_name_stops_the_start(place: Path) -> None:
    own(place, sorted(names_of(place) - {"kubernetes.default"}))
    assert refusal(place) == (
        f"{place}/apiserver.crt and {place}/apiserver.key cannot be used: the certificate lacks the name "
        "kubernetes.default. Kubist did not make them: replace both files, or delete both so that Kubist makes its own"
    )
    own(place, ["my.example"])
    assert "the certificate lacks the names localhost, 127.0.0.1, ::1, " in refusal(place)


def test_expired_certificate_of_the_user_stops_the_start(place: Path) -> None:
    own(place, sorted(names_of(place)), days=0)
    assert "the certificate has expired. Kubist did not make them" in refusal(place)


def test_certificate_of_the_user_without_its_key_stops_the_start(place: Path) -> None:
    own(place, sorted(names_of(place)))
    (place / "apiserver.key").unlink()
    assert "the key is missing" in refusal(place)


def test_certificate_without_names_stops_the_start(place: Path) -> None:
    admin = load_authority(place / "ca.crt", place / "ca.key").issue_client("me", days=9)
    save(admin, place / "apiserver.crt", place / "apiserver.key")
    assert "the certificate lacks the names" in refusal(place)


def test_authority_of_the_user_issues_the_certificates(tmp_path: Path) -> None:
    place = tmp_path / "pki"
    new_authority("mine").save(place / "ca.crt", place / "ca.key")
    before = content(place)
    prepare(place)
    assert changed(place, before) == {"apiserver.crt", "apiserver.key", "admin.crt", "admin.key"}


def test_authority_of_the_user_without_its_key_stops_the_start(tmp_path: Path) -> None:
    place = tmp_path / "pki"
    new_authority("mine").save(place / "ca.crt", place / "ca.key")
    (place / "ca.key").unlink()
    assert refusal(place) == (
        f"{place}/ca.crt cannot be used: its key {place}/ca.key is missing. Kubist did not make it: add the key, or "
        "delete the certificate so that Kubist makes its own"
    )


def test_serve_names_the_files_and_the_remedy(place: Path) -> None:
    own(place, ["my.example"])
    with running(place.parent, "serve", f"--data-dir={place.parent}", "--secure-port=0") as server:
        assert server.process.wait(60) == 1
        (line,) = server.output.splitlines()
    assert line.startswith(
        f"kubist: --data-dir: {place}/apiserver.crt and {place}/apiserver.key cannot be used: "
    )
    assert line.endswith("replace both files, or delete both so that Kubist makes its own")
