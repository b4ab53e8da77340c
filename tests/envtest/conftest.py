"""The assets, and a control plane that is started from them as test libraries do it."""

from __future__ import annotations

import contextlib
import http.client
import json
import os
import signal
import socket
import ssl
import subprocess
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

from kubist.base.http.tls.certificates import new_authority, save
from kubist.cli.envtest import make_assets
from tests.cli.processes import environment
from tests.storage.etcd_server import free_port
from tests.waiting import wait_for


@pytest.fixture(scope="session")
def assets(tmp_path_factory: pytest.TempPathFactory) -> Path:
    directory = tmp_path_factory.mktemp("assets")
    make_assets(directory)
    return directory


class ControlPlane:
    """Files, ports and processes of one environment."""

    def __init__(self, assets: Path, home: Path, **variables: str) -> None:
        self.assets, self.home = assets, home
        self.environment = environment(home) | variables
        self.etcd_port, self.port = free_port(), free_port()
        self.processes: list[subprocess.Popen[bytes]] = []
        self.certificates = home / "certificates"
        self.certificates.mkdir()
        save(
            new_authority("ca").issue_server(["localhost", "127.0.0.1"]),
            self.certificates / "apiserver.crt",
            self.certificates / "apiserver.key",
        )
        users = new_authority("users")
        (self.certificates / "users.crt").write_bytes(users.cert_pem)
        save(
            users.issue_client("admin", ["system:masters"]), self._file("admin.crt"), self._file("admin.key")
        )
        signing = new_authority("service-accounts")
        signing.save(self._file("sa.crt"), self._file("sa.key"))

    def _file(self, name: str) -> Path:
        return self.certificates / name

    def run(self, name: str, *arguments: str) -> subprocess.Popen[bytes]:
        with self.log.open("ab") as log:
            process = subprocess.Popen(
                [str(self.assets / name), *arguments],
                env=self.environment,
                cwd=self.home,
                stdout=log,
                stderr=subprocess.STDOUT,
            )
        self.processes.append(process)
        return process

    @property
    def log(self) -> Path:
        return self.home / "log"

    def start_etcd(self) -> subprocess.Popen[bytes]:
        url = f"http://127.0.0.1:{self.etcd_port}"
        return self.run(
            "etcd",
            *(f"--listen-client-urls={url}", f"--advertise-client-urls={url}", "--unsafe-no-fsync=true"),
            *(f"--listen-peer-urls=http://127.0.0.1:{free_port()}", f"--data-dir={self.home / 'etcd-data'}"),
        )

    def start_apiserver(self, *more: str) -> subprocess.Popen[bytes]:
        """Starts kube-apiserver with the flags of controller-runtime's envtest."""
        where = self.certificates
        return self.run(
            "kube-apiserver",
            *("--allow-privileged=true", "--authorization-mode=RBAC", "--bind-address=127.0.0.1"),
            *(f"--cert-dir={where}", f"--client-ca-file={where / 'users.crt'}"),
            *("--disable-admission-plugins=ServiceAccount", f"--secure-port={self.port}"),
            *(f"--etcd-servers=http://127.0.0.1:{self.etcd_port}", "--service-cluster-ip-range=10.0.0.0/24"),
            *(f"--service-account-issuer=https://127.0.0.1:{self.port}/",),
            *(f"--service-account-key-file={where / 'sa.crt'}",),
            *(f"--service-account-signing-key-file={where / 'sa.key'}", *more),
        )

    def wait_until_ready(self) -> None:
        def ready() -> bool:
            process = self.processes[-1]
            assert process.poll() is None, self.log.read_text()
            return self.ask("GET", "/readyz")[0] == 200

        wait_for(ready, 60)

    def ask(self, method: str, path: str, body: Any = None) -> tuple[int, Any]:
        """Request of the administrator. The status is 0 while nobody listens."""
        context = ssl.create_default_context()
        context.check_hostname = False
        context.verify_mode = ssl.CERT_NONE
        context.load_cert_chain(self._file("admin.crt"), self._file("admin.key"))
        connection = http.client.HTTPSConnection("127.0.0.1", self.port, context=context, timeout=20)
        with contextlib.closing(connection):
            try:
                connection.request(
                    method,
                    path,
                    json.dumps(body) if body is not None else None,
                    {"Content-Type": "application/json"},
                )
                response = connection.getresponse()
                content = response.read()
            except OSError:
                return 0, None
        is_json = response.headers.get("Content-Type", "").startswith("application/json")
        return response.status, json.loads(content) if is_json else content

    def close(self) -> None:
        for process in reversed(self.processes):
            if process.poll() is None:
                process.kill()
            process.wait()


NewControlPlane = Callable[..., ControlPlane]


@pytest.fixture
def control_plane(assets: Path, tmp_path: Path) -> Iterator[NewControlPlane]:
    made: list[ControlPlane] = []

    def make(**variables: str) -> ControlPlane:
        home = tmp_path / f"home{len(made)}"
        home.mkdir()
        made.append(ControlPlane(assets, home, **variables))
        return made[-1]

    yield make
    for plane in made:
        plane.close()


def is_free(port: int) -> bool:
    """Whether a server can bind the port."""
    with socket.socket() as probe:
        probe.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        try:
            probe.bind(("127.0.0.1", port))
        except OSError:
            return False
    return True


def stop(process: subprocess.Popen[bytes], number: int = signal.SIGTERM) -> int:
    os.kill(process.pid, number)
    return process.wait(20)
