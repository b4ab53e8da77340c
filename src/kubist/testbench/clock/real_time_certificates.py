"""Client certificates that are checked by real time while the clock of a server is moved.

Without them, a move of the clock by a year would lock the administrator out: nobody could move it back.
"""

from __future__ import annotations

from pathlib import Path

from kubist.api.config import Config
from kubist.api.filters.authentication.authentication import ClientCertificates
from kubist.api.filters.authentication.client_ca import ClientCA, Rejected
from kubist.api.resources.context import User
from kubist.base.clock import CURRENT, SYSTEM
from kubist.base.http.messages import Request
from kubist.base.http.tls.contexts import read_certificates

CONTROL = "/kubist/v1/"


class RealTimeCertificates:
    """Accepts by real time the certificate that the server made for its administrator, and on the control API every
    client certificate. It leaves other requests to the next authenticator."""

    def __init__(self, config: Config) -> None:
        self._inner = ClientCertificates(ClientCA(config.client_ca_file))
        own = Path(config.cert_dir) / "admin.crt" if config.cert_dir else None
        self._own = read_certificates(str(own))[0] if own is not None and own.exists() else b""

    def user(self, request: Request) -> User | Rejected | None:
        chain = request.peer_certificates
        if not chain or not (chain[0] == self._own or request.path.startswith(CONTROL)):
            return None
        before = CURRENT.set(SYSTEM)
        try:
            return self._inner.user(request)
        finally:
            CURRENT.reset(before)
