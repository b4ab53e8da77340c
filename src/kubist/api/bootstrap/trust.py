"""Data of the ConfigMap `extension-apiserver-authentication`: how extension API servers recognize users.

An extension server reads there the CA of client certificates, and the CA, common names and headers of front proxies. A
kube-apiserver is the front proxy of the requests that it forwards. Servers with different flags share one ConfigMap, so
each adds its own values to the others' values.
"""

from __future__ import annotations

import datetime
import json
import ssl
from collections.abc import Iterable, Mapping
from typing import TYPE_CHECKING, NamedTuple

from kubist.base import clock
from kubist.base.http.tls import pem
from kubist.base.http.tls.contexts import read_certificates
from kubist.model import feature_gates

if TYPE_CHECKING:
    from kubist.api.config import Config

TRUST = "extension-apiserver-authentication"
CLIENT_CA, PROXY_CA = "client-ca-file", "requestheader-client-ca-file"
UID_HEADERS = "requestheader-uid-headers"
_LISTS = (
    "requestheader-allowed-names",
    "requestheader-extra-headers-prefix",
    "requestheader-group-headers",
    UID_HEADERS,
    "requestheader-username-headers",
)
_SLACK = 300.0
"""Seconds for which an expired certificate stays published."""


class Trust(NamedTuple):
    """CAs of clients and of front proxies (DER), and the lists of the `--requestheader-*` flags by their keys."""

    clients: tuple[bytes, ...]
    proxies: tuple[bytes, ...]
    lists: dict[str, list[str]]

    @classmethod
    def of_config(cls, config: Config) -> Trust:
        """Values of this server. Without `--requestheader-client-ca-file` the other flags have no effect. Raises
        OSError or ValueError if a file has no certificate."""
        clients = read_certificates(config.client_ca_file) if config.client_ca_file else ()
        if not config.requestheader_client_ca_file:
            return cls(tuple(clients), (), {})
        lists = {key: list(getattr(config, key.replace("-", "_"))) for key in _LISTS}
        if not feature_gates.enabled(config.feature_gates, "RemoteRequestHeaderUID"):
            del lists[UID_HEADERS]
        return cls(tuple(clients), tuple(read_certificates(config.requestheader_client_ca_file)), lists)

    @classmethod
    def of_data(cls, data: Mapping[str, str]) -> Trust:
        """Values that are already published. Raises ValueError if they cannot be read."""
        lists = {key: json.loads(data[key]) or [] for key in _LISTS if data.get(key)}
        for key, values in lists.items():
            if not isinstance(values, list) or not all(isinstance(value, str) for value in values):
                raise ValueError(f"{key} is not a list of strings")
        return cls(_certificates(data, CLIENT_CA), _certificates(data, PROXY_CA), lists)

    def combined(self, other: Trust) -> Trust:
        """Union of both, with this object's values first."""
        lists = {
            key: [*dict.fromkeys((*self.lists.get(key, ()), *other.lists.get(key, ())))] for key in _LISTS
        }
        return Trust((*self.clients, *other.clients), (*self.proxies, *other.proxies), lists)

    def data(self) -> dict[str, str]:
        """Data of the ConfigMap, without expired certificates. Without a front-proxy CA the lists are omitted."""
        clients, proxies = _bundle(self.clients), _bundle(self.proxies)
        data = {CLIENT_CA: clients} if clients else {}
        if proxies:
            data[PROXY_CA] = proxies
            for key in _LISTS:
                values = self.lists.get(key, [])
                if values or key != UID_HEADERS:
                    data[key] = _json(values)
        return dict(sorted(data.items()))


def _certificates(data: Mapping[str, str], key: str) -> tuple[bytes, ...]:
    text = data.get(key, "")
    certificates = tuple(pem.certificates(text.encode()))
    if text and not certificates:
        raise ValueError(f"{key} has no certificate")
    return certificates


def _bundle(certificates: Iterable[bytes]) -> str:
    now = clock.now() - _SLACK
    return "".join(
        ssl.DER_cert_to_PEM_cert(der) for der in dict.fromkeys(certificates) if _not_after(der) > now
    )


def _json(values: list[str]) -> str:
    """JSON list as Go encodes it: compact, with HTML special characters escaped."""
    text = json.dumps(values, ensure_ascii=False, separators=(",", ":"))
    return text.translate({ord(char): f"\\u{ord(char):04x}" for char in "<>&\u2028\u2029"})


def _not_after(der: bytes) -> float:
    """Expiry time of a certificate. Parsed without `cryptography`, because importing its X.509 classes takes longer
    than all other work on the ConfigMap."""
    try:
        at, _ = _content(der, 0)  # Certificate
        at, _ = _content(der, at)  # TBSCertificate
        if der[at] == 0xA0:
            _, at = _content(der, at)  # version
        for _field in ("serialNumber", "signature", "issuer"):
            _, at = _content(der, at)
        at, _ = _content(der, at)  # validity
        _, at = _content(der, at)  # notBefore
        start, end = _content(der, at)
        text = der[start:end].decode()
        if der[at] == 0x17:  # UTCTime has two digits of the year.
            text = ("19" if text >= "5" else "20") + text
        return datetime.datetime.strptime(text, "%Y%m%d%H%M%SZ").replace(tzinfo=datetime.UTC).timestamp()
    except (IndexError, ValueError):
        raise ValueError("a certificate cannot be read") from None


def _content(der: bytes, at: int) -> tuple[int, int]:
    """Start and end of the content of the DER element at a position."""
    length, start = der[at + 1], at + 2
    if length & 0x80:
        size = length & 0x7F
        length, start = int.from_bytes(der[start : start + size], "big"), start + size
    return start, start + length
