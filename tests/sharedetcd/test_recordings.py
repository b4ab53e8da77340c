"""The recorded conversations, with every other connection to a kube-apiserver and the rest to Kubist on its etcd."""

from __future__ import annotations

import contextlib
import json
import socket
import subprocess
import sys
import threading
from collections.abc import Iterator
from itertools import cycle
from pathlib import Path

import pytest

from tests import programs
from tests.live import Live
from tests.storage.etcd_server import EtcdServer

from .reference import Reference, SharedPki

pytestmark = [
    pytest.mark.etcd,
    pytest.mark.timeout(600),
    programs.needs("kube-apiserver", "etcd"),
]
CONFORMANCE = Path(__file__).parent.parent / "conformance"
TOKENS = """admin-token,admin,u-admin,"system:masters"
dev-token,dev,u-dev,"devs"
viewer-token,viewer,u-viewer,
"""


class Alternating:
    """A TCP port whose connections go to each of several ports in turn. TLS passes through it."""

    def __init__(self, *ports: int) -> None:
        self._ports = cycle(ports)
        self._listener = socket.create_server(("127.0.0.1", 0))
        self.port: int = self._listener.getsockname()[1]
        threading.Thread(target=self._accept, daemon=True).start()

    def close(self) -> None:
        self._listener.close()

    def _accept(self) -> None:
        while True:
            try:
                client, _ = self._listener.accept()
            except OSError:
                return
            server = socket.create_connection(("127.0.0.1", next(self._ports)))
            for pair in ((client, server), (server, client)):
                threading.Thread(target=_pump, args=pair, daemon=True).start()


def _pump(source: socket.socket, target: socket.socket) -> None:
    with contextlib.suppress(OSError):
        while data := source.recv(65536):
            target.sendall(data)
    for each in (source, target):
        with contextlib.suppress(OSError):
            each.shutdown(socket.SHUT_RDWR)
    source.close()


@pytest.fixture
def port(tmp_path: Path) -> Iterator[int]:
    """Both servers on an empty etcd, started as the recorded one was."""
    pki, etcd = SharedPki(tmp_path), EtcdServer(tmp_path)
    pki.path("tokens.csv").write_text(TOKENS)
    services = "10.0.0.0/16"
    options = (f"--service-cluster-ip-range={services}", "--allow-privileged=true")
    with contextlib.ExitStack() as stack:
        stack.callback(etcd.stop)
        etcd.start()
        etcd.wait()
        kube_apiserver = Reference(pki, etcd.endpoint, tmp_path, *options)
        stack.callback(kube_apiserver.stop)
        kube_apiserver.start()
        config = {"service_cluster_ip_range": services, "allow_privileged": True}
        kubist = Live(pki, etcd_servers=(etcd.endpoint,), advertise_address="192.0.2.12", **config)
        stack.enter_context(kubist)
        alternating = stack.enter_context(
            contextlib.closing(Alternating(kube_apiserver.port, kubist.server.port))
        )
        yield alternating.port


@pytest.mark.parametrize("area", ["core", "groups"])
def test_conversation_with_both_servers_goes_as_with_one(port: int, area: str, tmp_path: Path) -> None:
    out = tmp_path / "scores.json"
    command = [sys.executable, str(CONFORMANCE / "run.py"), area, "-v", "--json", str(out)]
    done = subprocess.run(
        [*command, "--server", f"https://127.0.0.1:{port}"], capture_output=True, text=True, timeout=500
    )
    floor = json.loads((CONFORMANCE / "floor.json").read_text())
    scores = {name: steps for name, (steps, _) in json.loads(out.read_text()).items()}
    assert scores == {name: floor[name]["steps"] for name in scores}, done.stdout[-6000:]
    assert sum(scores.values()) > 700
