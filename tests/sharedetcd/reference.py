"""A real kube-apiserver for tests that compare or share an etcd with it. Tests skip where there is no binary."""

from __future__ import annotations

import ssl
import subprocess
import time
import urllib.error
import urllib.request
from pathlib import Path
from typing import Any

from cryptography.hazmat.primitives import serialization
from cryptography.hazmat.primitives.asymmetric import rsa

from kubist.api.config import Config
from tests import programs
from tests.live import Client, Pki
from tests.storage.etcd_server import free_port

ADDRESS = "192.0.2.11"
"""The reference's address in the endpoints of the Service kubernetes; nobody connects to it."""
START_SECONDS = 90.0


class SharedPki(Pki):
    """A Pki with a signing key of service accounts in a form that both servers read."""

    def __init__(self, directory: Path) -> None:
        super().__init__(directory)
        key = rsa.generate_private_key(public_exponent=65537, key_size=2048)
        pem = serialization.Encoding.PEM
        private = serialization.PrivateFormat.PKCS8
        self.path("sa.key").write_bytes(key.private_bytes(pem, private, serialization.NoEncryption()))
        public = serialization.PublicFormat.SubjectPublicKeyInfo
        self.path("sa.pub").write_bytes(key.public_key().public_bytes(pem, public))

    def config(self, **changes: Any) -> Config:
        keys = {
            "service_account_signing_key_file": str(self.path("sa.key")),
            "service_account_key_file": (str(self.path("sa.pub")),),
        }
        return super().config(**{**keys, **changes})


class Reference:
    """One kube-apiserver on an etcd, with the certificates, tokens and signing key of `pki`."""

    def __init__(self, pki: Pki, etcd: str, directory: Path, *options: str) -> None:
        self.port = free_port()
        self.log = directory / "kube-apiserver.log"
        self._pki = pki
        self._command = [
            programs.path_of("kube-apiserver"),
            f"--etcd-servers={etcd}",
            "--bind-address=127.0.0.1",
            f"--secure-port={self.port}",
            f"--advertise-address={ADDRESS}",
            f"--tls-cert-file={pki.path('tls.crt')}",
            f"--tls-private-key-file={pki.path('tls.key')}",
            f"--client-ca-file={pki.path('ca.crt')}",
            f"--token-auth-file={pki.path('tokens.csv')}",
            "--authorization-mode=RBAC",
            "--disable-admission-plugins=ServiceAccount",
            "--service-cluster-ip-range=10.0.0.0/24",
            "--service-account-issuer=https://kubernetes.default.svc",
            f"--service-account-signing-key-file={pki.path('sa.key')}",
            f"--service-account-key-file={pki.path('sa.pub')}",
            *options,
        ]
        self._process: subprocess.Popen[bytes] | None = None
        self.client = Client(self.port, pki)

    def start(self) -> Client:
        """Start, and wait until it is ready."""
        with self.log.open("ab") as log:
            self._process = subprocess.Popen(self._command, stdout=log, stderr=log)
        deadline = time.monotonic() + START_SECONDS
        while not self._ready():
            ended = self._process.poll() is not None
            assert not ended and time.monotonic() < deadline, self.log.read_text()[-4000:]
            time.sleep(0.2)
        return self.client

    def _ready(self) -> bool:
        context = ssl.create_default_context(cafile=str(self._pki.path("ca.crt")))
        try:
            url = f"https://127.0.0.1:{self.port}/readyz"
            with urllib.request.urlopen(url, context=context, timeout=5) as answer:
                return bool(answer.status == 200)
        except (OSError, urllib.error.URLError):
            return False

    def stop(self) -> None:
        """End it as an operator would, so that it withdraws its address."""
        if self._process is None:
            return
        self.client.close()
        self._process.terminate()
        try:
            self._process.wait(30)
        except subprocess.TimeoutExpired:
            self._process.kill()
            self._process.wait()
        self._process = None
