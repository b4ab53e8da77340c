"""A kube-apiserver and Kubist at work on one etcd, and a look into that etcd."""

from __future__ import annotations

import base64
import contextlib
import os
import time
from collections.abc import Iterator
from pathlib import Path

import pytest
import yaml

from kubist.model.meta.object import Object
from kubist.storage.etcd.store import EtcdStore
from kubist.storage.store import KeyValue
from tests import programs
from tests.live import Client, Live
from tests.storage.etcd_server import EtcdServer
from tests.waiting import wait_for

from .reference import Reference, SharedPki

COMPACTION_SECONDS = 4
EVENT_SECONDS = 15
KUBIST_ADDRESS = "192.0.2.12"
ENCRYPTED = {
    "secrets": ("aescbc", "one"),
    "configmaps": ("aesgcm", "two"),
    "sealeds.shared.example.com": ("secretbox", "three"),
}
"""Resource → provider and name of its key. Other resources are stored plainly."""


class Shared:
    """Both servers on one etcd. Kubist runs its control loops, so no kube-controller-manager is needed."""

    def __init__(self, kube_apiserver: Reference, kubist: Live, etcd: EtcdServer) -> None:
        self.kube_apiserver = kube_apiserver
        self.live = kubist
        self.reference = kube_apiserver.client
        self.kubist = kubist.client
        self._raw = EtcdStore([etcd.endpoint], compaction_interval=0)
        kubist.run(self._raw.open())

    def close(self) -> None:
        self.live.run(self._raw.close())

    @property
    def both(self) -> tuple[Client, Client]:
        return self.reference, self.kubist

    def turns(self) -> Iterator[tuple[str, Client, Client]]:
        """Each of them as the writer, with the other one."""
        yield "kube-apiserver", self.reference, self.kubist
        yield "kubist", self.kubist, self.reference

    def equal(self, path: str, seconds: float = 10) -> Object:
        """An object that both show in the same way; loops may be about to write its status."""
        deadline = time.monotonic() + seconds
        while True:
            one, other = (client.ask("GET", path) for client in self.both)
            if one.status == other.status == 200 and one.json == other.json:
                shown: Object = one.json
                return shown
            assert time.monotonic() < deadline, f"{path}\nkube-apiserver: {one}\nkubist: {other}"
            time.sleep(0.1)

    def gone(self, path: str, seconds: float = 20) -> None:
        """Wait until neither has an object or a path."""
        wait_for(lambda: [client.ask("GET", path).status for client in self.both] == [404, 404], seconds)

    def served(self, path: str, seconds: float = 20) -> None:
        wait_for(lambda: [client.ask("GET", path).status for client in self.both] == [200, 200], seconds)

    def keys(self, prefix: str = "") -> dict[str, KeyValue]:
        """Keys and values of etcd below a prefix."""
        return {held.key: held for held in self.live.run(self._raw.scan(prefix)).items}

    def changed(self, before: dict[str, KeyValue]) -> set[str]:
        """The keys that were written or deleted since."""
        now = self.keys()
        new = {
            key
            for key, held in now.items()
            if key not in before or before[key].mod_revision != held.mod_revision
        }
        return new | (before.keys() - now.keys())


def encryption() -> Object:
    def entry(resource: str, provider: str, name: str) -> Object:
        secret = base64.b64encode(os.urandom(32)).decode()
        keys = {"keys": [{"name": name, "secret": secret}]}
        return {"resources": [resource], "providers": [{provider: keys}, {"identity": {}}]}

    return {
        "apiVersion": "apiserver.config.k8s.io/v1",
        "kind": "EncryptionConfiguration",
        "resources": [entry(resource, *how) for resource, how in ENCRYPTED.items()],
    }


@pytest.fixture(scope="session")
def shared(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Shared]:
    """One pair of servers for all tests."""
    programs.require("kube-apiserver", "etcd")
    directory: Path = tmp_path_factory.mktemp("shared-etcd")
    config = directory / "encryption.yaml"
    config.write_text(yaml.safe_dump(encryption()))
    pki = SharedPki(directory)
    etcd = EtcdServer(directory)
    with contextlib.ExitStack() as stack:
        stack.callback(etcd.stop)
        etcd.start()
        etcd.wait()
        kube_apiserver = Reference(
            pki,
            etcd.endpoint,
            directory,
            f"--encryption-provider-config={config}",
            f"--etcd-compaction-interval={COMPACTION_SECONDS}s",
            f"--event-ttl={EVENT_SECONDS}s",
        )
        stack.callback(kube_apiserver.stop)
        kube_apiserver.start()
        kubist = stack.enter_context(
            Live(
                pki,
                etcd_servers=(etcd.endpoint,),
                advertise_address=KUBIST_ADDRESS,
                encryption_provider_config=str(config),
                etcd_compaction_interval=float(COMPACTION_SECONDS),
                event_ttl=EVENT_SECONDS,
                controllers=("*",),
                root_ca_file=str(pki.path("ca.crt")),
            )
        )
        pair = Shared(kube_apiserver, kubist, etcd)
        stack.callback(pair.close)
        yield pair
