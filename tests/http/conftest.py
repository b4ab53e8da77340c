from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.http.serving import SHORT, SMALL, Pki, Serving, Site


@pytest.fixture(scope="session")
def pki(tmp_path_factory: pytest.TempPathFactory) -> Pki:
    return Pki.make(tmp_path_factory.mktemp("pki"))


@pytest.fixture
def site() -> Site:
    return Site()


@pytest.fixture
def serving(site: Site, pki: Pki) -> Iterator[Serving]:
    with Serving(site, pki) as running:
        yield running


@pytest.fixture(params=["uvloop", "asyncio"])
def either(request: pytest.FixtureRequest, site: Site, pki: Pki) -> Iterator[Serving]:
    """Server on either event loop."""
    with Serving(site, pki, use_uvloop=request.param == "uvloop") as running:
        yield running


@pytest.fixture(params=["tls", "plain"])
def strict(request: pytest.FixtureRequest, site: Site, pki: Pki) -> Iterator[Serving]:
    """Server with size limits that a test can reach, with and without TLS."""
    with Serving(site, pki if request.param == "tls" else None, limits=SMALL) as running:
        yield running


@pytest.fixture(params=["tls", "plain"])
def hasty(request: pytest.FixtureRequest, site: Site, pki: Pki) -> Iterator[Serving]:
    """Server with timeouts that a test can reach, with and without TLS."""
    with Serving(site, pki if request.param == "tls" else None, limits=SHORT) as running:
        yield running


@pytest.fixture
def cert_copy(tmp_path: Path) -> Pki:
    return Pki.make(tmp_path)
