"""Servers with all authenticators, and users without permissions."""

from __future__ import annotations

import os
from collections.abc import Iterator

import pytest

from tests.filters.askers import Person, Remote
from tests.live import Client, Live, Pki


@pytest.fixture(scope="module")
def cluster(server_pki: Pki) -> Iterator[Live]:
    with Live(server_pki, enable_bootstrap_token_auth=True) as running:
        yield running


@pytest.fixture
def admin(cluster: Live) -> Client:
    return cluster.client


@pytest.fixture
def someone(cluster: Live) -> Person:
    """New user without permissions, with a name that no other test uses."""
    return Person(cluster, "admin-token", Impersonate_User=f"user-{os.urandom(4).hex()}")


@pytest.fixture
def space(admin: Client) -> str:
    name = f"test-{os.urandom(4).hex()}"
    admin.post("/api/v1/namespaces", {"metadata": {"name": name}})
    return name


@pytest.fixture
def remote(server_pki: Pki) -> Iterator[Remote]:
    running = Remote(server_pki)
    yield running
    running.close()
