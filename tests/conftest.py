"""Fixtures for several test folders: a real server on a real socket, and a client."""

from __future__ import annotations

import gc
import os
import warnings
from collections.abc import Iterator

import hypothesis
import pytest

from tests.live import Client, Live, Pki
from tests.storage.etcd_server import EtcdServer

# An example has no time limit: on a busy machine the default of 200 ms fails tests at random.
hypothesis.settings.register_profile("kubist", deadline=None)
hypothesis.settings.load_profile("kubist")


@pytest.fixture(scope="session")
def server_pki(tmp_path_factory: pytest.TempPathFactory) -> Pki:
    return Pki(tmp_path_factory.mktemp("server-pki"))


@pytest.fixture(scope="session")
def shared_live(server_pki: Pki) -> Iterator[Live]:
    """Server shared by all tests that stay in their own namespace."""
    with Live(server_pki) as running:
        yield running


@pytest.fixture
def live(server_pki: Pki) -> Iterator[Live]:
    """Server in memory for one test."""
    with Live(server_pki) as running:
        yield running


@pytest.fixture
def swept() -> Iterator[None]:
    """Collects garbage after tests of client libraries, which leave sockets open. In another test an
    unclosed socket would be an error."""
    yield
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", ResourceWarning)
        gc.collect()


@pytest.fixture
def client(shared_live: Live) -> Client:
    return shared_live.client


@pytest.fixture
def namespace(client: Client) -> str:
    """Namespace of the shared server for one test."""
    name = f"test-{os.urandom(4).hex()}"
    client.post("/api/v1/namespaces", {"metadata": {"name": name}})
    return name


@pytest.fixture(scope="session")
def real_etcd(tmp_path_factory: pytest.TempPathFactory) -> Iterator[EtcdServer]:
    if (reason := EtcdServer.missing()) is not None:
        pytest.skip(reason)
    server = EtcdServer(tmp_path_factory.mktemp("real-etcd"))
    server.start()
    server.wait()
    yield server
    server.stop()
